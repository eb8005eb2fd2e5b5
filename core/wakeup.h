// What a thread sleeps on until another wakes it or a steady time has come, whichever is first. A
// condition variable would not do: its clock stands still while the machine is suspended, so a
// timer would run as much later.
//
// One thread waits; any may signal. The constructor throws std::system_error when the process is
// out of file descriptors.
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

  // The wait in progress ends, or else the next one at once. Any thread.
  void signal();

  // No time: until signalled. It may also end early.
  void wait(std::optional<SteadyTime> until);

 private:
  int event_;
  int timer_;
};

}  // namespace holdfast
