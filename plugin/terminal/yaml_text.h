// JSON as YAML, in the form that kubectl prints. Pure.
#pragma once

#include <string>

#include "core/json.h"

namespace holdfast::plugin {

// Block style, two spaces for a level, members in alphabetical order. Reads back as the same JSON.
// Control characters are escaped.
std::string to_yaml(const Json& json);

}  // namespace holdfast::plugin
