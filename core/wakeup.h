// Lets one thread sleep until another thread wakes it or a steady time has come. A condition
// variable would not do: its clock stops while the machine is suspended, so timers would run late.
//
// One thread waits; any thread may signal. The constructor throws std::system_error if the process
// is out of file descriptors.
#pragma once

#include <optional>

#include "core/time.h"

namespace holdfast {

class Wakeup {
 public:
  Wakeup();
  ~Wakeup();
  Wakeup(const Wakeup&) = delete;
  Wakeup& operator=(const Wakeup&) = delete;

  // Ends the current wait, or else the next one at once. Any thread.
  void signal();

  // No time: waits until signalled. May end early.
  void wait(std::optional<SteadyTime> until);

 private:
  int event_;
  int timer_;
};

}  // namespace holdfast
