// The Retry-After header. Pure.
#pragma once

#include <optional>
#include <string>

#include "core/time.h"

namespace holdfast::http {

// Whole seconds, up to eleven days; its other form, a date, is not used by API servers: no value.
std::optional<Duration> parse_retry_after(const std::string& text);

}  // namespace holdfast::http
