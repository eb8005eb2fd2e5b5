// What a process does with the API server between its start and its stop: a Session, or with
// --rescue=observe an ObserverSession. It owns the connection, which ends last.
//
// Loop only. Destroy it once it has stopped.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "client/kube/connection.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/random.h"
#include "operator/runtime/health.h"
#include "operator/runtime/metrics.h"
#include "operator/runtime/options.h"

namespace holdfast::runtime {

class Work {
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
  virtual ~Work();

  virtual void start() = 0;
  // `stopped` may destroy it. Work that hangs is cancelled after 15 s.
  void stop(std::function<void()> stopped);

  // The caches without which the process is not ready.
  virtual std::vector<cache::Informer*> needed() = 0;
  virtual bool synced() = 0;
  // It is synced for the first time.
  virtual void on_ready() {}
  virtual std::vector<WatchHealth> health(SteadyTime now);
  // As JSON, for /debug/ownership.
  virtual std::string ownership() { return "{}"; }

 protected:
  Work(Dependencies dependencies, std::unique_ptr<kube::Connection> connection)
      : deps_(std::move(dependencies)), connection_(std::move(connection)) {}
  // `max_in_flight`: requests at once.
  static Result<std::unique_ptr<kube::Connection>> open(const Dependencies& dependencies,
                                                        const Options& options,
                                                        std::size_t max_in_flight);
  // Ends the work itself. Requests are cancelled after `ended`.
  virtual void finish(std::function<void()> ended) = 0;
  static std::map<std::string, Metrics::WatchState> states_of(
      const std::vector<cache::Informer*>& informers);

  kube::Client& client() { return connection_->client(); }

  Dependencies deps_;
  std::unique_ptr<kube::Connection> connection_;

 private:
  void end_when_idle();

  std::function<void()> stopped_;
  TimerId leave_timer_ = 0;
  bool finished_ = false;
  SteadyTime idle_deadline_{};
};

}  // namespace holdfast::runtime
