// SIGTERM and SIGINT, turned into a callback; no work is done in a signal handler.
//
//   block_stop_signals();                  // first thing in main(), before any thread
//   StopSignals signals([&](std::string name) { loop.post([&] { stop(name); }); }, limit, log);
//
// The first signal asks for a clean stop. A second one, or `limit` after the first, ends the
// process at once from the signal thread, so that it works when the loop is stuck.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "core/log.h"
#include "core/time.h"

namespace holdfast::runtime {

// Exit code of a stop that was cut short.
inline constexpr int kExitCutShort = 3;

// Keeps the signals from the calling thread and from all that it starts; SIGPIPE is ignored.
void block_stop_signals();

class StopSignals {
 public:
  // `on_stop` runs on a thread of this class's.
  StopSignals(std::function<void(const std::string& name)> on_stop, Duration limit, Log log);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Has the effect of a first signal, for a stop that has other reasons: the limit counts from
  // here. Any thread.
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
