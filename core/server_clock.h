// The API server's wall clock: the steady clock plus an offset learnt from the `Date` headers of
// its answers. Even replicas with wrong wall clocks agree to within one round trip.
//
// A Date header has whole seconds and was made between send and receipt. So the server's time at
// receipt lies in [date, date + 1 s + round trip]. The clock intersects the intervals of recent
// answers and takes the lower end. The interval widens with age, to follow drift.
//
// now() never falls while `at` does not. If only slower answers have come for kFollowsSoon, the
// clock goes at half its pace until it agrees with them.
//
// Several API servers with different clocks may share one address. The clock follows the fastest
// one. For kFollowsFor it then ignores servers that are slower by at most the difference that it
// has seen. So the time does not flap. If a server is faster by more than kLeap, the clock follows
// it only after kFollowsSoon without an answer that agrees with the clock. So a single server with
// a wrong clock ends no deadline.
//
// Loop only.
#pragma once

#include <chrono>

#include "core/time.h"

namespace holdfast {

class ServerClock {
 public:
  // Among many requests the answers of both servers alternate.
  static constexpr std::chrono::seconds kFollowsSoon{5};
  static constexpr std::chrono::seconds kLeap{60};
  // The few requests at rest reuse open connections, so their answers may all come from one server.
  static constexpr std::chrono::minutes kFollowsFor{10};

  // An answer with this Date header: the steady times of its request and its receipt.
  void observe(Time date, SteadyTime sent, SteadyTime received);

  // False until the first answer. Do not call now() before that.
  bool known() const { return known_; }

  // `at` may be in the past.
  Time now(SteadyTime at) const;

 private:
  Duration shown(SteadyTime at) const;
  bool is_ignored(Duration behind, SteadyTime received) const;

  bool known_ = false;
  SteadyTime updated_{};      // by an answer that was not ignored
  bool has_ignored_ = false;  // since then
  // How much slower some servers' answers may be, as was last seen then.
  Duration gap_{};
  SteadyTime gap_seen_{};
  Duration low_{};  // the offset server - steady lies in [low_, high_]
  Duration high_{};
  // now() shows low_, or this line if that is higher: from `above_` at `above_at_` it falls at half
  // the clock's pace.
  Duration above_{};
  SteadyTime above_at_{};
  mutable SteadyTime read_until_{};  // the latest `at` of now()
};

}  // namespace holdfast
