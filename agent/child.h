// The child and everything that descends from it.
//
// The child is the leader of a process group of its own, with no signal blocked. It dies with the
// agent, whatever ends that (PDEATHSIG). What it starts stays below the agent, however often it
// forks away: the agent is its subreaper. One for each process; block_signals() comes first.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::agent {

// The signals that the agent reads from a descriptor: those to hand on to the child, and SIGCHLD.
sigset_t handled_signals();
// Blocks them, and ignores SIGPIPE (lost readers of stderr must not end the agent).
void block_signals();

class Child {
 public:
  Child();

  // Empty, or why it cannot be started. Nothing runs of the command unless it is begun before this
  // time. A command that cannot be run says so on stderr and ends with 127 or 126.
  std::string start(const std::vector<std::string>& command, SteadyTime before);

  // To its process group.
  void signal(int number) const;
  // SIGKILL to everything that descends from the agent. What forks meanwhile is met by the next
  // call.
  void kill_all() const;

  struct Reaped {
    std::optional<int> exit_code;  // the child's, when it has ended just now; 128 + n: by signal n
    bool none_left = false;
  };
  Reaped reap();

 private:
  pid_t pid_ = -1;  // also its group's; -1: not started
  bool ended_ = false;
};

}  // namespace holdfast::agent
