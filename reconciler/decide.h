// The heart: what should happen to one job now. Pure: no clock, no I/O, no randomness.
//
// decide() returns the writes in the order in which they must happen, intent first. The executor
// performs them one by one and stops at the first that fails; after every prefix the next decide()
// goes on from what stands in the API server. Rules that it keeps: S1-S13 of docs/verification.md.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// How long a replica that finds another's intent without a pod waits for that replica to create
// it: a member lease and a retry period, after which its writer has stopped acting.
inline constexpr seconds kForeignIntentWait{17};
// A change of `waiting` alone is written at most this often, and a pod's node and start when it
// has run this long for certain.
inline constexpr seconds kInfoWriteInterval{1};

struct Event {
  bool warning = true;
  std::string reason;
  std::string action;
  std::string note;
};

// PUT on /status with the resourceVersion that was read. What follows `events` is for metrics.
struct WriteStatus {
  Status status;
  std::vector<Event> events = {};
  std::optional<Outcome> ended = std::nullopt;    // this write ends an attempt, like this
  OrphanClass orphan_class = OrphanClass::kNone;  // it recovers from this
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
// Takes our finalizer off, whatever else changed meanwhile (UID is checked).
struct ReleasePod {
  std::string name;
  std::string uid;
};
// Puts labels back that somebody took off: the watch does not see a pod without them.
struct RelabelPod {
  std::string name;
  std::string uid;
  std::int64_t attempt = 0;
};
// The job's Lease with this holder: a take (holder empty) or a grant. A PUT with the UID and
// resourceVersion that were read; without a UID, a create.
struct WriteLease {
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t attempt = 0;
  std::string holder;
  std::string granted;  // the last one that was granted it, this one included
};
// DELETE of the job with UID and resourceVersion: its time to live is over.
struct DeleteJob {};

using Write =
    std::variant<WriteStatus, CreatePod, DeletePod, ReleasePod, RelabelPod, WriteLease, DeleteJob>;

struct Decision {
  std::vector<Write> writes;
  // Read the job, the current attempt's pod (and its node and the node's Lease) and the job's own
  // Lease live and decide again with Observed::confirmed: a verdict, or a second request for a pod,
  // hangs on it. A job that has changed since the view is decided on anew. `writes` is empty then.
  bool confirm = false;
  // A pod is to be created once Observed::may_create says so.
  bool awaits_creation = false;
  // Look again after this long, if nothing happens before.
  std::optional<Duration> wake_after;
};

Decision decide(const JobView& view, Time now);

// Since when the API server has called the template invalid is on record: until then that must
// stand to be final. None: it has not, or something else was in its way since.
std::optional<Time> template_doubted_until(const Status& status);

// The current attempt's pod in the view (authorship.h); null: none.
const PodView* current_pod(const JobView& view);

}  // namespace holdfast::reconciler
