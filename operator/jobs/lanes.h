// How many requests for runs of one job are in flight at the same time. The first one needs no
// lane. Each further one takes a lane of the job's namespace. So a job with many runs does not hold
// up other namespaces when its requests hang.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include "client/controller/fair_share.h"

namespace holdfast::jobs {

// The most for one job. In all there are twice as many lanes: see FairShare.
inline constexpr int kLanes = 16;

class Lanes {
 public:
  Lanes(controller::FairShare& share, const std::string& tenant, std::size_t most)
      : share_(share), tenant_(tenant) {
    while (count_ < std::min<std::size_t>(most, kLanes) && share_.admits(tenant_)) {
      share_.begin(tenant_);
      ++count_;
    }
  }
  ~Lanes() {
    for (std::size_t lane = 1; lane < count_; ++lane) share_.end(tenant_);
  }
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;
  std::size_t count() const { return count_; }

 private:
  controller::FairShare& share_;
  const std::string tenant_;
  std::size_t count_ = 1;
};

}  // namespace holdfast::jobs
