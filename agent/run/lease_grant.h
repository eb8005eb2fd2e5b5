// Whether the Lease of a job's heartbeat belongs to this attempt of this pod. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "agent/wire/lease_answer.h"

namespace holdfast::agent {

class LeaseGrant {
 public:
  // `holder`: "<pod name>/<pod UID>".
  LeaseGrant(std::int64_t attempt, std::string holder)
      : attempt_(attempt), holder_(std::move(holder)) {}

  // The attempt is over before it began: the Lease is a later one's.
  bool is_too_late(const LeaseView& lease) const { return lease.attempt > attempt_; }
  // Before the grant: why the Lease is not granted to this pod yet; empty: it is.
  std::string not_yet(const LeaseView& lease) const;
  // Why it no longer belongs to this attempt; empty: it does.
  std::string lost(const LeaseView& lease) const;

  // From now on the Lease is the one with this UID.
  void names(const LeaseView& lease) { uid_ = lease.uid; }
  bool is_named(const LeaseView& lease) const { return lease.uid == uid_; }

 private:
  std::string numbers(const LeaseView& lease) const;

  const std::int64_t attempt_;
  const std::string holder_;
  std::string uid_;
};

}  // namespace holdfast::agent
