// The reconciler's input: the job in the API, its pods, and this replica's observations. Plain
// values; units in the types. Field names and meanings are as in docs/api.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/index_set.h"
#include "reconciler/notify.h"
#include "reconciler/reason.h"

namespace holdfast::reconciler {

using std::chrono::seconds;

enum class Phase {
  kNone,  // no status yet
  kPending,
  kRunning,
  kBackoff,
  kSuspended,
  kCancelling,
  kSucceeded,
  kFailed,
  kCancelled,
};
const char* to_string(Phase phase);  // "" for kNone
std::optional<Phase> parse_phase(const std::string& text);
inline bool is_terminal(Phase phase) {
  return phase == Phase::kSucceeded || phase == Phase::kFailed || phase == Phase::kCancelled;
}

// A job of a queue with this recorded phase holds a permit of it.
inline bool holds_permit(Phase phase) {
  return phase == Phase::kRunning || phase == Phase::kCancelling;
}

// How an attempt ended.
enum class Outcome {
  kSucceeded,
  kFailed,
  kLost,
  kHung,
  kStartTimeout,
  kDeadlineExceeded,
  kSuspended,
  kCancelled,
  kDeferred,    // a Defer rule: what it needs is not ready
  kHandedBack,  // its worker gave it back before it began
};
const char* to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(const std::string& text);

// How far a stage is. Succeeded, Failed and Skipped are for ever.
enum class StagePhase { kPending, kRunning, kSucceeded, kFailed, kSkipped };
const char* to_string(StagePhase phase);
std::optional<StagePhase> parse_stage_phase(const std::string& text);
inline bool has_ended(StagePhase phase) {
  return phase != StagePhase::kPending && phase != StagePhase::kRunning;
}

// Which budget an ended attempt spends.
enum class Budget { kNone, kFailures, kDisruptions };
Budget budget_of(Outcome outcome);

// No count in a status is higher.
inline constexpr std::int64_t kCountLimit = 2'147'483'648;

struct RetryBackoff {
  seconds initial{10};
  double factor = 2;
  seconds max{360};
  int jitter_percent = 20;
  bool operator==(const RetryBackoff&) const = default;
};

enum class PodReplacementPolicy { kTerminatingOrFailed, kFailed };

struct Heartbeat {
  seconds lease_duration{30};
  std::optional<seconds> progress_deadline;
};

// batch/v1's podFailurePolicy: the first rule that matches a failed pod decides.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
enum class PolicyAction {
  kCount,      // as without a policy
  kIgnore,     // the end spends no budget
  kFailIndex,  // the run has failed; it has no further attempt
  kFailJob,
  // Ours: something outside is not ready. The end spends no budget, and the run asks again later.
  kDefer,
};

struct ExitCodesMatch {
  std::string container;  // empty: any container, init containers too
  bool in = true;         // false: a code that is not among the values
  std::vector<int> values;

  // The rule is on this exit code of the container with this name. A code of 0 is no failure.
  bool matches(const std::string& name, int code) const;
};
struct PodConditionMatch {
  std::string type;
  std::string status = "True";
  bool operator==(const PodConditionMatch&) const = default;
};
struct PolicyRule {
  using ExitCodes = ExitCodesMatch;
  using PodCondition = PodConditionMatch;
  PolicyAction action = PolicyAction::kCount;
  // Either exit codes or conditions are set. An exit code of 0 never matches.
  std::optional<ExitCodes> exit_codes;
  std::vector<PodCondition> conditions;  // one of them is enough
  // For kDefer: when the next attempt starts, and how many deferrals of a run in a row are allowed.
  seconds defer_for{60};
  std::int64_t defer_limit = 1000;
};

// batch/v1's successPolicy: the job has succeeded once one rule is met.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#success-policy
struct SuccessRule {
  std::optional<IndexSet> indexes;    // none: all
  std::optional<std::int64_t> count;  // how many of them; none: each
};

// The pool whose workers run the attempts, instead of pods of their own: docs/workers.md.
struct PoolRef {
  std::string name;
  std::string key;  // jobs with the same key go to the same worker, if it has a free slot
  std::optional<seconds> progress_deadline;
};

// What one stage runs, and for how long it is tried. Of a job without stages: the whole spec.
struct Spec {
  std::int64_t completions = 1;     // runs that must succeed
  std::int64_t parallelism = 1;     // runs that may be open at once
  bool indexed = false;             // a pod learns the index of its run
  std::optional<IndexSet> indexes;  // these runs alone; none: 0 to completions - 1
  std::int64_t backoff_limit = 6;   // kCountLimit: none
  std::optional<std::int64_t> backoff_limit_per_index;
  std::optional<std::int64_t> max_failed_indexes;
  std::vector<PolicyRule> pod_failure_policy;
  std::vector<SuccessRule> success_policy;
  RetryBackoff retry_backoff;
  std::int64_t disruption_limit = 50;
  seconds start_deadline{600};
  std::optional<seconds> schedule_deadline;
  seconds lost_after{40};
  std::optional<seconds> attempt_deadline;
  std::optional<seconds> active_deadline;  // the job's; it does not hold for Always stages
  std::optional<seconds> stage_deadline;   // of a stage after the first: its own
  PodReplacementPolicy pod_replacement = PodReplacementPolicy::kTerminatingOrFailed;
  std::optional<Heartbeat> heartbeat;
  std::optional<PoolRef> pool;
  bool suspend = false;
  bool cancel = false;
  std::optional<seconds> ttl_after_finished;
  std::string first_container;  // of the template, whose message is the stage's result

