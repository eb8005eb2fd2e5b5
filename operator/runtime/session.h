// What works with the API server: the connection, Events, notifications and the Manager. It owns
// the order in which they start and stop.
//
//   connect: reads the targets of notifications, connects, and makes the others. An error says why
//            it cannot.
//   stop:    the Manager ends its work, then Events are finished, then all requests are cancelled.
//            Work that hangs is cancelled after 15 s.
//
// Loop only. Destroy it once it has stopped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "client/kube/client.h"
#include "client/kube/connection.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/random.h"
#include "operator/events/events.h"
#include "operator/notify/https_poster.h"
#include "operator/runtime/descriptors.h"
#include "operator/runtime/manager.h"
#include "operator/runtime/metrics.h"
#include "operator/runtime/options.h"

namespace holdfast::runtime {

class Session {
 public:
  struct Dependencies {
    Loop& loop;
    Random& random;
    Log log;
    Metrics& metrics;
    kube::RequestObserver observer;
    // The operator can never work here; the error says what to do.
    std::function<void(Error)> refuse;
  };
  static Result<std::unique_ptr<Session>> connect(Dependencies dependencies,
                                                  const Options& options);
  ~Session();

  void start() { manager_->start(); }
  // `stopped` may destroy the Session.
  void stop(std::function<void()> stopped);

  kube::Client& client() { return connection_->client(); }
  Manager& manager() { return *manager_; }

 private:
  explicit Session(Dependencies dependencies) : deps_(std::move(dependencies)) {}
  void make_parts(const Options& options, notify::Targets targets);
  Metrics::Sources metric_sources();
  void manager_stopped();
  void end_when_idle();

  Dependencies deps_;
  // In start order; destroyed in reverse.
  std::unique_ptr<kube::Connection> connection_;
  std::unique_ptr<events::EventRecorder> events_;
  std::unique_ptr<notify::HttpsPoster> poster_;
  std::unique_ptr<Manager> manager_;

  std::function<void()> stopped_;
  TimerId leave_timer_ = 0;
  bool manager_stopped_ = false;
  SteadyTime idle_deadline_{};
};

// For raise_descriptor_limit(). `per_connection`: of each connection to the API server.
DescriptorUse descriptor_use(const Options& options, std::uint64_t per_connection);

}  // namespace holdfast::runtime
