// Declares Json, for headers that only name it. Code that reads or makes a value includes json.h,
// which is a quarter of all lines that such a file compiles.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace holdfast {

using Json = nlohmann::json;

}  // namespace holdfast
