// When the pod of a warm worker ends, as far as its agent knows, and what that means for the
// commands. No clock inside.
//
// - The pod's end is its grace after SIGTERM, or after the mark of the work Lease that has the
//   grace, whichever comes first. Without such a mark the agent assumes the pod's own grace, 30 s
//   at most, and waits up to 2 s for the mark. A mark corrects what was assumed.
// - One second before that end all commands are killed, so that the last report still goes out.
//   They are asked to end stop_grace before that, or at once if less time is left.
#pragma once

#include <optional>

#include "core/time.h"

namespace holdfast::agent {

class PodGrace {
 public:
  // `pod_grace`: as the pod's template has it. `stop_grace`: of a command, between SIGTERM and
  // SIGKILL.
  PodGrace(Duration pod_grace, Duration stop_grace)
      : pod_grace_(pod_grace), stop_grace_(stop_grace) {}

  // SIGTERM came.
  void asked_to_end(SteadyTime now);
  // A version of the work Lease has the pod's grace.
  void marked(SteadyTime now, Duration grace);

  bool is_asked_to_end() const { return asked_to_end_; }
  // SIGTERM or a mark came. The others only then.
  bool has_begun() const { return began_.has_value(); }
  // Of the pod.
  SteadyTime end() const;
  SteadyTime kill_by() const;
  // When the commands are asked to end, because the pod does.
  SteadyTime stop_at() const;

 private:
  // Constant after construction.
  const Duration pod_grace_;
  const Duration stop_grace_;

  bool asked_to_end_ = false;
  std::optional<SteadyTime> began_;       // SIGTERM, or the first mark
  std::optional<Duration> marked_grace_;  // the last mark's
  std::optional<SteadyTime> marked_end_;  // what that means
};

}  // namespace holdfast::agent
