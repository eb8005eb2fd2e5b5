// The child and all its descendants.
//
// The child leads a process group of its own, with no signal blocked. It dies with the agent, even
// if the agent is killed (PDEATHSIG). Its descendants stay below the agent however often they fork,
// because the agent is their subreaper. One Child for each process. Call block_signals() first.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::agent {

class Child {
 public:
  Child();

  // Starts the child, or starts it again after its end. Returns why it cannot be started; empty: it
  // started. The command does not run at all if
  // it cannot begin before `before`. If the command cannot be run, the child says so on stderr and
  // exits with 127 or 126.
  std::string start(const std::vector<std::string>& command, SteadyTime before);

  // Sends a signal to the child's process group.
  void signal(int number) const;
  // Sends SIGKILL to all descendants of the agent. A process that forks meanwhile needs another
  // call.
  void kill_all() const;

  struct Reaped {
    std::optional<int> exit_code;  // the child's, if it has just ended; 128 + n: by signal n
    bool none_left = false;
  };
  Reaped reap();

 private:
  pid_t pid_ = -1;  // also the group's ID; -1: not started
  bool ended_ = false;
};

}  // namespace holdfast::agent
