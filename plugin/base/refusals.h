// For how long a verb that waits bears being refused. A server that is away comes back; credentials
// that were revoked do not. Pure.
//
//   if (refusals.note(error, steady_now())) return refuse(...);
#pragma once

#include <optional>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::plugin {

// An API server that restarts, or whose authentication webhook is away, refuses for seconds.
inline constexpr std::chrono::seconds kRefusedFor{60};

// The API server does not accept the credentials, or grants no right; or nobody can log in. Waiting
// alone mends none of them.
bool is_refusal(const Error& error);

class Refusals {
 public:
  // What came of a look now; none: it succeeded. True: looks have been refused for kRefusedFor, and
  // none has succeeded in between. No answer is neither.
  bool note(const std::optional<Error>& error, SteadyTime now);

 private:
  std::optional<SteadyTime> since_;
};

}  // namespace holdfast::plugin
