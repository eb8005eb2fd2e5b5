// What a test has put together, as others' JSON is read.
#pragma once

#include "core/json.h"
#include "core/json_view.h"

namespace holdfast {

inline JsonDocument document(const Json& json) { return JsonDocument::parse(json.dump()).value(); }

}  // namespace holdfast
