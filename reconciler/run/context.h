// The input of all decisions on one run. Internal to reconciler/.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// A change of `waiting` alone is written at most this often.
inline constexpr seconds kInfoWriteInterval{1};
// New words alone, of a worker, of a scheduler or about many runs, are written at most this often.
inline constexpr seconds kWordsInterval{30};

inline constexpr const char* kJobDeadlineMessage =
    "the job was active longer than activeDeadlineSeconds";
inline constexpr const char* kStageDeadlineMessage =
    "the stage was active longer than its activeDeadlineSeconds";

struct Context {
  const JobView& view;
  const Job& job;
  const Spec& spec;
  Time now;
  const std::vector<const PodView*>& pods;  // of the runs' last attempts; null: none
  // When the job's or the stage's activeDeadlineSeconds is over, whichever is first; none: never,
  // or the clock does not run.
  std::optional<Time> deadline = std::nullopt;
  bool deadline_is_jobs = true;  // not the stage's own
  bool has_permit = true;        // of its queue, if it has one
};

struct RunContext : Context {
  const Run& run;       // as recorded
  const RunView& seen;  // what this replica knows of it
  const PodView* pod;   // of its last attempt; null: none
  // The user allows fewer open runs now, and this is one of those that have to stop.
  bool excess = false;
};

// Up to when the view knows of everything that has happened, and how long ago that was.
inline Time asked_at(const Context& context) {
  return context.view.observed.asked.value_or(context.now);
}
inline Duration look_age(const Context& context) { return context.now - asked_at(context); }

inline const char* deadline_message(const Context& context) {
  return context.deadline_is_jobs ? kJobDeadlineMessage : kStageDeadlineMessage;
}

// This version of the operator does not know all of the job's spec, or of its pool's: no attempt
// starts.
Waiting version_waiting(const Context& context, std::optional<Time> deadline);
// Observed::guard holds: no attempt starts.
Waiting guard_waiting(const Context& context, std::optional<Time> deadline);

// `position`: the run's in status.runs. Beyond its end: a run that has not begun.
RunContext of_run(const Context& context, std::size_t position);

// True if the last attempt of the run at this position was just read live. A worker's Leases always
// say what is known of an attempt there.
bool is_read(const Context& context, std::size_t position);

// The runs (by index) whose last pod is neither in the view nor was read live. Each may still have
// a pod that no watch shows. No end of the job, and no deletion, takes such a pod for gone.
std::vector<std::int64_t> unseen_runs(const Context& context);

// True if the deadline in status.waiting has passed without an action.
bool reported_deadline_has_passed(const Context& context);

// False if the pod is terminal, if it is unbound and deleted, or if its node's object is gone.
bool pod_lives(const Context& context, const PodView& pod);

// The pod's node; null: nothing is known of it, or it has none. A slot has none.
const NodeObservation* node_of(const Context& context, const PodView& pod);

}  // namespace holdfast::reconciler
