// The Retry-After header. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/time.h"

namespace holdfast::http {

// Whole seconds, up to eleven days. No value for a date, the other form: API servers do not send
// it.
std::optional<Duration> parse_retry_after(const std::string& text);

}  // namespace holdfast::http
