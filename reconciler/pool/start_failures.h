// Which workers of a pool failed to start, and what its status records of them. The rules are in
// size.h. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reconciler/pool/size.h"

namespace holdfast::reconciler {

// A worker that serves ends the row of failures if it is of the current template.
bool has_older_template(const PoolState& state, const PoolWorker& worker);

// The back-off after so many failures in a row, from one.
Duration start_delay(std::int64_t failures);

// Keeps pointers into the state.
class StartFailures {
 public:
  // Counts one failure if any is not yet on record.
  explicit StartFailures(const PoolState& state);

  // The workers of the current template that failed. Some of them may still start.
  const std::vector<const PoolWorker*>& failing() const { return failing_; }
  bool is_failing(const PoolWorker& worker) const;
  // It served for a moment, and that is no failure while another worker lasts.
  bool is_excused(const PoolWorker& worker) const;
  // Its failure was on record before: deleting its pod does not count it again.
  bool may_replace(const PoolWorker& worker) const;
  // No pod is created for so long; none: one may be created now.
  std::optional<Duration> pause() const;

  // The next record. `live`: the workers that are. `at_rest`: the pool has no worker that starts,
  // and makes none.
  StartRecord record(const std::vector<const PoolWorker*>& live, bool at_rest) const;

 private:
  bool is_recorded(Time created) const { return record_.next && created < *record_.next; }
  bool has_failed(const PoolWorker& worker) const;
  bool serves(const PoolWorker& worker) const;
  bool lasts(const PoolWorker& worker) const;
  bool is_newest(const PoolWorker& worker) const;
  std::int64_t newest_ended() const;
  void find();

  const PoolState& state_;
  StartRecord record_;
  std::optional<Time> recorded_;  // the next start that is on record already
  std::vector<const PoolWorker*> failing_;
  std::vector<const PoolWorker*> excused_;
};

}  // namespace holdfast::reconciler
