// Who is whose child, by /proc.
//
// It reads only /proc/PID/stat: that never waits for the process or for a disk.
#pragma once

#include <sys/types.h>

#include <map>
#include <vector>

namespace holdfast::agent {

class ProcessTable {
 public:
  // As it is now. Processes that fork meanwhile may be missing.
  static ProcessTable read();

  // All descendants of the process, zombies too.
  std::vector<pid_t> below(pid_t process) const;
  std::vector<pid_t> children_of(pid_t process) const;

 private:
  std::multimap<pid_t, pid_t> by_parent_;
};

// SIGKILL to all descendants of the agent. A process that forks meanwhile needs another call.
void kill_descendants();

}  // namespace holdfast::agent
