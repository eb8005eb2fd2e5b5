// The operator from start to stop.
//
//   start: configuration, probes and metrics, API client, caches, controller
//   stop:  the other way round: reconciles in flight end, watches and requests end, probes last
//
// Everything but the probe server and the signals lives on the loop, which runs on the thread that
// calls run().
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/client.h"
#include "client/kube/connection.h"
#include "core/log.h"
#include "core/random.h"
#include "core/real_loop.h"
#include "operator/jobs/events.h"
#include "operator/jobs/job_controller.h"
#include "operator/runtime/health.h"
#include "operator/runtime/metrics.h"
#include "operator/runtime/options.h"
#include "operator/runtime/probe_server.h"
#include "operator/runtime/signals.h"

namespace holdfast::runtime {

class Process {
 public:
  // block_stop_signals() was called.
  Process(Options options, Log log);
  ~Process();

  // Blocks until a signal, or until it cannot go on. The exit code: 0 after a clean stop, 1 when it
  // could not work; the log says why.
  int run();

 private:
  Status serve_probes();
  void start();
  Status connect();
  void tick();
  void look_at_caches();
  bool caches_come();
  std::vector<WatchHealth> watch_health();
  void begin_stop(const std::string& why, int exit_code);
  void controller_stopped();
  void end_when_idle();

  std::map<std::string, ProbeServer::Handler> probe_handlers();
  kube::RequestObserver request_observer();
  Metrics::Sources metric_sources();

  const Options options_;
  const Log log_;
  RealLoop loop_;
  SeededRandom random_;
  Health health_;

  // In the order of the start; destroyed in the opposite one.
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<ProbeServer> probes_;
  std::unique_ptr<kube::Connection> connection_;
  std::unique_ptr<controller::EventRecorder> events_;
  std::unique_ptr<controller::JobController> controller_;
  std::unique_ptr<StopSignals> signals_;

  // The loop's.
  std::optional<SteadyTime> answered_at_;  // when the API server last did
  SteadyTime started_at_{};
  SteadyTime last_report_{};
  SteadyTime idle_deadline_{};
  bool ready_told_ = false;
  bool stopping_ = false;
  bool controller_stopped_ = false;
  int exit_code_ = 0;
};

}  // namespace holdfast::runtime
