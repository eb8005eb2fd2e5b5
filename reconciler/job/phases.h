// One function for each kind of phase. Each fills the decision; decide() picks one and completes
// its result. Internal to reconciler/.
#pragma once

#include <unordered_set>

#include "reconciler/job/decide.h"
#include "reconciler/job/edges.h"
#include "reconciler/job/opening.h"

namespace holdfast::reconciler {

// Collects the decision of a phase.
class Plan {
 public:
  explicit Plan(const Context& context) : context_(context) {}

  // Adds the status write, if it changes anything.
  void write(WriteStatus status);
  // Adds a write that changes only `waiting`, node or start. Skipped soon after the last write,
  // unless `at_once`.
  void inform(Status status, bool at_once = false);
  void create_pod(const Run& run);
  void await_creation() { decision_.awaits_creation = true; }
  void await_permit() { decision_.awaits_permit = true; }
  void await_slots(std::int64_t runs, std::int64_t alone) {
    decision_.awaits_slots = runs;
    decision_.awaits_empty = alone;
  }
  // As write(), unless the last write of this phase was too short a time ago: then later. A
  // write with losses waits less, one with the last successes longer, and one that `is_urgent` not
  // at all.
  void write_in_turn(WriteStatus status, bool is_urgent = false);
  // Asks for live reads of these runs (by index), and of the pods of these open creations (by
  // attempt). False: there are none, or this reconcile has read
  // already, and they are due at once in the next one.
  bool confirm(const std::vector<std::int64_t>& runs,
               const std::vector<std::int64_t>& creations = {});
  // The same, for what cannot go on without these reads. False: there is nothing to read.
  bool looks_at(const std::vector<std::int64_t>& runs,
                const std::vector<std::int64_t>& creations = {});
  // Of a job without runs: of its last pod.
  void confirm_last() { decision_.confirm = true; }
  // An admitted job that does not start by itself, or whose pool does not exist, gives its permit
  // back: the status raises the attempt, so that nobody can start the job with this admission any
  // more.
  void give_back_permit();
  void wake_in(Duration delay);
  void wake_at(Time when) { wake_in(when - context_.now); }

  Decision& decision() { return decision_; }
  // The status after the planned writes so far.
  const Status& status() const { return next_ ? *next_ : context_.job.status; }

 private:
  // The job is admitted, and with this status it does not use its permit.
  bool gives_back(const Status& after) const;

  const Context& context_;
  Decision decision_;
  std::optional<Status> next_;
};

// The pods of the job that still run.
struct PodsLeft {
  const PodView* slowest = nullptr;
  // Until it is given up; none: it is not, because nobody has taken the request to delete it.
  std::optional<Duration> time = Duration::zero();
  const DeletionTrouble* trouble = nullptr;  // of that pod

  bool given_up() const { return time && *time <= Duration::zero(); }
};
// None: none runs. Looks again when a node may be given up.
std::optional<PodsLeft> pods_left(const Context& context, Plan& plan);
// Those that keep the end from being recorded with the phase. A lost attempt was given up, so no
// end waits for its pod. `lost`: the attempts that this decision loses.
std::optional<PodsLeft> pods_to_await(const Context& context, Plan& plan,
                                      std::unordered_set<std::int64_t> lost = {});

// What a job that is to end, or a stage, waits for, in this order: pods that run, and pods that may
// still be created. `words`: what it says about the pods. True: it waits, and `plan` says so.
bool wait_for_pods(const Context& context, const std::optional<PodsLeft>& left, Waiting words,
                   Plan& plan);
// The attempts whose pods have to be looked for before the job, or its stage, is over.
std::vector<std::int64_t> creations_to_look_at(const JobView& view);

// The phase of a job that goes on.
void settle_phase(const Context& context, Status& status);

// (none), Pending, Running, Backoff: runs may be open, and may open.
void decide_active(const Context& context, Plan& plan);
void decide_suspended(const Context& context, Plan& plan);
void decide_cancelling(const Context& context, Plan& plan);
void decide_finished(const Context& context, Plan& plan);

// The status as it is, with the generation that this decision has seen.
WriteStatus start_write(const Context& context);
// If no attempt runs, a cancel, an overspent budget or the job's own time ends the job. True: it
// has.
bool end_idle(const Context& context, Plan& plan);
// Nothing opened: tells what for, and looks again in time.
void wait_to_open(const Context& context, const Opening& opening, Plan& plan);

}  // namespace holdfast::reconciler
