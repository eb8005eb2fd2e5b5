// This replica's observations of a job, beside what the API's objects say: nodes, Leases, slots,
// refusals, and since when. Decisions are made from them, the job and its pods. Plain values; units
// in the types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/job.h"
#include "reconciler/notify.h"
#include "reconciler/pod.h"

namespace holdfast::reconciler {

// A pod further ahead of the status than this is not from a later attempt: somebody chose its name.
// To continue from its number would use the numbers up. One write raises the attempt by 10,000 at
// most, and 64 attempts may begin with it.
inline constexpr std::int64_t kMostAhead = 1000;

// One node as this replica sees it, by its own steady clock. Time counts only while the watches are
// known to be live.
struct NodeObservation {
  std::optional<Duration> missing_for;  // the node's object does not exist
  // The node's Lease has not changed. If it never had one: its Ready condition is Unknown.
  std::optional<Duration> silent_for;
  // The same of its Lease, and what was seen before the last gap counts too: for words, never for a
  // verdict.
  Duration unheard_for{0};
  // Most other nodes fell silent together, so this one gets one more window, once.
  bool breaker = false;
  // Its Lease has changed within kNodeHeard. Once that is over, its jobs are looked at again.
  bool is_heard = false;
  bool has_lease = true;
};

// The Lease of a job with `heartbeat` (docs/internals/heartbeat.md).
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

// The state of an attempt at its place, as far as it is known, while its end is not on record.
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

// The state of a run's last attempt whose place is a slot of a warm worker, as far as it is known.
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

// The workers that a job's pool offers it.
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

// The policies with the API server's rules for all writers, as this replica knows them.
struct GuardView {
  bool holds = false;  // no new attempt may start
  // Why, and what ends it ("an administrator has ..."). Empty: not known yet.
  std::string fault;
  std::string remedy;
};
// How often what is held looks again, should nobody tell it that the view has changed.
inline constexpr std::chrono::minutes kGuardLook{5};

// The last request to delete a pod did not succeed.
struct DeletionTrouble {
  bool refused = false;  // by a rule; false: it failed for another reason
  std::string message;
};

// Whether a job that has ended may be settled: replicas do not watch it any more then.
enum class Settling {
  kWithAWrite,  // with any write of its status
  kNotYet,      // the batch/v1 Job that it runs neither reports its end nor leads back to it
  kNow,         // and a write of its own, if there is no other
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
  GuardView guard;
  PermitView permit;  // of a job with a queue
  PoolView pool;      // of a job whose stage has a pool
  NotifyView notify;
  bool namespace_goes = false;  // looked for only while an outbox holds a deleted job
  // The operator's rights in the job's namespace go with the namespace. So no finalizer may wait
  // there for anything.
  bool may_lose_rights = false;
  Settling settling = Settling::kWithAWrite;
  // False: the batch/v1 Job that it runs does not report its end yet.
  bool mirrored = true;
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
  // When this reconcile asked for its first live read; none: it has read nothing. All silences of
  // the view end then, and so do the times that rest on what was read: no read shows a later change.
  std::optional<Time> asked;
  // It has read something live. Further reads wait for the next reconcile, so that new verdicts
  // never hold up those that are due.
  bool looked() const { return asked.has_value(); }
};

inline constexpr std::int64_t kSingleLease = -2;
// A Lease that no current run uses. Its run is not in status.runs, or is of an earlier stage. Or
// `completions` changed from or to 1, and the Lease has the name from before.
struct LeaseOver {
  std::int64_t run = 0;  // kSingleLease: that of a stage with one run
  LeaseView lease;
  LeaseObservation observed;
};

struct JobView {
  Job job;
  std::vector<PodView> pods;  // with the job in owner or label, or with a recorded UID
  std::vector<RunView> runs;  // of job.status.runs, each at its position
  Observed observed;
  std::vector<LeaseOver> leases_over;  // only of a job with a heartbeat, or with stages
  // What its status and its pods' labels should say. Empty: not known.
  std::string shard_label{};
  bool selects_shards = false;     // replicas watch jobs by the shard in their status
  bool belongs_elsewhere = false;  // reconciler/shards.h

  // The view of the run at this position in status.runs; an empty one if `runs` is shorter.
  const RunView& seen(std::size_t position) const;
  // Of the job's first run.
  RunView& begun();
};

}  // namespace holdfast::reconciler
