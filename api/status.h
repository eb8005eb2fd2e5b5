// The status of a DurableJob. Plain values; units in the types. Field names and meanings are as in
// docs/api.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fields.h"
#include "api/index_set.h"
#include "api/known_words.h"
#include "api/limits.h"
#include "api/outbox.h"
#include "api/phase.h"
#include "api/reason.h"
#include "core/time.h"

namespace holdfast::api {

struct Waiting {
  AnyReason reason;
  std::string message;
  std::string next_action;
  std::optional<Time> deadline;  // when time alone will act; none: it will not
  std::optional<Time> since = std::nullopt;
  bool operator==(const Waiting&) const = default;
};
template <class Io, Is<Waiting> X>
constexpr void fields(Io& io, X& waiting) {
  io("reason", waiting.reason, {.required = true});
  io("message", waiting.message, {.required = true});
  io("nextAction", waiting.next_action, {.required = true});
  io("deadline", waiting.deadline);
  io("since", waiting.since);
}
static_assert(names_all<Waiting>());

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
  Outcome outcome = kUnknownOutcome;
  AnyReason reason;
  std::optional<int> exit_code;
  std::optional<Time> start_time;
  std::optional<Time> end_time;
  std::string progress = {};  // the worker's last message
  // Why it ended, and the last lines of the container that failed.
  std::string message = {};
  // Deferrals in a row share an entry. It describes the last one, but has the first one's start.
  std::int64_t count = 1;
  bool operator==(const HistoryEntry&) const = default;
};
template <class Io, Is<HistoryEntry> X>
constexpr void fields(Io& io, X& entry) {
  io("stage", entry.stage);
  io("index", entry.index, {.required = true}, When{[&entry] { return !entry.alone; }});
  io.own(entry.alone, {},
         Read{[](const JsonView& json) { return !at(json, "index").is_number_integer(); }});
  io("attempt", entry.attempt, {.required = true, .at_rest = true});
  io("podName", entry.pod_name);
  io("podUID", entry.pod_uid, {.at_rest = true});
  io("nodeName", entry.node_name);
  io("workerName", entry.worker_name);
  io("outcome", entry.outcome, {.required = true});
  io("reason", entry.reason);
  io("exitCode", entry.exit_code);
  io("startTime", entry.start_time);
  io("endTime", entry.end_time);
  io("progress", entry.progress);
  io("message", entry.message);
  io("count", entry.count, {.least = 1, .most = kCountLimit});
}
static_assert(names_all<HistoryEntry>());

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

  void set(bool holds, const std::string& why, const std::string& text, Time now);
};
// The pool's or the queue's condition of this type, made if it is not there: !holds, since now.
// Other programs may have filled the list.
Condition& own_condition(std::vector<Condition>& all, const char* type, bool holds, Time now);
template <class Io, Is<Condition> X>
constexpr void fields(Io& io, X& condition) {
  io("type", condition.type, {.required = true, .at_rest = true});
  io.truth("status", condition.status, condition.unknown, {.at_rest = true});
  io("observedGeneration", condition.observed_generation);
  io("reason", condition.reason, {.required = true, .at_rest = true});
  // The schema requires a message, and another program's may be empty.
  io("message", condition.message, {.required = true, .at_rest = true});
  io("lastTransitionTime", condition.last_transition_time, {.at_rest = true, .fraction = true});
}
static_assert(names_all<Condition>());

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
template <class Io, Is<Run> X>
constexpr void fields(Io& io, X& run) {
  const auto at_worker = [&run] { return run.at_worker(); };
  const auto has_pod = [&run] { return !run.at_worker(); };
  io("index", run.index, {.required = true});
  io("attempt", run.attempt, {.required = true});
  io("podName", run.pod_name, {}, When{has_pod});
  io("podUID", run.pod_uid, {}, When{has_pod});
  io("nodeName", run.node_name, {}, When{has_pod});
  io("workerName", run.worker_name, {}, When{at_worker});
  io("workerUID", run.worker_uid, {}, When{at_worker});
  io("workerLeaseDurationSeconds", run.worker_lease_duration,
     {.least = 0, .most = kMaxLeaseSeconds}, When{at_worker});
  io("startTime", run.start_time, {.fraction = true});
  io("nextAttemptTime", run.next_attempt_time, {.fraction = true});
  io("attempts", run.attempts, {.least = 1, .most = kCountLimit});
  io("failures", run.failures, {.least = 0, .most = kCountLimit});
  io("disruptions", run.disruptions, {.least = 0, .most = kCountLimit});
  io("deferrals", run.deferrals, {.least = 0, .most = kCountLimit});
  io("refused", run.refused, {.bytes = kRefusedLimit});
  io("progress", run.progress);
  io("checkpoint", run.checkpoint, {.bytes = kResultLimit});
  io("alone", run.alone);
}
static_assert(names_all<Run>());

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
template <class Io, Is<StageStatus> X>
constexpr void fields(Io& io, X& stage) {
  io("name", stage.name, {.required = true, .at_rest = true});
  io("phase", stage.phase, {.required = true, .at_rest = true}, Read{known_stage_phase});
  io("startTime", stage.start_time);
  io("completionTime", stage.completion_time);
  io("failures", stage.failures, {.least = 0, .most = kCountLimit});
  io("disruptions", stage.disruptions, {.least = 0, .most = kCountLimit});
  io("deferrals", stage.deferrals, {.least = 0, .most = kCountLimit});
  io("suspendedSeconds", stage.suspended);
  io("result", stage.result);
  io("message", stage.message);
}
static_assert(names_all<StageStatus>());

