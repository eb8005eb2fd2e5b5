// The writes that a decision may plan. Plain values: the executor performs them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reconciler/orphan_class.h"
#include "reconciler/types.h"

namespace holdfast::reconciler {

struct Event {
  bool warning = true;
  std::string reason;
  std::string action;
  std::string note;
};

// An attempt that a status write ends, for metrics.
struct Ended {
  std::int64_t index = 0;  // of its run
  // None: no attempt, but the wait for a cancelled job's pod.
  std::optional<Outcome> outcome = std::nullopt;
  OrphanClass orphan_class = OrphanClass::kNone;  // the cause of the recovery
  Duration trouble_for{0};                        // how long ago the trouble began
};
// A stage that a status write ends, for metrics.
struct StageEnded {
  std::size_t position = 0;  // in Job::stages
  StagePhase phase = StagePhase::kSucceeded;
};
// PUT on /status with the resourceVersion that was read.
struct WriteStatus {
  Status status;
  std::vector<Event> events = {};
  std::vector<Ended> ended = {};
  std::vector<StageEnded> stages_ended = {};
  // Targets that an event was meant for and that will not get it, once for each event.
  std::vector<std::string> dropped_for = {};
};
// The writes of one run are performed in their order, those of different runs side by side. The
// index of the run is `run`. kNoRun: the write is for no run on record.
inline constexpr std::int64_t kNoRun = -1;
// POST of an attempt's pod.
struct CreatePod {
  std::int64_t attempt = 0;
  std::string name;
  std::optional<Time> intent = std::nullopt;  // PodView::intent
  std::int64_t run = 0;
  // lost_nodes(): the scheduler is asked to prefer any other node, and may still take one of them.
  std::vector<std::string> avoid = {};
};
// DELETE with UID and resourceVersion, with the pod's own grace.
struct DeletePod {
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t run = kNoRun;
};
// Removes our finalizer, even if the pod changed meanwhile. The UID must match.
struct ReleasePod {
  std::string name;
  std::string uid;
  std::int64_t run = kNoRun;
};
// Restores our labels: the watch does not see a pod without them.
struct RelabelPod {
  std::string name;
  std::string uid;
  std::int64_t attempt = 0;
  std::int64_t run = kNoRun;
};
// Writes the run's Lease with this holder: a take (holder empty) or a grant. A PUT with the UID and
// resourceVersion of the last read; without a UID, a create.
struct WriteLease {
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t attempt = 0;
  std::string holder;
  std::string granted;  // the last holder that it was granted to, this one included
  std::int64_t run = 0;
  std::string checkpoint = {};  // LeaseView::checkpoint, as it was
  std::string stage = {};
  bool over = false;  // a take of a LeaseOver, and `run` is as there
};
// DELETE of the Lease of a run that is over, or of an earlier stage.
struct DeleteLease {
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t run = 0;  // kSingleLease: that of a stage with one run
};
// Removes kOutboxFinalizer from the job, with UID and resourceVersion.
struct ReleaseJob {};
// DELETE of the job with UID and resourceVersion: its time to live is over.
struct DeleteJob {};

using Write = std::variant<WriteStatus, CreatePod, DeletePod, ReleasePod, RelabelPod, WriteLease,
                           DeleteLease, ReleaseJob, DeleteJob>;

}  // namespace holdfast::reconciler
