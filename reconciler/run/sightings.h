// One process's sightings of a job's latest pod, version by version. It ignores the clocks of
// schedulers and kubelets, which may be wrong by any amount. Pure; lost with the process.
//
//   sightings.see(pod, now);           // each version that the watch shows
//   observed.pod = sightings.of(pod);  // for the decision
#pragma once

#include <cstdint>
#include <string>

#include "reconciler/types.h"

namespace holdfast::reconciler {

class Sightings {
 public:
  // `now` is the API server's time. Pods of earlier attempts and older versions are ignored.
  void see(const PodView& pod, Time now);
  // Empty if `pod` is not the latest pod.
  PodSightings of(const PodView& pod) const;

 private:
  std::int64_t attempt_ = 0;
  std::string uid_;
  std::uint64_t version_ = 0;
  Placement placement_ = Placement::kUnseen;
  Time last_{};  // when it was last seen
  PodSightings seen_;
};

}  // namespace holdfast::reconciler
