// What the API server says about the Lease of a job's heartbeat, and what a renewal writes into it.
// The Guard (agent/run/guard.h) and the LeaseRecord (agent/wire/lease.h) exchange these.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"

namespace holdfast::agent {

struct LeaseView {
  std::string uid;
  std::string holder;
  std::int64_t attempt = 0;
};

// The result of a request. Only the first four say something about the Lease.
struct Answer {
  enum class Kind {
    kLease,     // 200: the Lease as it is now
    kConflict,  // 409: somebody else has written the Lease since it was read
    kGone,      // 404
    kFenced,    // 403 by the fence in the API server
    kNone,      // anything else: no verdict, try again
  };
  Kind kind = Kind::kNone;
  LeaseView lease;  // kLease
  std::string why;  // for humans; all other kinds
  // The API server asked for this pause (Retry-After); only of kNone.
  std::optional<Duration> retry_after = std::nullopt;
};

struct Renewal {
  std::int64_t mark = 0;  // how often the worker made progress
  std::int64_t age_seconds = 0;
  std::string message;
  std::optional<int> ended;    // the child's exit code; set in the last renewal only
  std::int64_t deferrals = 0;  // of this attempt
  std::optional<std::string> checkpoint = std::nullopt;  // none: the Lease keeps what it has
};

}  // namespace holdfast::agent
