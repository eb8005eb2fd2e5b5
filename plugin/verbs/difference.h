// What differs between two specs, field by field. Pure.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"

namespace holdfast::plugin {

// "spec.backoffLimit: 3 there, 5 here": one line for each field, in the order of their paths. A
// field with a null counts as absent. Long values are cut.
std::vector<std::string> differences(const std::string& path, const Json& there, const Json& here);

}  // namespace holdfast::plugin
