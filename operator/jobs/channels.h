// How many requests for runs of one job are in flight at the same time. The first one needs no
// channel. Each further one takes a channel of the job's namespace. So a job with many runs does not
// hold up other namespaces when its requests hang.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "client/controller/fair_share.h"

namespace holdfast::jobs {

// The most for one job. In all there are twice as many channels: see FairShare.
inline constexpr int kChannels = 16;

class Channels {
 public:
  Channels(controller::FairShare& share, const std::string& tenant, std::size_t most)
      : share_(share), tenant_(tenant) {
    while (count_ < std::min<std::size_t>(most, kChannels) && share_.admits(tenant_)) {
      share_.begin(tenant_);
      ++count_;
    }
  }
  ~Channels() {
    for (std::size_t channel = 1; channel < count_; ++channel) share_.end(tenant_);
  }
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;
  std::size_t count() const { return count_; }

 private:
  controller::FairShare& share_;
  const std::string tenant_;
  std::size_t count_ = 1;
};

}  // namespace holdfast::jobs
