// The status of a DurableJob. Plain values; units in the types. Field names and meanings are as in
// docs/api.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/index_set.h"
#include "reconciler/limits.h"
#include "reconciler/notify.h"
#include "reconciler/phase.h"
#include "reconciler/reason.h"

namespace holdfast::reconciler {

struct Waiting {
  AnyReason reason;
  std::string message;
  std::string next_action;
  std::optional<Time> deadline;  // when time alone will act; none: it will not
  std::optional<Time> since = std::nullopt;
  bool operator==(const Waiting&) const = default;
};

struct HistoryEntry {
  std::string stage = {};  // of a job with stages
  std::int64_t index = 0;  // of its run
  // On record without its index: it was the job's only run. `completions` may have changed since.
  bool alone = false;
  std::int64_t attempt = 0;
  std::string pod_name;
  std::string pod_uid;
  std::string node_name;
  std::string worker_name = {};  // the pod of its worker, which has its log; then it had no pod
  Outcome outcome = Outcome::kFailed;
  AnyReason reason;
  std::optional<int> exit_code;
  std::optional<Time> start_time;
  std::optional<Time> end_time;
  std::string progress = {};  // the worker's last message
  // Why it ended, and the last lines of the container that failed.
  std::string message = {};
  // Deferrals in a row share an entry: that of the last one, from the start of the first.
  std::int64_t count = 1;
  bool operator==(const HistoryEntry&) const = default;
};

struct Condition {
  std::string type;
  bool status = false;
  std::string reason;
  std::string message;
  Time last_transition_time{};
  // Conditions of other programs only.
  bool unknown = false;
  std::optional<std::int64_t> observed_generation = std::nullopt;
  bool operator==(const Condition&) const = default;
};

// A run that has begun and has not ended: its last attempt, and what it has spent.
struct Run {
  std::int64_t index = 0;
  std::int64_t attempt = 0;
  std::string pod_name;
  std::string pod_uid;  // set by the first write after the pod's creation
  std::string node_name;
  // The intent's time until the pod has run for a second, then the pod's start. An intent has a
  // fraction of a second, which identifies the replica that wrote it (see Observed::nonce). A start
  // has none.
  std::optional<Time> start_time;
  std::int64_t attempts = 0;  // how many the run has had; its first one finds a Lease of nobody
  std::int64_t failures = 0;
  std::int64_t disruptions = 0;
  std::int64_t deferrals = 0;  // in a row, up to the last attempt
  // Set: the last attempt has ended, and the next one may start then.
  std::optional<Time> next_attempt_time;
  // Why the API server refused the attempt's pod; empty: it did not, or the pod exists.
  std::string refused;
  std::string progress;  // the worker's last message
  // The last attempt's place, if it is a slot of a warm worker: the worker's pod, and the UID of
  // its worker Lease. Such an attempt has no pod of its own. Its pod_name is on record nowhere.
  std::string worker_name;
  std::string worker_uid;
  // For how long processes of that worker may outlast its last renewal. Zero: not on record.
  seconds worker_lease_duration{0};
  std::string checkpoint;  // of attempts on workers: the last one, for the next attempt
  // It was beside others on a worker that ran out of memory. From then on until the run ends, each
  // of its places is a worker of its own.
  bool alone = false;
  bool operator==(const Run&) const = default;

  bool open() const { return !next_attempt_time; }
  bool at_worker() const { return !worker_uid.empty(); }
};

// How a stage of a job with stages went.
struct StageStatus {
  std::string name;
  StagePhase phase = StagePhase::kPending;
  std::optional<Time> start_time;  // of its first intent
  std::optional<Time> completion_time;
  std::int64_t failures = 0;
  std::int64_t disruptions = 0;
  std::int64_t deferrals = 0;
  seconds suspended{0};  // or gated, since start_time
  std::string result;    // of a stage with one run: what its pod left as termination message
  std::string message;   // why it failed, or was skipped
  bool operator==(const StageStatus&) const = default;
};

// Runs, indexes and `waiting` are those of the current stage, the rest is the whole job's.
struct Status {
  Phase phase = Phase::kNone;
  // Of a job with stages: the place of the current one in Job::stages, and all of them in their
  // order. Else empty.
  std::size_t stage = 0;
  std::vector<StageStatus> stages;
  std::int64_t attempt = 0;
  std::int64_t failures = 0;
  std::int64_t disruptions = 0;
  std::vector<Run> runs;  // by index
  IndexSet completed;     // the runs that have succeeded
  IndexSet failed;        // the runs that have failed for good
  std::optional<Time> start_time;
  std::optional<Time> completion_time;
  seconds suspended{0};  // or gated, since start_time
  std::optional<Waiting> waiting;
  std::vector<HistoryEntry> history;
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  // How many events the job has had for its targets, and those that some have not taken yet.
  std::int64_t notifications = 0;
  std::vector<OutboxEntry> outbox;
  bool operator==(const Status&) const = default;

  const Condition* condition(const std::string& type) const;
  bool holds(const std::string& type) const;  // the condition is true
  // What the current stage has spent.
  std::int64_t stage_failures() const;
  std::int64_t stage_disruptions() const;
  // The job's run; an empty one if it has not begun or has ended.
  const Run& run() const;
  // The same, begun if it has not.
  Run& begun();
  // `waiting` says that the job waits in its queue, or for it.
  bool says_queued() const;
  // The run whose last attempt has the pod of this name; null: none.
  const Run* run_of_pod(const std::string& pod_name) const;
};

}  // namespace holdfast::reconciler
