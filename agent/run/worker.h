// `holdfast-agent run`: carries out the Guard's orders. One epoll loop; its time is CLOCK_BOOTTIME,
// which goes on while the machine sleeps. The loop's thread touches no file and not stderr, because
// it must be able to kill the child while they hang. Two other threads do, and the loop never waits
// for them.
//
//   Worker worker(settings, {"train", "--epochs=3"});
//   return worker.run();              // the exit code of the process
//
// After every wake-up the loop checks the Guard's deadlines first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "agent/base/checkpoint.h"
#include "agent/base/file_thread.h"
#include "agent/base/progress.h"
#include "agent/run/child.h"
#include "agent/run/guard.h"
#include "agent/run/settings.h"
#include "agent/wire/api_client.h"
#include "agent/wire/lease.h"
#include "core/random.h"

namespace holdfast::agent {

class Worker {
 public:
  // Call block_signals() first.
  Worker(Settings settings, std::vector<std::string> command);

  int run();

 private:
  void watch(boost::asio::posix::stream_descriptor& descriptor, std::function<void()> ready);
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
  struct Told {
    std::optional<std::string> progress;
    std::optional<Checkpoint> checkpoint;
    std::optional<std::string> not_acknowledged;  // its id: to be tried again
  };
  void tended(Told told, bool last);

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
  FileThread files_;
  // Used by the thread of files_.
  const std::shared_ptr<ProgressFile> progress_;
  const std::shared_ptr<CheckpointFile> checkpoints_;
  std::int64_t checkpoint_ = 0;      // how many the child has left
  std::string checkpoint_id_;        // of the last one
  std::optional<std::string> kept_;  // the id of one that the API server has, not told yet
  bool started_ = false;             // the child
  bool ended_ = false;               // the child
  bool none_left_ = false;           // no descendant is left
  bool last_look_ = false;           // the progress file was read after the child's end
  std::uint64_t request_ = 0;        // the number of the last request
  SteadyTime wake_at_{};
  SteadyTime look_at_{};
  bool tend_again_ = false;
  bool clear_log_ = false;  // the termination message, before the command runs again
  std::string left_state_;
  std::vector<std::string> lines_;  // waiting for stderr
  std::optional<int> exit_code_;
};

}  // namespace holdfast::agent
