// The operator from start to stop.
//
//   start: configuration, probes and metrics, API client, caches, controller
//   stop:  the reverse: reconciles in flight end, then watches and requests, then the probes
// With --rescue=observe it observes, and does nothing else.
//
// The loop runs on the thread that calls run(). Only the probe server and the signals have other
// threads.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/random.h"
#include "core/real_loop.h"
#include "operator/runtime/first_sync.h"
#include "operator/runtime/health.h"
#include "operator/runtime/metrics.h"
#include "operator/runtime/options.h"
#include "operator/runtime/probe_server.h"
#include "operator/runtime/signals.h"
#include "operator/runtime/work.h"

namespace holdfast::runtime {

class Process {
 public:
  // Call block_stop_signals() first.
  Process(Options options, Log log);
  ~Process();

  // Blocks until a signal or a fatal error. Returns the exit code: 0 after a clean stop, 1 if the
  // operator could not work. The log says why.
  int run();

 private:
  Result<> serve_probes();
  void start();
  void refuse(const Error& error);
  void tick();
  void look_at_caches();
  void begin_stop(const std::string& why, int exit_code);

  std::map<std::string, ProbeServer::Handler> probe_handlers();
  kube::RequestObserver request_observer();

  const Options options_;
  const Log log_;
  RealLoop loop_;
  SeededRandom random_;
  Health health_;

  // In start order; destroyed in reverse.
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<ProbeServer> probes_;
  std::unique_ptr<Work> work_;
  std::unique_ptr<StopSignals> signals_;

  // Loop only.
  std::optional<SteadyTime> answered_at_;  // when the API server last answered
  FirstSync sync_;
  SteadyTime last_trim_{};
  bool stopping_ = false;
  int exit_code_ = 0;
};

}  // namespace holdfast::runtime
