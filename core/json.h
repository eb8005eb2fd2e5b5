// JSON to write and to change, and configuration: parsed with a limit on nesting, and read without
// exceptions. What only is read, and much of it, is a JsonView (json_view.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/result.h"

namespace holdfast {

using Json = nlohmann::json;

// Brackets around a value; documents with one in more are refused: no Kubernetes object comes near
// it, and a recursive destructor or dump of 100,000 levels overflows the stack.
inline constexpr int kMaxJsonDepth = 200;

// Malformed text is kTransient, text nested deeper than kMaxJsonDepth kTerminal.
Result<Json> parse_json(std::string_view text);

// A text that may be anything (an error page, say) as UTF-8, which alone can be written as JSON:
// what is none becomes U+FFFD.
std::string as_utf8(std::string text);

// The member, or a null value that lives forever: chains of at() never throw.
const Json& at(const Json& object, std::string_view key);

// The member's value, or the fallback when it is absent or of another type.
std::string string_at(const Json& object, std::string_view key, std::string_view fallback = "");
std::int64_t int_at(const Json& object, std::string_view key, std::int64_t fallback = 0);
bool bool_at(const Json& object, std::string_view key, bool fallback = false);

}  // namespace holdfast
