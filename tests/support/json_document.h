// What a test has put together, as others' JSON is read.
#pragma once

#include "operator/core/json.h"
#include "operator/core/json_view.h"

namespace holdfast {

inline JsonDocument document(const Json& json) { return JsonDocument::parse(json.dump()).value(); }

}  // namespace holdfast
