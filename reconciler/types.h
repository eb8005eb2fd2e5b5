// What the reconciler knows: the job as the API has it, its pods, and what this replica has
// observed. Plain values; units in the types. Field names and meanings are those of docs/api.md.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/reason.h"

namespace holdfast::reconciler {

using std::chrono::seconds;

enum class Phase {
  kNone,  // not looked at yet
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
};
const char* to_string(Outcome outcome);
std::optional<Outcome> parse_outcome(const std::string& text);

// Which budget an ended attempt spends.
enum class Budget { kNone, kFailures, kDisruptions };
Budget budget_of(Outcome outcome);

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

struct Spec {
  std::int64_t backoff_limit = 6;
  RetryBackoff retry_backoff;
  std::int64_t disruption_limit = 50;
  seconds start_deadline{600};
  std::optional<seconds> schedule_deadline;
  seconds lost_after{40};
  std::optional<seconds> attempt_deadline;
  std::optional<seconds> active_deadline;
  PodReplacementPolicy pod_replacement = PodReplacementPolicy::kTerminatingOrFailed;
  std::optional<Heartbeat> heartbeat;
  bool suspend = false;
  bool cancel = false;
  std::optional<seconds> ttl_after_finished;
};

struct Waiting {
  AnyReason reason;
  std::string message;
  std::string next_action;
  std::optional<Time> deadline;  // where time alone will act
  std::optional<Time> since = std::nullopt;
  bool operator==(const Waiting&) const = default;
};

struct HistoryEntry {
  std::int64_t attempt = 0;
  std::string pod_name;
  std::string pod_uid;
  std::string node_name;
  Outcome outcome = Outcome::kFailed;
  AnyReason reason;
  std::optional<int> exit_code;
  std::optional<Time> start_time;
  std::optional<Time> end_time;
  bool operator==(const HistoryEntry&) const = default;
};
inline constexpr std::size_t kHistoryLimit = 10;

struct Condition {
  std::string type;
  bool status = false;
  std::string reason;
  std::string message;
  Time last_transition_time{};
  bool operator==(const Condition&) const = default;
};

struct Status {
  Phase phase = Phase::kNone;
  std::int64_t attempt = 0;
  std::int64_t failures = 0;
  std::int64_t disruptions = 0;
  std::string pod_name;
  std::string pod_uid;  // once a write that was made anyway could carry it
  std::string node_name;
  std::optional<Time> start_time;
  // The intent's time until the pod has run for a second, then the pod's start. An intent has a
  // fraction of a second, which tells which replica wrote it (see Observed::nonce); a start has
  // none.
  std::optional<Time> attempt_start_time;
  std::optional<Time> completion_time;
  std::optional<Time> next_attempt_time;
  seconds suspended{0};  // or held back by the gates of its pod, since start_time
  std::optional<Waiting> waiting;
  std::vector<HistoryEntry> history;
  std::string progress;  // what the worker said last
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  bool operator==(const Status&) const = default;

  const Condition* condition(const std::string& type) const;
};

struct Job {
  std::string namespace_;
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::int64_t generation = 0;
  Time created{};
  bool deleting = false;
  Spec spec;
  Status status;
};

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };
const char* to_string(PodPhase phase);

struct Terminated {
  int exit_code = 0;
  std::string reason;
  std::string message;
  std::optional<Time> started;
  std::optional<Time> finished;

  // False: the kubelet lost sight of it (the node restarted, say), and this is its own stand-in,
  // neither the workload's exit code nor a proof that it has ended.
  bool was_seen() const;
};

struct ContainerView {
  std::string name;
  bool init = false;
  bool worker = false;   // the one under the agent; where there is no agent, the first regular one
  bool sidecar = false;  // an init container with restartPolicy Always
  // The kubelet may start it again in its place: a restart policy or rule says so.
  bool may_restart = false;
  bool started = false;  // runs or has run
  std::optional<Time> started_at;
  std::optional<Terminated> terminated;
  std::string waiting_reason;
  std::string waiting_message;
};

// Where a pod stands with the schedulers.
enum class Placement {
  kUnseen,         // no scheduler has said anything of it
  kGated,          // no scheduler looks at it before its scheduling gates are removed
  kUnschedulable,  // a scheduler has looked, and cannot bind it
  kBound,          // it has a node
};

struct PodView {
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::string owner_uid;  // the controlling owner's
  std::string job_uid_label;
  std::int64_t attempt = 0;  // from its label; 0: none
  // The mark of the intent that it was created for (Status::attempt_start_time of that moment).
  std::optional<Time> intent;
  std::string node_name;  // empty: not bound
  PodPhase phase = PodPhase::kPending;
  std::string reason;
  std::string message;
  Time created{};
  std::optional<Time> deletion;  // deletionTimestamp: when its grace ends
  seconds deletion_grace{0};
  // How long it has been seen with its deletion asked for, by whoever watched.
  Duration going_for{0};
  bool has_finalizer = false;  // ours
  bool disruption_target = false;
  std::string disruption_reason;
  std::string gates;          // the names of its scheduling gates; empty: none
  std::string unschedulable;  // what its scheduler says; empty: nothing
  std::string scheduler;      // of a pod that is not bound: its schedulerName
  // The last transition of its condition PodScheduled. The API server's clock, as a rule: a kubelet
  // sets it for a pod that was created on a node.
  std::optional<Time> placed;
  std::vector<ContainerView> containers;

  Placement placement() const;
  bool ended() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool started() const;  // any container runs or has run
  // Some container has never run, and none does now: the next one has not started yet, or cannot.
  // A sidecar that runs does not count, for it runs to the end whatever happens.
  bool stands_still() const;
  int steps() const;  // how many starts and ends of containers there are to see
  // Earliest start of a container, as its kubelet's clock has it: see attempt_start().
  std::optional<Time> start() const;
};

