// Decides what should happen to one job now. Pure: no clock, no I/O, no randomness.
//
// decide() returns writes in order, intent first. The executor performs them one by one and stops
// at the first failure. After any prefix, the next decide() continues from the state in the API
// server. It keeps the rules S1-S13 of docs/verification.md.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// How long a replica waits for the pod of another replica's intent: a member lease and a retry
// period. After that, the writer of the intent has stopped acting.
inline constexpr seconds kForeignIntentWait{17};
// A change of `waiting` alone is written at most this often. A pod's node and start are written
// once it has surely run this long.
inline constexpr seconds kInfoWriteInterval{1};

struct Event {
  bool warning = true;
  std::string reason;
  std::string action;
  std::string note;
};

// PUT on /status with the resourceVersion that was read. The members after `events` are for
// metrics.
struct WriteStatus {
  Status status;
  std::vector<Event> events = {};
  std::optional<Outcome> ended = std::nullopt;    // set: this write ends an attempt
  OrphanClass orphan_class = OrphanClass::kNone;  // the cause of the recovery
  Duration trouble_for{0};                        // how long ago the trouble began
};
// POST of the current attempt's pod.
struct CreatePod {
  std::int64_t attempt = 0;
  std::string name;
  std::optional<Time> intent = std::nullopt;  // PodView::intent
};
// DELETE with UID and resourceVersion, with the pod's own grace.
struct DeletePod {
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
};
// Removes our finalizer, even if the pod changed meanwhile. The UID must match.
struct ReleasePod {
  std::string name;
  std::string uid;
};
// Restores our labels: the watch does not see a pod without them.
struct RelabelPod {
  std::string name;
  std::string uid;
  std::int64_t attempt = 0;
};
// Writes the job's Lease with this holder: a take (holder empty) or a grant. A PUT with the UID and
// resourceVersion of the last read; without a UID, a create.
struct WriteLease {
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t attempt = 0;
  std::string holder;
  std::string granted;  // the last holder that it was granted to, this one included
};
// DELETE of the job with UID and resourceVersion: its time to live is over.
struct DeleteJob {};

using Write =
    std::variant<WriteStatus, CreatePod, DeletePod, ReleasePod, RelabelPod, WriteLease, DeleteJob>;

struct Decision {
  std::vector<Write> writes;
  // A verdict, or a second creation of a pod, needs a live read. Read the job, its current pod with
  // node and node Lease, and the job's Lease. Then decide again with Observed::confirmed. If the
  // job has changed since the view, decide from the start. `writes` is empty then.
  bool confirm = false;
  // Create a pod once Observed::may_create is true.
  bool awaits_creation = false;
  // Decide again after this time, or earlier after an event.
  std::optional<Duration> wake_after;
};

Decision decide(const JobView& view, Time now);

// The recorded time at which the API server's refusal of the template becomes final, if it lasts
// until then. None: the last creation was not refused in this way.
std::optional<Time> template_doubted_until(const Status& status);

// The current attempt's pod in the view (authorship.h); null: none.
const PodView* current_pod(const JobView& view);

}  // namespace holdfast::reconciler
