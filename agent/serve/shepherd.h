// One command and all its descendants, apart from those of the other slots.
//
// Between the agent and the command is one more process, the shepherd. It is the subreaper of the
// command. However often a descendant forks, and whichever process dies, all of them stay below it.
// So the kernel itself keeps the slots apart. The shepherd ends when no process is left below it.
//
//   agent -> shepherd -> command -> ...
//
// The command leads a process group of its own. It dies with its shepherd, and that with the agent
// (PDEATHSIG). Neither has a descriptor of the agent.
//
// The limit: a command may send SIGKILL to its shepherd, which has the same user. Then what it left
// comes to the agent itself. The agent has no other children, so these are killed (kill_orphans()).
//
// All calls on the thread that made the agent's first process; a shepherd dies with that thread.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::agent {

struct Command {
  std::vector<std::string> words;
  std::vector<std::string> environment;  // "NAME=value"
  // Descriptors, which stay the caller's.
  int in = -1;
  int out = -1;
  int err = -1;
};

class Shepherd {
 public:
  Shepherd() = default;
  ~Shepherd();
  Shepherd(const Shepherd&) = delete;
  Shepherd& operator=(const Shepherd&) = delete;

  // Only while no other command of it is alive. Returns why it cannot start; empty: it started. The
  // command does not run if it cannot begin before `before`.
  std::string start(const Command& command, SteadyTime before);

  // To the command's process group, through the shepherd.
  void terminate() const;
  // To all that is below the shepherd. A process that forks meanwhile needs another call.
  void kill() const;

  struct News {
    bool missed = false;           // it did not begin: no time or no process; it never will
    std::optional<int> exit_code;  // of the command; 128 + n: by signal n
    bool closed = false;           // nothing more comes
  };
  // The shepherd's news since the last call. Wait for descriptor() to be readable.
  News read();
  int descriptor() const { return socket_; }

  // The shepherd's own process, until reaped(); -1: none.
  pid_t pid() const { return pid_; }
  // waitpid() has returned its pid. If that was no proper end, orphans may be left.
  void reaped(int status);
  bool ended_well() const { return ended_well_; }

 private:
  void close();

  pid_t pid_ = -1;
  int socket_ = -1;
  bool ended_well_ = true;
};

// SIGKILL to the agent's own children except these, and to all below them. Returns how many are
// left, zombies too.
std::size_t kill_orphans(const std::vector<pid_t>& shepherds);

}  // namespace holdfast::agent
