// Rounds of SIGKILL until no process is left. A process that was forked meanwhile needs another
// round.
#pragma once

#include <algorithm>
#include <optional>

#include "agent/base/lease_times.h"
#include "core/time.h"

namespace holdfast::agent {

class KillRounds {
 public:
  // The first round is due then.
  void begin_at(SteadyTime when) { begin_at_ = when; }
  // A round goes out, whether it was due or not. The next one is due after the pause.
  void round(SteadyTime now, Duration pause = kKillAgain) {
    if (!began_) began_ = begin_at_ = now;
    next_ = now + pause;
  }
  // A round for what an ended command left, before anything else must die.
  void sweep(SteadyTime now) { next_ = now + kKillAgain; }

  SteadyTime due() const { return std::max(begin_at_, next_); }
  // When the first round went out.
  std::optional<SteadyTime> began() const { return began_; }
  // The rounds last this long without an end: more of them are of no use.
  bool last(SteadyTime now, Duration limit) const { return began_ && now - *began_ >= limit; }

 private:
  SteadyTime begin_at_{};
  SteadyTime next_{};
  std::optional<SteadyTime> began_;
};

}  // namespace holdfast::agent
