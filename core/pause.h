// The API server's `Retry-After`, for what is not one request: until when a caller leaves it alone.
#pragma once

#include <algorithm>
#include <optional>

#include "core/result.h"
#include "core/time.h"

namespace holdfast {

// Keeps the pause that the error asks for; a pause never becomes shorter.
inline void heed(const Error& error, SteadyTime now, SteadyTime& not_before) {
  if (error.retry_after) not_before = std::max(not_before, now + *error.retry_after);
}

// The error of what is not sent because the pause still lasts; none: it may be sent.
inline std::optional<Error> asked_to_wait(SteadyTime not_before, SteadyTime now) {
  if (now >= not_before) return std::nullopt;
  Error error = make_error(ErrorCode::kThrottled, "the API server has asked for a pause");
  error.retry_after = not_before - now;
  return error;
}

}  // namespace holdfast