// The container has terminated and cannot be started again in its place. That a pod which was
// disrupted has failed may be the pod collector's word, and is none on its containers.
bool ended_for_good(const PodView& pod, const ContainerView& container);

// What came first of a pod that failed and was deleted, where this process has seen it.
enum class EndOrder { kUnknown, kDeletedFirst, kFailedFirst };

// What this process has seen of one pod, and when: the clocks of schedulers and kubelets may be
// wrong by any amount.
struct PodSightings {
  std::optional<Time> placed;     // first where it stands now with the schedulers
  std::optional<Time> elsewhere;  // last where it stood before that
  std::optional<Time> unstarted;  // last before any of its containers ran
  std::optional<Time> started;    // first with a container that runs or has run
  EndOrder order = EndOrder::kUnknown;
};

// What this replica has seen of one node, by its own steady clock, counted only while the watches
// were known to be live.
struct NodeObservation {
  std::optional<Duration> missing_for;  // the node object is not there
  // The node's Lease has not changed; or it never had one, and its Ready condition is Unknown.
  std::optional<Duration> silent_for;
  // Most other nodes fell silent together: this one gets one window more, once.
  bool breaker = false;
  bool has_lease = true;
};

// The Lease of a job with `heartbeat`, as docs/fencing.md has it.
struct LeaseView {
  std::string uid;
  std::uint64_t version = 0;
  std::string holder;            // holder_identity() of a pod; empty: nobody
  std::int64_t attempt = 0;      // the holder's, or the one that it was taken for
  std::string granted;           // the last holder that was ever granted it; empty: none was
  std::optional<Time> acquired;  // when it was granted
  bool renewed = false;          // by its holder, since then
  // By its holder's clock: a hint of how long ago, and never more than that.
  std::optional<Time> renewed_at;
  bool ended = false;        // its holder's child has ended; no more renewals come
  Duration progress_age{0};  // since the worker's last progress, when it last renewed
  std::string progress_message;
};

// What this replica has seen of that Lease, by its own steady clock.
struct LeaseObservation {
  Duration silent_for{0};             // unchanged, counted while a change would have been seen
  Duration stalled_for{0};            // its mark of progress unchanged, likewise
  Duration taken_for{0};              // since it was first seen without a holder, on any clock
  std::optional<Duration> ended_for;  // since it was first seen with its holder's end mark
  bool granted_stopped = false;       // its last holder's worker was seen to have terminated
  bool breaker = false;  // most other holders fell silent with it: one window more, once
  // So many holders were lost in the outage in which this one was, itself included (outage.h).
  int lost_together = 0;
};

// Why the current attempt's pod could not be created, as this replica was last told.
struct CreationRefusal {
  enum class Kind {
    kRefused,          // quota, policy, a webhook, throttling, no answer: try the same one again
    kNameTaken,        // another owner's pod has the name
    kTemplateRefused,  // the API server calls a field invalid: the template's, or a webhook's
    kTemplateInvalid,  // it can never work
  };
  Kind kind = Kind::kRefused;
  std::string message;
  Duration retry_in{0};  // not before
  int in_a_row = 1;      // refusals of this kind, with the one that stood in the status before
  Duration age{0};       // since the last of them
};

// The API server refused the last write of the job's Lease: quota, rights, a policy, a foreign
// Lease of its name.
struct LeaseRefusal {
  std::string message;
  Duration retry_in{0};  // not before
};

// A job that may not ask for a pod yet: its namespace has as many creations under way as it may.
struct TurnWait {
  Duration waited{0};
  Duration since_turn{0};  // of any job of its namespace
};

struct Observed {
  // This process wrote the intent that stands in the status, and knows of no pod of it yet.
  bool own_intent = false;
  // A pod of the current attempt is known to have existed: created or seen by this process.
  bool pod_existed = false;
  // That pod's UID: the answer to its creation had it, or it was the first one seen. Empty: not
  // known.
  std::string pod_uid;
  // This process has sent a write of the job's Lease for the current attempt.
  bool lease_asked = false;
  // It stood there when the job's shard came to this replica, again or for the first time.
  bool took_over = false;
  // Since this process first saw the current attempt running without a pod.
  Duration no_pod_for{0};
  // The job was just read live, and is the one in the view; so were the current attempt's pod, its
  // node with the node's Lease, and the job's own Lease.
  bool confirmed = false;
  std::optional<CreationRefusal> refusal;
  std::map<std::string, NodeObservation> nodes;
  LeaseObservation lease;
  std::optional<LeaseRefusal> lease_refusal;
  PodSightings pod;  // of the current pod
  // For so long the current pod, which had started, has been seen to stand still after so many
  // steps, and the job to be Cancelling: by whoever watched, in this process or before.
  Duration still_for{0};
  Duration cancelling_for{0};
  // A new pod may be asked for now: its namespace has a creation to spare, and none of the job's is
  // under way.
  bool may_create = true;
  std::optional<TurnWait> turn_wait;  // none: it was not told to wait
  // Since the watches have been live without a gap.
  Duration live_for{0};
  // Since this process last wrote the job's status.
  Duration since_write = std::chrono::hours(1);
  // Random: makes the intent's attemptStartTime this process's own.
  std::uint64_t nonce = 0;
};

struct JobView {
  Job job;
  std::vector<PodView> pods;       // that name the job: by owner, by label, or by a recorded UID
  std::optional<LeaseView> lease;  // of a job with `heartbeat`
  Observed observed;
};

}  // namespace holdfast::reconciler