  // The indexes of the job's runs, and how many of them must succeed. Of a suspended job
  // `completions` may fall: then runs on record may have other indexes (left_out()).
  IndexSet all_indexes() const { return indexes ? *indexes : IndexSet::first(completions); }
  std::int64_t wanted() const { return indexes ? indexes->size() : completions; }
  // It may have more than one run, and its status says which of them have ended.
  bool many_runs() const { return completions > 1; }
  // Each run has a Lease of its own.
  bool has_run_leases() const { return heartbeat && many_runs(); }
};

// A stage of a job: docs/stages.md.
struct Stage {
  std::string name;
  bool may_fail = false;  // onFailure Continue
  bool always = false;    // when Always: also after a failure or a cancellation
  // Its fields, with those of the job that hold for it. An Always stage ignores `cancel` and the
  // job's deadline.
  Spec spec;
};
inline constexpr std::size_t kStageLimit = 16;  // after the first one
inline constexpr const char* kFirstStage = "main";
inline constexpr std::size_t kResultLimit = 1024;  // bytes of StageStatus::result
inline constexpr seconds kAlwaysDeadline{600};     // of an Always stage that sets none

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
// A pod further ahead of the status than this is not from a later attempt: somebody chose its name.
// To continue from its number would use the numbers up. One write raises the attempt by 10,000 at
// most, and 64 attempts may begin with it.
inline constexpr std::int64_t kMostAhead = 1000;
// The limits of the CRD's schema.
inline constexpr std::size_t kHistoryLimit = 10;
inline constexpr std::size_t kConditionLimit = 16;
inline constexpr std::size_t kRunLimit = 1000;
inline constexpr std::int64_t kCompletionsLimit = 100'000;
inline constexpr std::int64_t kParallelismLimit = 1000;
inline constexpr std::size_t kRefusedLimit = 1024;  // bytes of Run::refused
inline constexpr seconds kSuspendedLimit{2'147'483'647};

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

// The queue that a job waits in, and its place there: docs/queues.md.
struct QueueRef {
  std::string name;
  std::int64_t priority = 0;
  std::string key;
};

struct Job {
  std::string namespace_;
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t generation = 0;
  Time created{};
  bool deleting = false;
  std::optional<Time> deletion;  // deletionTimestamp
  bool holds_outbox = false;     // it has kOutboxFinalizer
  bool orphans = false;          // its deletion leaves its pods to themselves
  // Of a job that runs a batch/v1 Job (lane/). Its shard, fixed when it was made: "<label>/<uid>",
  // where the label is shard_label() and the UID decides if that means nothing any more.
  std::string fixed_shard;
  std::string hostname;   // of the pods of an Indexed job, before "-<index>"; empty: the job's name
  bool has_pool = false;  // any of its stages
  // Rises each time spec.message may have changed: the commands of its attempts on workers read it
  // again.
  std::int64_t message = 0;
  Spec spec;                  // of the current stage
  std::vector<Stage> stages;  // all of them, the first one included; empty: there is one
  bool cancel = false;        // spec.cancel of the whole job
  std::optional<QueueRef> queue;
  std::vector<std::string> notify;  // names of targets, kNotifyLimit at most
  // What spec says that this version of the operator does not know, for people: a newer version
  // made the job. Such a job gets no new attempt. Empty: nothing.
  std::string unknown;
  Status status;
  std::size_t stored_bytes = 0;  // as JSON; 0: a job with one run, or an ended one
};

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };
const char* to_string(PodPhase phase);

// What a cached pod keeps of a failed container's termination message: its last lines.
inline constexpr std::size_t kOutputLimit = 2048;

struct Terminated {
  int exit_code = 0;
  std::string reason;
  // Of a failed container: the last lines. The kubelet takes them from its log if it left none.
  std::string message;
  std::optional<Time> started;
  std::optional<Time> finished;

