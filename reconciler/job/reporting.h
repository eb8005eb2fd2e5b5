// What a job with open runs says it waits for: the words of the run in the worst trouble. Internal
// to reconciler/.
#pragma once

#include <cstddef>
#include <vector>

#include "reconciler/job/edges.h"
#include "reconciler/job/opening.h"
#include "reconciler/run/running.h"

namespace holdfast::reconciler {

struct RunStepAt {
  std::size_t position = 0;  // in status.runs
  RunStep step;
};

// Records nodes, starts and progress in `next`, the status that follows `before`.
void record_places(const std::vector<RunStepAt>& steps, const Status& before, Status& next);

// Sets `waiting` and the condition Stalled. False: no run has anything to say yet.
bool report_worst_run(const Context& context, const std::vector<RunStepAt>& steps, Status& status);

// Gives `next` the words of `before` that say nothing of its facts: the workers' progress, and the
// message of a scheduler or about many runs. When a node comes or goes, a scheduler may report
// something new for thousands of pods.
void keep_words(const Spec& spec, const Status& before, Status& next);

// The condition Stalled while this version of the operator holds runs back, because it does not
// know all of the job's spec. True: the status says so for the first time, or no longer.
bool report_version(const Context& context, Status& status);
bool says_version(const Status& status);

// The reason of Stalled, and of the Event, if the success policy has a list of indexes that cannot
// be read whole. Decoding makes such a list an empty one.
inline constexpr const char* kIndexesUnreadable = "IndexesUnreadable";
// Such a rule is never met, and the job goes on. Says so in Stalled, after any other reason for it,
// while the job goes on: only a person can mend it.
void report_unreadable(const Context& context, Status& next);
bool says_unreadable(const Status& status);

// Says in `waiting` why no run is open. `last`: the attempt that ended last; null: none has ended
// now.
void say_why_not_open(const Context& context, const Opening& opening, const AttemptsEnd* last,
                      Status& status);

}  // namespace holdfast::reconciler
