// The loop of an agent: one epoll loop with a timer, the process's signals, and the lines that wait
// for stderr. Its time is CLOCK_BOOTTIME, which goes on while the machine sleeps.
//
//   AgentLoop loop(16);  // after block_signals()
//   loop.watch(time_has_come, signals_have_come);
//   loop.wake_at(due);
//   while (!loop.exit_code()) loop.turn();
//
// The loop's thread touches no disk and not stderr, because it must be able to kill processes while
// they hang. A FileThread writes the lines. Loop only; the constructor throws std::system_error.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "core/time.h"

namespace holdfast::agent {

class AgentLoop {
 public:
  // `most_lines`: that wait for stderr. More come only if that hangs, and are lost.
  explicit AgentLoop(std::size_t most_lines);

  boost::asio::io_context& io() { return io_; }
  // Calls them from turn(), until the end.
  void watch(std::function<void()> due, std::function<void()> signals);
  // The timer is set to this time, or to at once if it has passed.
  void wake_at(SteadyTime due);
  // The next signal that has come. None: no signal is left, or the loop has ended.
  std::optional<int> next_signal();
  void turn() { io_.run_one(); }

  void say_later(std::string line);
  bool has_lines() const { return !lines_.empty(); }
  std::vector<std::string> take_lines();

  void end(std::optional<int> exit_code) { exit_code_ = exit_code; }
  // Of the process; none: it goes on.
  const std::optional<int>& exit_code() const { return exit_code_; }

 private:
  void wait(boost::asio::posix::stream_descriptor& descriptor, std::function<void()> ready);

  // Constant after construction.
  const std::size_t most_lines_;

  boost::asio::io_context io_;
  boost::asio::posix::stream_descriptor timer_;
  boost::asio::posix::stream_descriptor signals_;
  std::vector<std::string> lines_;
  std::optional<int> exit_code_;
};

}  // namespace holdfast::agent