  // False: the kubelet lost track of the container (e.g. the node restarted) and made this entry
  // up. It is neither the workload's exit code nor a proof of its end.
  bool was_seen = true;
  bool out_of_memory = false;  // the kernel killed it for its memory
  bool operator==(const Terminated&) const = default;
};

struct ContainerView {
  std::string name;
  bool init = false;
  bool worker = false;   // the container with the agent; without an agent the first regular one
  bool sidecar = false;  // an init container with restartPolicy Always
  // A restart policy or rule allows the kubelet to start it again in place.
  bool may_restart = false;
  bool started = false;  // runs or has run
  std::optional<Time> started_at;
  std::optional<Terminated> terminated;
  std::string waiting_reason;
  std::string waiting_message;
  bool being_created = false;  // waiting_reason is a usual step of every start
  bool operator==(const ContainerView&) const = default;
};

// How far the schedulers are with a pod.
enum class Placement {
  kUnseen,         // no scheduler has reported anything on it
  kGated,          // schedulers ignore it until its scheduling gates are removed
  kUnschedulable,  // a scheduler cannot bind it
  kBound,          // it has a node
};

struct PodView {
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::string owner_uid;  // the controlling owner's
  std::string job_uid_label;
  std::string shard_label;   // empty: none
  std::int64_t attempt = 0;  // from its label; 0: none
  // The mark of its intent: Run::start_time when it was created.
  std::optional<Time> intent;
  std::string node_name;  // empty: not bound
  PodPhase phase = PodPhase::kPending;
  std::string reason;
  std::string message;
  bool out_of_time = false;  // its kubelet stopped it at the template's own activeDeadlineSeconds
  Time created{};
  seconds grace{30};             // of its template, in which a deleted pod stops
  std::optional<Time> deletion;  // deletionTimestamp: when its grace ends
  seconds deletion_grace{0};
  // How long it has been deleted but present, as seen by this process or earlier observers.
  Duration going_for{0};
  bool has_finalizer = false;  // ours
  bool ready = false;          // its condition Ready holds
  bool disruption_target = false;
  std::string disruption_reason;
  std::string gates;          // the names of its scheduling gates; empty: none
  std::string unschedulable;  // its scheduler's message; empty: none
  std::string scheduler;      // the schedulerName of an unbound pod
  // The last transition of its condition PodScheduled. Usually by the API server's clock, but a
  // kubelet sets it for a pod that was created with a node.
  std::optional<Time> placed;
  std::vector<ContainerView> containers;
  // Of a pod whose phase is Failed, for Spec::pod_failure_policy; else empty.
  std::vector<PolicyRule::PodCondition> conditions;
  // No pod, but a slot of a warm worker, shown as one: nothing is written to it.
  bool slot = false;
  bool operator==(const PodView&) const = default;

