#include "operator/jobs/job_windows.h"

#include <algorithm>

#include "reconciler/job/edges.h"
#include "reconciler/names.h"

namespace holdfast::jobs {
namespace {

using reconciler::LiveTime;

constexpr std::uint64_t kStepsMask = 0xFFFF;

// The mark of a pod with this UID after so many steps. It grows with the steps.
std::uint64_t still_mark(const reconciler::PodView& pod) {
  const auto steps = static_cast<std::uint64_t>(std::max(pod.steps(), 0));
  return (reconciler::hash64(pod.uid) & ~kStepsMask) | std::min(steps, kStepsMask);
}

bool same_pod(std::uint64_t a, std::uint64_t b) { return (a | kStepsMask) == (b | kStepsMask); }

LiveTime without_gaps(LiveTime time) { return {time.now, Duration::zero()}; }

Duration of(const reconciler::RecordTracker& tracker, const std::string& key,
            const std::string& uid, Duration window, LiveTime time) {
  if (tracker.version(key) != reconciler::hash64(uid)) return Duration::zero();
  return tracker.counted(key, window, reconciler::kFirstLook, time).value_or(Duration::zero());
}

}  // namespace

bool is_stopping(const reconciler::Status& status) {
  if (status.phase == reconciler::Phase::kCancelling) return true;
  return !is_terminal(status.phase) && reconciler::recorded_end(status);
}

void JobWindows::see(const codecs::CachedPod& pod, LiveTime time) {
  const std::string key = pod.key();
  // A kubelet may say of a pod that ran that no container has. Then its time counts from now.
  const bool is_still = pod.pod.started() ? pod.pod.stands_still() : !pod.pod.node_name.empty();
  if (!is_still || pod.pod.ended()) {
    still_.gone(key);
  } else {
    // Fewer steps than before: the kubelet forgot some. This is not a start.
    const auto before = still_.version(key);
    const std::uint64_t mark = still_mark(pod.pod);
    const bool fewer = before && same_pod(*before, mark) && mark < *before;
    still_.seen(key, fewer ? *before : mark, time.now);
  }
  if (!pod.pod.deletion || pod.pod.ended()) {
    going_.gone(key);
  } else {
    going_.seen(key, reconciler::hash64(pod.uid), time.now);
  }
}

void JobWindows::gone(const codecs::CachedPod& pod) {
  still_.gone(pod.key());
  going_.gone(pod.key());
}

void JobWindows::see(const codecs::CachedJob& job, LiveTime time) {
  if (is_stopping(job.job.status)) {
    cancelling_.seen(job.key(), reconciler::hash64(job.uid), time.now);
  } else {
    cancelling_.gone(job.key());
  }
}

void JobWindows::gone(const codecs::CachedJob& job) { cancelling_.gone(job.key()); }

Duration JobWindows::still_for(const std::string& namespace_, const reconciler::PodView& pod,
                               LiveTime time) const {
  const std::string key = namespace_ + "/" + pod.name;
  const auto known = still_.version(key);
  const std::uint64_t mark = still_mark(pod);
  if (!known || !same_pod(*known, mark) || *known < mark) return Duration::zero();
  return still_.silent_for(key, time.now, Duration::zero()).value_or(Duration::zero());
}

Duration JobWindows::going_for(const std::string& namespace_, const reconciler::PodView& pod,
                               Duration window, LiveTime time) const {
  return of(going_, namespace_ + "/" + pod.name, pod.uid, window, time);
}

Duration JobWindows::cancelling_for(const codecs::CachedJob& job, Duration window,
                                    LiveTime time) const {
  return of(cancelling_, job.key(), job.uid, window, time);
}

void JobWindows::keep_windows(observe::WindowKeeper& windows,
                              const reconciler::RecordTracker::ClockOf& clock,
                              const WantedBy& wanted) {
  const auto no_gaps = [clock](const std::string& key) { return without_gaps(clock(key)); };
  windows.add("still", {still_, no_gaps, wanted.still});
  windows.add("going", {going_, clock, wanted.going});
  windows.add("cancelling", {cancelling_, clock, wanted.cancelling});
}

}  // namespace holdfast::jobs
