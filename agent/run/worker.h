// `holdfast-agent run`: carries out the Guard's orders, on an AgentLoop. Two other threads touch
// files and stderr, and the loop never waits for them.
//
//   Worker worker(settings, {"train", "--epochs=3"});
//   return worker.run();              // the exit code of the process
//
// After every wake-up the loop checks the Guard's deadlines first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/base/agent_loop.h"
#include "agent/base/command_files.h"
#include "agent/base/file_thread.h"
#include "agent/run/child.h"
#include "agent/run/guard.h"
#include "agent/run/settings.h"
#include "agent/wire/lease.h"
#include "agent/wire/lease_calls.h"
#include "core/random.h"

namespace holdfast::agent {

class Worker {
 public:
  // Call block_signals() first.
  Worker(Settings settings, std::vector<std::string> command);

  int run();

 private:
  void time_has_come();
  void signals_have_come();
  void reap();
  void child_is_over();
  void obey(const Orders& orders);
  void start_child(SteadyTime before);
  void send(const Orders& orders);
  void end(const Orders& orders);
  void set_timer();
  std::string state() const;
  void say_soon(std::string line);
  void tend();
  void tended(CommandFiles::Found found, bool last);

  // Constant after construction.
  const Settings settings_;
  const std::vector<std::string> command_;
  const Duration look_period_;

  AgentLoop loop_;
  LeaseCalls calls_;
  SeededRandom random_;
  Guard guard_;
  LeaseRecord lease_;
  Child child_;
  FileThread files_;
  CommandFiles command_files_;
  bool started_ = false;    // the child
  bool ended_ = false;      // the child
  bool none_left_ = false;  // no descendant is left
  bool last_look_ = false;  // the progress file was read after the child's end
  SteadyTime wake_at_{};
  SteadyTime look_at_{};
  bool tend_again_ = false;
  bool clear_log_ = false;  // the termination message, before the command runs again
};

}  // namespace holdfast::agent
