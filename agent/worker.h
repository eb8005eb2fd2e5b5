// `holdfast-agent run`: does what the Guard orders. One thread, one epoll loop; the time is
// CLOCK_BOOTTIME, which goes on while the machine sleeps.
//
//   Worker worker(settings, {"train", "--epochs=3"});
//   return worker.run();              // the exit code of the process
//
// After every wake-up the Guard's deadlines come first, whatever it was that woke the loop.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/api_client.h"
#include "agent/child.h"
#include "agent/guard.h"
#include "agent/lease.h"
#include "agent/progress.h"
#include "agent/settings.h"
#include "operator/core/random.h"

namespace holdfast::agent {

// A line on stderr. It is lost rather than waited for when nobody reads.
void say(const std::string& line);

class Worker {
 public:
  // block_signals() has been called.
  Worker(Settings settings, std::vector<std::string> command);

  int run();

 private:
  void watch(boost::asio::posix::stream_descriptor& descriptor, std::function<void()> ready);
  void time_has_come();
  void signals_have_come();
  void look_at_progress(SteadyTime now);
  void reap();
  void obey(const Orders& orders);
  void start_child(SteadyTime before);
  void send(const Orders& orders);
  void end(const Orders& orders);
  void set_timer();
  void leave_state();

  // Constant after construction.
  const Settings settings_;
  const std::vector<std::string> command_;
  const Duration look_period_;
  const std::string state_file_;

  boost::asio::io_context io_;
  boost::asio::posix::stream_descriptor timer_;
  boost::asio::posix::stream_descriptor signals_;
  ApiClient api_;
  SeededRandom random_;
  Guard guard_;
  LeaseRecord lease_;
  Child child_;
  ProgressFile progress_;
  bool started_ = false;       // the child
  std::uint64_t request_ = 0;  // the number of the last request
  SteadyTime wake_at_{};
  SteadyTime look_at_{};
  std::string left_state_;
  std::optional<int> exit_code_;
};

}  // namespace holdfast::agent
