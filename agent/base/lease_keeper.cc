#include "agent/base/lease_keeper.h"

#include <algorithm>
#include <utility>

namespace holdfast::agent {

SteadyTime LeaseKeeper::answered() {
  const SteadyTime sent = *sent_;
  sent_.reset();
  return sent;
}

bool LeaseKeeper::give_up() { return std::exchange(sent_, std::nullopt).has_value(); }

std::string LeaseKeeper::give_up_late(SteadyTime now) {
  if (!sent_ || now < late_at()) return "";
  sent_.reset();
  return "the API server did not answer within " + human_duration(request_limit(duration_));
}

void LeaseKeeper::acknowledged(SteadyTime sent) {
  renewed_ = sent;
  const Duration third = duration_ / 3;
  next_renewal_ = sent + third - up_to(random_, third, kRenewalJitter);
  not_before_ = SteadyTime{};
  conflicts_ = 0;
  last_failure_.clear();
}

void LeaseKeeper::conflict(SteadyTime now) {
  may_renew_ = false;
  if (++conflicts_ > 1) {
    not_before_ = now + about(random_, retry_pause(duration_), kRetryJitter);
  }
}

bool LeaseKeeper::failed(SteadyTime now, const std::string& why) {
  if (renewed_) {
    not_before_ = now + about(random_, retry_pause(duration_), kRetryJitter);
  } else {
    may_renew_ = false;
    not_before_ = now + about(random_, kPoll, kPollJitter);
  }
  return std::exchange(last_failure_, why) != why;
}

void LeaseKeeper::put_off(SteadyTime now, Duration asked, SteadyTime latest) {
  not_before_ =
      std::max(not_before_, std::min(now + asked + up_to(random_, asked, kRetryJitter), latest));
}

void LeaseKeeper::try_by(SteadyTime latest) { not_before_ = std::min(not_before_, latest); }

SteadyTime LeaseKeeper::due(SteadyTime wanted) const {
  if (!renewed_ || !may_renew_) return not_before_;
  return std::max(std::min(next_renewal_, wanted), not_before_);
}

std::string LeaseKeeper::silence(SteadyTime now) const {
  std::string why = "no renewal was acknowledged for " + human_duration(now - *renewed_) +
                    ", the Lease is " + human_duration(duration_) + " long";
  if (!last_failure_.empty()) why += " (" + last_failure_ + ")";
  return why;
}

}  // namespace holdfast::agent
