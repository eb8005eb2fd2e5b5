// Which runs may start their next attempt now. Internal to reconciler/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "reconciler/run/context.h"

namespace holdfast::reconciler {

// At most so many attempts of a job are recorded and have no pod yet. After a crash each of them is
// judged by itself.
inline constexpr std::size_t kIntentsAtOnce = 64;

struct Opening {
  // What the first run that could not start its attempt waits for.
  enum class Wait {
    kNothing,
    kBackoff,      // until `due`
    kOldPod,       // podReplacementPolicy Failed
    kPermit,       // its queue has not admitted the job
    kTurn,         // its namespace has used up its creations of pods
    kWorker,       // its pool has no free slot for it
    kEmptyWorker,  // it needs a worker of its own, and its pool has none
    kConfirm,      // a live read of its old pod
    kPaused,       // spec.parallelism is 0
    kVersion,      // of the operator: it does not know all of the job's spec
    kGuard,        // Observed::guard
  };
  Wait wait = Wait::kNothing;
  std::int64_t index = 0;                // of that run
  std::vector<std::int64_t> to_confirm;  // the indexes of all runs that wait for a live read
  // When the first back-off ends.
  std::optional<Time> due;
  bool opened = false;
  // A run waits for its turn to create a pod, whatever the first one waits for.
  bool wants_turn = false;
  // A run would open if the guard were as it should be: look again then.
  bool wants_guard = false;
  // A run would open if the job's queue admitted it.
  bool wants_permit = false;
  // So many runs would open if the job's pool had slots for them.
  std::int64_t wants_slots = 0;
  // The same for runs that need a worker of their own.
  std::int64_t wants_empty = 0;
};

// Starts attempts in `next`, the lowest index first: of runs whose back-off is over, and of runs
// that have not begun. No more than spec.parallelism are open, and a run in back-off is not.
//
// just_ended: the runs whose attempt this decision ends, by index. A live read came before.
// losses: how many of them are lost. As many more than kIntentsAtOnce may open, because the bound
// of
//         a loss holds for each run.
Opening open_runs(const Context& context, const std::set<std::int64_t>& just_ended,
                  std::size_t losses, Status& next);

// The runs on record that spec.completions leaves out: it fell while the job was suspended. With
// podReplacementPolicy Failed, as all jobs of a pool have it, their last attempts must have stopped
// before the job forgets them. The runs may be asked for again. The fields `wait` and `to_confirm`
// say what that waits for.
Opening leave_out_runs(const Context& context);

// A run could open if this version of the operator knew all of the job's spec.
bool is_held_back(const Context& context, const Status& next);
// A run could open now if the guard were as it should be.
bool is_held_by_guard(const Context& context, const Status& next);

// The end of the run's recorded back-off, which an edit may not put off for ever. None: its attempt
// is open.
std::optional<Time> end_of_backoff(const Context& context, const Run& run);
// Records these ends in `next`. True: one was put off too far, by an edit or before maxSeconds was
// lowered.
bool bring_backoffs_forward(const Context& context, Status& next);

}  // namespace holdfast::reconciler
