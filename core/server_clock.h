// The API server's wall clock, as seen from here: the steady clock plus an offset learnt from the
// `Date` headers of its answers. Replicas with wrong wall clocks agree to within the round trip.
//
// A Date header is cut to the second and was made between send and receipt, so each answer says:
// the server's time at receipt lies in [date, date + 1 s + round trip]. The clock keeps the
// intersection of what the last answers said and takes its lower end, which is monotone and never
// ahead of the server by more than one round trip. The interval is widened as it ages, so that
// drift and a stepped server clock are followed.
#pragma once

#include <optional>

#include "core/time.h"

namespace holdfast {

class ServerClock {
 public:
  // An answer with this Date header was sent for and received at these steady times.
  void observe(Time date, SteadyTime sent, SteadyTime received);

  // False until the first answer; now() may not be asked before.
  bool known() const { return known_; }

  Time now(SteadyTime at) const;

 private:
  bool known_ = false;
  SteadyTime updated_{};
  Duration low_{};  // the offset server - steady lies in [low_, high_]
  Duration high_{};
};

}  // namespace holdfast
