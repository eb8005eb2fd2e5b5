// Turns SIGTERM and SIGINT into a callback. There is no signal handler.
//
//   block_stop_signals();                  // first thing in main(), before any thread
//   StopSignals signals([&](std::string name) { loop.post([&] { stop(name); }); }, limit, log);
//
// The first signal asks for a clean stop. A second signal, or `limit` after the first, ends the
// process at once. The signal thread does this, so it works even if the loop is stuck.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "core/log.h"
#include "core/time.h"

namespace holdfast::runtime {

inline constexpr int kExitFailed = 1;
// The exit code of such a forced end.
inline constexpr int kExitCutShort = 3;

// Blocks the signals in the calling thread and the threads that it starts. Ignores SIGPIPE.
void block_stop_signals();

class StopSignals {
 public:
  // `on_stop` runs on this object's thread.
  StopSignals(std::function<void(const std::string& name)> on_stop, Duration limit, Log log);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Counts as the first signal, for a stop with another reason: the limit starts now. Any thread.
  void stop_has_begun();

 private:
  void run();
  void cut_short(const std::string& why);

  // Constant after construction.
  std::function<void(const std::string&)> on_stop_;
  Duration limit_;
  Log log_;
  int signal_fd_;
  int begun_fd_;  // eventfd: stop_has_begun()
  int end_fd_;    // eventfd: the destructor
  std::thread thread_;
};

}  // namespace holdfast::runtime