  Placement placement() const;
  bool ended() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool started() const;  // any container runs or has run
  // True if some container has never run and none runs now: the next container has not started yet,
  // or cannot. Running sidecars do not count, because they always run to the end.
  bool stands_still() const;
  int steps() const;  // the number of starts and ends of containers
  // The earliest start of a container, by its kubelet's clock. See attempt_start().
  std::optional<Time> start() const;
};

// True if the container has terminated and cannot be started again in place. The phase Failed of a
// disrupted pod proves nothing about its containers, because the pod collector may have set it.
bool ended_for_good(const PodView& pod, const ContainerView& container);

// For a failed and deleted pod: which of the two this process saw first.
enum class EndOrder { kUnknown, kDeletedFirst, kFailedFirst };

// When this process has seen the steps of one pod. The clocks of schedulers and kubelets may be
// wrong by any amount.
struct PodSightings {
  std::optional<Time> placed;     // first seen with its current Placement
  std::optional<Time> elsewhere;  // last seen with another Placement
  std::optional<Time> unstarted;  // last seen before any container ran
  std::optional<Time> started;    // first seen with a container that runs or has run
  EndOrder order = EndOrder::kUnknown;
};

// One node as this replica sees it, by its own steady clock. Time counts only while the watches are
// known to be live.
struct NodeObservation {
  std::optional<Duration> missing_for;  // the node's object does not exist
  // The node's Lease has not changed. If it never had one: its Ready condition is Unknown.
  std::optional<Duration> silent_for;
  // Most other nodes fell silent together, so this one gets one more window, once.
  bool breaker = false;
  bool has_lease = true;
};

// The Lease of a job with `heartbeat` (docs/fencing.md).
struct LeaseView {
  std::string uid;
  std::uint64_t version = 0;
  std::string holder;            // holder_identity() of a pod; empty: no holder
  std::int64_t attempt = 0;      // the holder's, or the attempt that it was taken for
  std::string granted;           // the last holder that it was granted to; empty: never granted
  std::optional<Time> acquired;  // when it was granted
  bool renewed = false;          // by its holder, since then
  // By its holder's clock, so only a hint.
  std::optional<Time> renewed_at;
  bool ended = false;        // its holder's child has ended; no more renewals come
  Duration progress_age{0};  // the age of the worker's last progress, at the last renewal
  std::string progress_message;
  std::string checkpoint;  // of any holder so far; the next one goes on from it
  std::string stage;       // for which it was written last; empty: of a job without stages
  // How often its holder's worker has said "not yet" in its pod, where its agent runs it again.
  std::int64_t deferrals = 0;
};

// That Lease as this replica sees it, by its own steady clock.
struct LeaseObservation {
  Duration silent_for{0};             // unchanged, in live time
  Duration stalled_for{0};            // its mark of progress unchanged, in live time
  Duration taken_for{0};              // since it was first seen without a holder, on any clock
  std::optional<Duration> ended_for;  // since it was first seen with its holder's end mark
  bool granted_stopped = false;       // somebody saw its last holder's worker terminate
  bool breaker = false;               // most other holders fell silent too: one more window, once
  // How many holders the same outage lost, this one included (outage.h).
  int lost_together = 0;
};

// Why the last creation of the current attempt's pod failed, as this replica knows it.
struct CreationRefusal {
  enum class Kind {
    kRefused,          // quota, policy, a webhook, throttling, no answer: retry the same pod
    kNameTaken,        // another owner's pod has the name
    kTemplateRefused,  // the API server calls a field invalid: from the template or a webhook
    kTemplateInvalid,  // the template can never work
  };
  Kind kind = Kind::kRefused;
  std::string message;
  Duration retry_in{0};  // not before
  int in_a_row = 1;      // refusals of this kind, including the one in the old status
  Duration age{0};       // since the last refusal
};

// The API server refused the last write of the job's Lease: quota, permissions, a policy, a foreign
// Lease of the same name.
struct LeaseRefusal {
  std::string message;
  Duration retry_in{0};  // not before
};

// The job must wait to create its pod, because its namespace has used up its creations in flight.
struct TurnWait {
  Duration waited{0};
  Duration since_turn{0};  // since the last turn of any job of its namespace
};

// What this process knows of the last attempt of one run.
struct RunObserved {
  // This process wrote the intent in the status, and knows of no pod for it yet.
  bool own_intent = false;
  // This process has created or seen a pod of the attempt.
  bool pod_existed = false;
  // That pod's UID, from the answer to its creation, or from the first pod seen. Empty: unknown.
  std::string pod_uid;
  // The UIDs of pods that had the attempt's name and were not its pod. They stay strangers,
  // whatever their owner or their mark says later.
  std::vector<std::string> strangers;
  // This process has sent a write of the run's Lease for the attempt.
  bool lease_asked = false;
  // The attempt already existed when this replica (again) got the job's shard.
  bool took_over = false;
  // Since this process first saw the attempt running without a pod.
  Duration no_pod_for{0};
  // The attempt's pod, the pod's node with its Lease, and the run's Lease were just read live, and
  // then the job. It has not changed since the view. Of an attempt that is over it may also be an
  // earlier read that showed no pod that may still run.
  bool confirmed = false;
  std::optional<CreationRefusal> refusal;
  LeaseObservation lease;
  std::optional<LeaseRefusal> lease_refusal;
  PodSightings pod;
  // How long the pod, once started, has made no further step, as seen by this process or earlier
  // observers.
  Duration still_for{0};
};

// What is known of an attempt at its place, while its end is not on record.
enum class AtPlace {
  kUnknown,  // wait
  kRunning,
  kEnded,  // the answer has exit code and result
  kStopped,
  kReturned,  // it never began, or can never begin: no budget
  kLost,
};

// True if no process of the attempt runs there, or ever will while its agent gets to run. Only then
// the run's next attempt may begin.
bool is_empty(AtPlace place);

// What is known of a run's last attempt whose place is a slot of a warm worker.
struct SlotView {
  AtPlace at = AtPlace::kUnknown;
  // The worker lives, and its Leases were read as they are now. Only then kUnknown says that it has
  // not begun the attempt.
  bool is_known = false;
  int exit_code = 0;        // kEnded
  std::string result;       // kEnded
  std::string progress;     // the last message
  std::string checkpoint;   // the last one; empty: none
  Duration stalled_for{0};  // kRunning: since its last progress
  // kLost: why its worker was cut off, as the end of a sentence; empty: not known.
  std::string lost_why;
  // kLost: the kernel killed its worker for its memory. `beside_others`: with other attempts on it.
  bool out_of_memory = false;
  bool beside_others = false;
  // Of an attempt whose end is on record: no process of it runs there any more.
  bool left = false;
};

struct RunView {
  std::optional<LeaseView> lease;  // only for a job with `heartbeat`
  std::optional<SlotView> slot;    // only for a run with a worker
  RunObserved observed;
};

// What the owner of a job's queue knows of the job.
struct PermitView {
  // The job is admitted for the attempt after its current one.
  bool admitted = false;
  bool no_queue = false;  // there is no queue of that name
  Duration waited{0};     // since the job first asked, as this process knows
};

// What a job's pool has for it.
struct PoolView {
  struct Worker {
    std::string name;           // of its pod
    std::string uid;            // of its worker Lease
    seconds lease_duration{0};  // as its agent has it
  };
  bool no_pool = false;      // there is no pool of that name
  std::string unknown = {};  // as Job::unknown, of the pool: it has no offers
  // Free slots that the job's next attempts may take now, in this order.
  std::vector<Worker> offers;
  // The same for runs with Run::alone: workers without an attempt.
  std::vector<Worker> empty;
  TurnWait wait;  // since_turn: since the pool last had a slot for any job
};

// A request for a pod of the job that may still be applied, whichever process sent it. Its attempt
// may have ended meanwhile.
struct OpenCreation {
  std::int64_t attempt = 0;
  std::string pod_name;
  // This process will have the answer, or its watch does not show the created pod yet.
  bool expected = false;
  // A request was sent. False: this process's is in the line of its namespace.
  bool asked = true;
  // Until no request for the pod can succeed any more. Then only a live look at it is missing.
  Duration left{0};
};

// The last request to delete a pod did not succeed.
struct DeletionTrouble {
  bool refused = false;  // by a rule; false: it failed for another reason
  std::string message;
};

struct Observed {
  std::map<std::string, NodeObservation> nodes;
  // How long the job has been Cancelling, as seen by this process or earlier observers.
  Duration cancelling_for{0};
  // Of all the job's attempts, by attempt.
  std::vector<OpenCreation> creations;
  std::map<std::string, DeletionTrouble> deletions;  // by the pod's name
  // How long another replica may take to lose its shards: its intents have no pod after that.
  Duration takeover = seconds(17);
  // A new attempt may start now: its namespace has a free slot for the creation of a pod.
  bool may_create = true;
  std::optional<TurnWait> turn_wait;  // none: the job does not wait for a turn
  PermitView permit;                  // of a job with a queue
  PoolView pool;                      // of a job whose stage has a pool
  NotifyView notify;
  bool namespace_goes = false;  // looked for only while an outbox holds a deleted job
  // The operator's rights in the job's namespace go with the namespace. So no finalizer may wait
  // there for anything.
  bool may_lose_rights = false;
  // How long the watches have been live without a gap.
  Duration live_for{0};
  // The highest attempt that a pod of the job has ever shown to this process; see kMostAhead.
  std::int64_t highest_attempt = 0;
  // The time since this process last wrote the job's status.
  Duration since_write = std::chrono::hours(1);
  // Random: makes an intent's start_time unique to this process.
  std::uint64_t nonce = 0;
  // As RunObserved::confirmed, for a job without runs and the pod of its last attempt.
  bool confirmed = false;
  // This reconcile has read something live. Further reads wait for the next one, so that new
  // verdicts never hold up those that are due.
  bool looked = false;
};

inline constexpr std::int64_t kSingleLease = -2;
// A Lease of a run that is not in status.runs, or of an earlier stage, or with a name that the run's
// Lease had before `completions` changed from or to 1.
struct LeaseOver {
  std::int64_t run = 0;  // kSingleLease: that of a stage with one run
  LeaseView lease;
  LeaseObservation observed;
};

struct JobView {
  Job job;
  std::vector<PodView> pods;  // with the job in owner or label, or with a recorded UID
  std::vector<RunView> runs;  // of job.status.runs, each in its place
  Observed observed;
  std::vector<LeaseOver> leases_over;  // only of a job with a heartbeat, or with stages
  std::string shard_label{};           // what its pods' labels should say

  // What is known of the run at this place in status.runs; nothing, if `runs` is shorter.
  const RunView& seen(std::size_t place) const;
  // Of the job's first run.
  RunView& begun();
};

}  // namespace holdfast::reconciler
