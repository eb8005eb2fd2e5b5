// The API server's wall clock: the steady clock plus an offset learnt from the `Date` headers of
// its answers. Even replicas with wrong wall clocks agree to within one round trip.
//
// A Date header has whole seconds and was made between send and receipt. So the server's time at
// receipt lies in [date, date + 1 s + round trip]. The clock intersects the intervals of recent
// answers and takes the lower end. This time never falls, and is never ahead of the server by more
// than one round trip. The interval widens with age, to follow drift and a stepped server clock.
#pragma once

#include <optional>

#include "core/time.h"

namespace holdfast {

class ServerClock {
 public:
  // An answer with this Date header: the steady times of its request and its receipt.
  void observe(Time date, SteadyTime sent, SteadyTime received);

  // False until the first answer. Do not call now() before that.
  bool known() const { return known_; }

  Time now(SteadyTime at) const;

 private:
  bool known_ = false;
  SteadyTime updated_{};
  Duration low_{};  // the offset server - steady lies in [low_, high_]
  Duration high_{};
};

}  // namespace holdfast
