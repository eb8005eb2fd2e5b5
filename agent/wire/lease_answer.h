// What the API server says about a Lease, and what a renewal of a job's heartbeat writes into it.
// The Guard (agent/run/guard.h) and the LeaseRecord (agent/wire/lease.h) exchange these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "core/time.h"

namespace holdfast::agent {

// An answer without the Lease. Only the first three say something about it.
struct LeaseRefusal {
  enum class Kind {
    kConflict,  // 409: somebody else has written the Lease since it was read
    kGone,      // 404, or the watch saw its deletion
    kFenced,    // 403 by the fence in the API server
    kNone,      // anything else: no verdict, try again
  };
  Kind kind = Kind::kNone;
  std::string why;  // for humans
  // The API server asked for this pause (Retry-After).
  std::optional<Duration> retry_after = std::nullopt;
};

struct LeaseView {
  std::string uid;
  std::string holder;
  std::int64_t attempt = 0;
};

// The Lease as it is now, or why it is not known.
using LeaseReading = std::variant<LeaseView, LeaseRefusal>;

struct Renewal {
  std::int64_t mark = 0;  // how often the worker made progress
  std::int64_t age_seconds = 0;
  std::string message;
  std::optional<int> ended;    // the child's exit code; set in the last renewal only
  std::int64_t deferrals = 0;  // of this attempt
  std::optional<std::string> checkpoint = std::nullopt;  // none: the Lease keeps what it has
};

}  // namespace holdfast::agent
