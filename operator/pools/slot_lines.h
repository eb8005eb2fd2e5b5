// The two lines for slots of one pool: runs that take any free slot, and runs that need a worker of
// their own. A job may be in both. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "operator/codecs/job_codec.h"
#include "operator/pools/slot_line.h"
#include "reconciler/types.h"

namespace holdfast::pools {

struct SlotLines {
  SlotLine any;
  SlotLine alone;
  std::optional<SteadyTime> last_turn;  // when a job last took its slots

  // So many runs of the job wait now in each line. Zero: it leaves.
  void ask(const codecs::CachedJob& job, std::int64_t runs, std::int64_t runs_alone,
           SteadyTime now);
  void leave(const std::string& job_uid);

  // Since when the job waits in either line; none: it does not.
  std::optional<SteadyTime> since(const std::string& job_uid) const;
  // For how long the job has waited for a slot, and since the last job got one.
  reconciler::TurnWait wait_of(const std::string& job_uid, SteadyTime now) const;

  // All runs that wait, and since when the oldest of their jobs exists.
  std::int64_t wanted() const { return any.wanted() + alone.wanted(); }
  std::optional<Time> oldest() const;
  // The names of the jobs.
  std::vector<std::string> names() const;
  bool empty() const { return any.empty() && alone.empty(); }
};

}  // namespace holdfast::pools