// Runs, indexes and `waiting` are those of the current stage, the rest is the whole job's.
struct Status {
  Phase phase = Phase::kNone;
  // Of a job with stages: the position of the current one in Job::stages, and all of them in their
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
  // Nothing is left to do for the job but to let its pods go, and what its time to live asks for.
  // Replicas do not watch it any more.
  bool settled = false;
  // The shard whose holder works on the job: "7-of-32". Empty: nobody has looked at it yet. With
  // another number of shards it means nothing.
  std::string shard;
  bool operator==(const Status&) const = default;

  const Condition* condition(const std::string& type) const;
  bool holds(const std::string& type) const;  // the condition is true
  // The budgets that the current stage has spent.
  std::int64_t stage_failures() const;
  std::int64_t stage_disruptions() const;
  // The job's run; an empty one if it has not begun or has ended.
  const Run& run() const;
  // The same, begun if it has not.
  Run& begun();
  // `waiting` says that the job waits in its queue, or for it.
  bool says_queued() const;
  bool has_open_run() const;
  // The run whose last attempt has the pod of this name; null: none.
  const Run* run_of_pod(const std::string& pod_name) const;
};
template <class Io, Is<Status> X>
constexpr void fields(Io& io, X& status) {
  io("phase", status.phase, {.required = true, .at_rest = true}, Read{known_phase});
  io.by_codec("stage", status.stage, {.at_rest = true});
  io.by_codec("stages", status.stages, {.at_rest = true});
  io("attempt", status.attempt, {.required = true, .at_rest = true});
  io("failures", status.failures, {.required = true, .at_rest = true});
  io("disruptions", status.disruptions, {.required = true, .at_rest = true});
  io("runs", status.runs);
  io.by_codec("completedIndexes", status.completed, {.at_rest = true});
  io.by_codec("failedIndexes", status.failed, {.at_rest = true});
  // For kubectl, counted when they are written.
  io.other("active");
  io.other("succeeded");
  io.other("failed");
  io.other("completions");
  io("startTime", status.start_time, {.at_rest = true});
  io("completionTime", status.completion_time, {.at_rest = true});
  io("suspendedSeconds", status.suspended);
  io("waiting", status.waiting);
  io("history", status.history, {.at_rest = true});
  io("observedGeneration", status.observed_generation, {.required = true, .at_rest = true});
  io("conditions", status.conditions, {.at_rest = true});
  io("notifications", status.notifications, {.at_rest = true, .least = 0, .most = kCountLimit});
  io.by_codec("outbox", status.outbox, {.at_rest = true});
  io("settled", status.settled, {.at_rest = true});
  io("shard", status.shard, {.at_rest = true});
}
static_assert(names_all<Status>());

}  // namespace holdfast::api
