#include "reconciler/job/opening.h"

#include <algorithm>

#include "reconciler/job/edges.h"
#include "reconciler/job/judge.h"
#include "reconciler/job/status_limits.h"
#include "reconciler/outage.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/creations.h"

namespace holdfast::reconciler {
namespace {

// The clock follows the API server's and may go back slightly.
constexpr seconds kClockNoise{2};

// Of a job with one run any pod may be the old one, also one that an edit of the status has
// forgotten. Of a run among many it has the name on record. Its UID may be recorded in history
// alone, if a user removed its owner.
bool old_pod_lives(const Context& context, std::size_t position) {
  if (!context.spec.many_runs()) return any_pod_lives(context);
  const auto& runs = context.job.status.runs;
  const auto& pods = context.view.pods;
  if (position >= runs.size()) {
    // A pod of an earlier stage that was given up may still run.
    return context.job.status.stage > 0 &&
           std::any_of(pods.begin(), pods.end(), [&](const PodView& pod) {
             return is_ours(context.view, pod) && pod_lives(context, pod) &&
                    !context.job.status.run_of_pod(pod.name);
           });
  }
  return std::any_of(pods.begin(), pods.end(), [&](const PodView& pod) {
    return pod.name == runs[position].pod_name && is_ours(context.view, pod) &&
           pod_lives(context, pod);
  });
}

// The position of a run that has begun; the number of runs, if it has not.
std::size_t position_of(const Context& context, std::int64_t index) {
  const auto& runs = context.job.status.runs;
  const auto found = std::lower_bound(runs.begin(), runs.end(), index,
                                      [](const Run& run, std::int64_t i) { return run.index < i; });
  const bool begun = found != runs.end() && found->index == index;
  return static_cast<std::size_t>((begun ? found : runs.end()) - runs.begin());
}

// What the pool offers for this run, in order; and how much of that is taken already.
const std::vector<PoolView::Worker>& offers_for(const Context& context, const Run& run) {
  const PoolView& pool = context.view.observed.pool;
  return run.alone ? pool.empty : pool.offers;
}
struct Taken {
  std::size_t offers = 0;
  std::size_t empty = 0;
  std::size_t& of(const Run& run) { return run.alone ? empty : offers; }
};

// What the run's next place waits for: a turn to create its pod, or a free slot of a worker.
Opening::Wait place_is_free(const Context& context, const Run& run, std::size_t taken) {
  if (context.spec.pool) {
    if (taken < offers_for(context, run).size()) return Opening::Wait::kNothing;
    const PoolView& pool = context.view.observed.pool;
    const bool needs_empty = run.alone && !pool.no_pool && pool.unknown.empty();
    return needs_empty ? Opening::Wait::kEmptyWorker : Opening::Wait::kWorker;
  }
  return context.view.observed.may_create ? Opening::Wait::kNothing : Opening::Wait::kTurn;
}

// What keeps the run from a permit of its queue. No permit helps a job whose pool does not exist,
// and the permits of many such jobs would block the queue. Of a pool that is only full the permit
// comes before the slot: a slot is reserved for a moment only, a permit until the job gives it
// back.
Opening::Wait wait_for_permit(const Context& context) {
  const PoolView& pool = context.view.observed.pool;
  const bool no_pool = context.spec.pool && (pool.no_pool || !pool.unknown.empty());
  return no_pool ? Opening::Wait::kWorker : Opening::Wait::kPermit;
}

// With podReplacementPolicy Failed: a pod that may still come and keeps the run from its next
// attempt. Without a permit any pod of the job does. Null: there is none.
const OpenCreation* awaited_creation(const Context& context, const Run& run) {
  if (const OpenCreation* const own = creation_of(context.view, run.attempt)) return own;
  const OpenCreation* const last = context.has_permit ? nullptr : last_creation(context.view);
  return last && last->left > Duration::zero() ? last : nullptr;
}

// What keeps the run from its next attempt; none: nothing.
Opening::Wait hindrance(const Context& context, const Run& run, bool just_ended,
                        std::size_t taken) {
  const std::optional<Time> due = end_of_backoff(context, run);
  if (due && context.now < *due) return Opening::Wait::kBackoff;
  const Opening::Wait turn = place_is_free(context, run, taken);
  if (context.spec.pod_replacement == PodReplacementPolicy::kFailed) {
    const std::size_t position = position_of(context, run.index);
    const bool may_come = creation_of(context.view, run.attempt) != nullptr;
    if (may_come || old_pod_lives(context, position)) return Opening::Wait::kOldPod;
    // The job keeps its permit by any pod, and asks for none before that has ended.
    if (!context.has_permit) {
      const bool waits = any_pod_lives(context) || awaited_creation(context, run);
      return waits ? Opening::Wait::kOldPod : wait_for_permit(context);
    }
    if (context.view.observed.guard.holds) return Opening::Wait::kGuard;
    // The pods' watch may lag behind the job's, and somebody may have removed labels.
    const bool looked = just_ended || context.view.seen(position).observed.confirmed;
    if (!looked && !run.pod_name.empty() && turn == Opening::Wait::kNothing) {
      return Opening::Wait::kConfirm;
    }
  }
  if (!context.has_permit) return wait_for_permit(context);
  return context.view.observed.guard.holds ? Opening::Wait::kGuard : turn;
}

// The runs that may be opened, by index: those that wait, and, if one `may_begin`, the first one
// that has not begun.
Run* next_candidate(const Context& context, const IndexSet& all, std::int64_t from,
                    const IndexSet& taken, bool may_begin, Status& next) {
  const auto begun = std::find_if(next.runs.begin(), next.runs.end(),
                                  [&](const Run& run) { return run.index >= from && !run.open(); });
  const auto fresh = all.next(from, taken);
  // The runs in status.runs take at most kRunsBytes. The lists of ended indexes only grow.
  const bool is_small = context.job.stored_bytes < kLargeJob || next.runs.empty();
  const bool has_room = next.runs.size() < kRunLimit && is_small;
  const bool begins = may_begin && has_room && fresh;
  if (begins && (begun == next.runs.end() || *fresh < begun->index)) {
    const auto later = std::find_if(next.runs.begin(), next.runs.end(),
                                    [&](const Run& run) { return run.index > *fresh; });
    const auto made = next.runs.insert(later, Run{});
    made->index = *fresh;
    made->next_attempt_time = context.now;
    return &*made;
  }
  return begun == next.runs.end() ? nullptr : &*begun;
}

}  // namespace

// No back-off is longer than maxSeconds, plus kLongestSpread after an outage. If the recorded time
// is later, somebody edited it or lowered maxSeconds. Then the longest back-off counts from now.
std::optional<Time> end_of_backoff(const Context& context, const Run& run) {
  const std::optional<Time>& recorded = run.next_attempt_time;
  // Only a run with a heartbeat that was lost may have a part of a spread in its time.
  const bool may_be_spread = context.spec.heartbeat && run.disruptions > 0;
  seconds longest = context.spec.retry_backoff.max + (may_be_spread ? kLongestSpread : seconds(0));
  for (const PolicyRule& rule : context.spec.pod_failure_policy) {
    const bool is_deferred = run.deferrals > 0 && rule.action == PolicyAction::kDefer;
    if (is_deferred) longest = std::max(longest, rule.defer_for);
  }
  if (!recorded || *recorded - context.now <= longest + kClockNoise) return recorded;
  return context.now + longest;
}

bool bring_backoffs_forward(const Context& context, Status& next) {
  bool changed = false;
  for (Run& run : next.runs) {
    const std::optional<Time> end = end_of_backoff(context, run);
    if (end == run.next_attempt_time) continue;
    run.next_attempt_time = end;
    changed = true;
  }
  return changed;
}

namespace {

// Runs that need a worker of their own, and whose back-off is over.
std::int64_t alone_that_wait(const Context& context, const Status& next) {
  return std::count_if(next.runs.begin(), next.runs.end(), [&](const Run& run) {
    return run.alone && !run.open() && *run.next_attempt_time <= context.now;
  });
}

// Runs that are neither over, nor open, nor in back-off.
std::int64_t others_left(const Context& context, const Status& next, std::int64_t open) {
  const auto rests = std::count_if(next.runs.begin(), next.runs.end(), [&](const Run& run) {
    return !run.open() && *run.next_attempt_time > context.now;
  });
  return context.spec.wanted() - next.completed.size() - next.failed.size() - open - rests;
}

// How many other runs could open now if there were slots for them; at most as many as may be open.
std::int64_t runs_that_wait(const Context& context, const Status& next, std::int64_t open) {
  const std::int64_t others = others_left(context, next, open) - alone_that_wait(context, next);
  return std::max<std::int64_t>(std::min(context.spec.parallelism - open, others), 1);
}

// Recorded attempts that go on and whose pods nobody has seen yet.
std::size_t intents_without_pod(const Context& context, const Status& next) {
  std::size_t intents = 0;
  auto run = next.runs.begin();  // both lists are in order
  const auto& runs = context.job.status.runs;
  for (std::size_t position = 0; position < runs.size(); ++position) {
    const bool has_pod = context.pods[position] || context.view.seen(position).observed.pod_existed;
    if (!runs[position].open() || has_pod) continue;
    while (run != next.runs.end() && run->index < runs[position].index) ++run;
    if (run != next.runs.end() && run->attempt == runs[position].attempt && run->open()) ++intents;
  }
  return intents;
}

std::int64_t open_in(const Status& next) {
  return std::count_if(next.runs.begin(), next.runs.end(),
                       [](const Run& run) { return run.open(); });
}

bool has_runs_to_open(const Spec& spec, const Status& next) {
  if (spec.suspend || spec.cancel) return false;
  const std::int64_t open = open_in(next);
  const std::int64_t begun_or_over = next.completed.size() + next.failed.size() + open;
  return open < spec.parallelism && begun_or_over < spec.wanted();
}

}  // namespace

bool is_held_back(const Context& context, const Status& next) {
  return !context.job.unknown.empty() && has_runs_to_open(context.spec, next);
}

bool is_held_by_guard(const Context& context, const Status& next) {
  if (!context.view.observed.guard.holds || !has_runs_to_open(context.spec, next)) return false;
  return others_left(context, next, open_in(next)) > 0;
}

Opening leave_out_runs(const Context& context) {
  Opening opening;
  if (context.spec.pod_replacement != PodReplacementPolicy::kFailed) return opening;
  const IndexSet all = context.spec.all_indexes();
  const auto& runs = context.job.status.runs;
  for (std::size_t position = 0; position < runs.size(); ++position) {
    const Run& run = runs[position];
    if (all.contains(run.index)) continue;
    if (creation_of(context.view, run.attempt) || old_pod_lives(context, position)) {
      opening.wait = Opening::Wait::kOldPod;
    } else if (!is_read(context, position) && !run.pod_name.empty()) {
      opening.to_confirm.push_back(run.index);
    }
  }
  return opening;
}

namespace {

// When what the run waits for is over; none: no time ends it.
std::optional<Time> end_of_wait(const Context& context, const Run& run, Opening::Wait wait) {
  if (wait == Opening::Wait::kBackoff) return end_of_backoff(context, run);
  if (wait != Opening::Wait::kOldPod) return std::nullopt;
  const OpenCreation* const creation = awaited_creation(context, run);
  const bool may_come = creation && creation->left > Duration::zero();
  return may_come ? std::optional(context.now + creation->left) : std::nullopt;
}

// The run cannot start its next attempt. `open`: how many others are open in `next`.
void record_wait(const Context& context, const Run& run, Opening::Wait wait, const Status& next,
                 std::int64_t open, Opening& opening) {
  // A job that waits in its queue, or for the guard, says so, whatever its other runs wait for.
  const bool is_jobs = wait == Opening::Wait::kPermit || wait == Opening::Wait::kGuard;
  if (opening.wait == Opening::Wait::kNothing || is_jobs) {
    opening.wait = wait;
    opening.index = run.index;
  }
  if (wait == Opening::Wait::kTurn) opening.wants_turn = true;
  if (wait == Opening::Wait::kGuard) opening.wants_guard = true;
  if (wait == Opening::Wait::kPermit) opening.wants_permit = true;
  if (wait == Opening::Wait::kWorker) opening.wants_slots = runs_that_wait(context, next, open);
  if (wait == Opening::Wait::kEmptyWorker) {
    opening.wants_empty = std::min(context.spec.parallelism - open, alone_that_wait(context, next));
  }
  if (wait == Opening::Wait::kConfirm) opening.to_confirm.push_back(run.index);
  const std::optional<Time> due = end_of_wait(context, run, wait);
  if (due) opening.due = std::min(opening.due.value_or(*due), *due);
}

}  // namespace

Opening open_runs(const Context& context, const std::set<std::int64_t>& just_ended,
                  std::size_t losses, Status& next) {
  Opening opening;
  const bool out_of_time = context.deadline && context.now >= *context.deadline;
  if (context.spec.cancel || context.spec.suspend || out_of_time || recorded_end(next) ||
      spent_budget(context.spec, next)) {
    return opening;
  }
  if (is_held_back(context, next)) {
    opening.wait = Opening::Wait::kVersion;
    return opening;
  }
  if (context.spec.parallelism == 0) opening.wait = Opening::Wait::kPaused;
  std::int64_t open = open_in(next);
  std::size_t intents = intents_without_pod(context, next);
  const std::size_t most = kIntentsAtOnce + losses;
  Taken slots;
  std::int64_t from = 0;
  const IndexSet all = context.spec.all_indexes();
  IndexSet taken = next.completed;  // and the runs that have failed, and that have begun
  taken.add(next.failed);
  IndexSet begun;
  for (const Run& run : next.runs) begun.add(run.index);
  taken.add(begun);
  const bool some_alone = context.spec.pool && alone_that_wait(context, next) > 0;
  bool may_begin = true;
  while (open < context.spec.parallelism && intents + opening.to_confirm.size() < most) {
    Run* const run = next_candidate(context, all, from, taken, may_begin, next);
    if (!run) break;
    from = run->index + 1;
    const Opening::Wait wait =
        hindrance(context, *run, just_ended.count(run->index) > 0, slots.of(*run));
    if (wait == Opening::Wait::kNothing) {
      if (!opening.opened) next.attempt = std::max(next.attempt, last_attempt(context));
      const PoolView::Worker* const worker =
          context.spec.pool ? &offers_for(context, *run)[slots.of(*run)++] : nullptr;
      start_attempt(context, next, *run, worker);
      opening.opened = true;
      ++open;
      ++intents;
      continue;
    }
    record_wait(context, *run, wait, next, open, opening);
    // The others wait for the same, but for runs that need a worker of their own.
    const bool may_go_on = wait == Opening::Wait::kWorker && some_alone;
    // A run that has not begun is on record only once it has.
    if (run->attempt == 0) {
      next.runs.erase(next.runs.begin() + (run - next.runs.data()));
      may_begin = false;
      if (!may_go_on) break;
      continue;
    }
    if (wait == Opening::Wait::kTurn || wait == Opening::Wait::kPermit ||
        wait == Opening::Wait::kGuard || (wait == Opening::Wait::kWorker && !may_go_on)) {
      break;
    }
  }
  return opening;
}

}  // namespace holdfast::reconciler
