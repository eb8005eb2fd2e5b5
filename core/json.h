// JSON to write and to change, and configuration. Parsing limits the nesting, and reading throws no
// exceptions. For large read-only documents see JsonView (json_view.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/json_fwd.h"
#include "core/result.h"

namespace holdfast {

// The deepest nesting that parse_json() accepts. No Kubernetes object comes near it. A recursive
// destructor or dump of 100,000 levels overflows the stack.
inline constexpr int kMaxJsonDepth = 200;

// Malformed text is kTransient, text nested deeper than kMaxJsonDepth kTerminal.
Result<Json> parse_json(std::string_view text);

// Any text (an error page, say) as UTF-8, because JSON can hold nothing else. Invalid bytes become
// U+FFFD.
std::string as_utf8(std::string text);

// The member, or a null value that lives forever: chains of at() never throw.
const Json& at(const Json& object, std::string_view key);

// The member's value, or the fallback when it is absent or of another type.
std::string string_at(const Json& object, std::string_view key, std::string_view fallback = "");
std::int64_t int_at(const Json& object, std::string_view key, std::int64_t fallback = 0);
bool bool_at(const Json& object, std::string_view key, bool fallback = false);

}  // namespace holdfast
