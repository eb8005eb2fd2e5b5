// Applies a `Retry-After` of the API server to more than one request: the caller sends nothing
// before then.
#pragma once

#include <algorithm>
#include <optional>

#include "core/result.h"
#include "core/time.h"

namespace holdfast {

// Extends the pause as the error asks. A pause never becomes shorter.
inline void heed(const Error& error, SteadyTime now, SteadyTime& not_before) {
  if (error.retry_after) not_before = std::max(not_before, now + *error.retry_after);
}

// The error for a request that must wait for the end of the pause. None: send it.
inline std::optional<Error> asked_to_wait(SteadyTime not_before, SteadyTime now) {
  if (now >= not_before) return std::nullopt;
  Error error = make_error(ErrorCode::kThrottled, "the API server has asked for a pause");
  error.retry_after = not_before - now;
  return error;
}

}  // namespace holdfast
