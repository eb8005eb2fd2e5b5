// Decides what should happen to one job now. Pure: no clock, no I/O, no randomness.
//
// decide() returns writes in order, intent first. The executor performs them one by one and stops
// at the first failure. After any prefix, the next decide() continues from the state in the API
// server. It keeps the rules S1-S13 of docs/internals/verification.md.
#pragma once

#include <optional>
#include <vector>

#include "reconciler/types.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

struct Decision {
  std::vector<Write> writes;
  // Verdicts, or second creations of pods, need a live read. For each of these runs (by index) read
  // the pod of its last attempt with node and node Lease, and the run's Lease. Read the job last.
  // Then decide again with RunObserved::confirmed. If the job has changed since the view, decide
  // from the start. `writes` is empty then. No runs: read the last pod of a job that has none.
  bool confirm = false;
  std::vector<std::int64_t> confirm_runs;
  // The attempts of Observed::creations whose pods are to be read, too. If such a pod does not
  // exist, its creation is no longer open.
  std::vector<std::int64_t> confirm_creations;
  // Open a run once Observed::may_create is true.
  bool awaits_creation = false;
  // Open a run once its queue has admitted the job (PermitView::admitted).
  bool awaits_permit = false;
  // Open so many runs once the job's pool has slots for them (PoolView::offers).
  std::int64_t awaits_slots = 0;
  // The same for runs that need a worker of their own (PoolView::empty).
  std::int64_t awaits_empty = 0;
  // The job has ended, and only a write that settles it is missing: Settling::kNow makes it.
  bool lacks_settled = false;
  // The job is settled, and nothing of it is left but what its time to live asks for.
  bool at_rest = false;
  // Decide again after this time, or earlier after an event.
  std::optional<Duration> wake_after;
};

Decision decide(const JobView& view, Time now);

}  // namespace holdfast::reconciler
