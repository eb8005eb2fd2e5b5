// Turns a test's Json into a JsonDocument.
#pragma once

#include "core/json.h"
#include "core/json_view.h"

namespace holdfast {

inline JsonDocument document(const Json& json) { return JsonDocument::parse(json.dump()).value(); }

}  // namespace holdfast
