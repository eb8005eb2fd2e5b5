#include "agent/serve/pod_grace.h"

#include <algorithm>

#include "agent/base/lease_times.h"

namespace holdfast::agent {

void PodGrace::asked_to_end(SteadyTime now) {
  asked_to_end_ = true;
  if (!began_) began_ = now;
}

// After a second deletion with a shorter grace the kubelet waits that long again.
void PodGrace::marked(SteadyTime now, Duration grace) {
  if (!began_) began_ = now;
  if (!marked_grace_) {
    marked_end_ = *began_ + grace;
  } else if (grace < *marked_grace_) {
    marked_end_ = std::min(*marked_end_, now + grace);
  }
  marked_grace_ = grace;
}

SteadyTime PodGrace::end() const {
  return marked_end_.value_or(*began_ + std::min(kAssumedGrace, pod_grace_));
}

SteadyTime PodGrace::kill_by() const { return std::max(end() - kBeforeEnd, *began_); }

SteadyTime PodGrace::stop_at() const {
  const Duration wait = marked_grace_ ? Duration::zero() : mark_wait(end() - *began_);
  return std::max(kill_by() - stop_grace_, *began_ + wait);
}

}  // namespace holdfast::agent
