// What works with the API server: the connection, Events, notifications and the Manager. It owns
// the order in which they start and stop.
//
//   connect: reads the targets of notifications, connects, and makes the others. An error says why
//            it cannot.
//   stop:    the Manager ends its work, then Events are finished, then all requests are cancelled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "operator/events/events.h"
#include "operator/notify/https_poster.h"
#include "operator/runtime/descriptors.h"
#include "operator/runtime/manager.h"
#include "operator/runtime/work.h"

namespace holdfast::runtime {

class Session : public Work {
 public:
  static Result<std::unique_ptr<Work>> connect(Dependencies dependencies, const Options& options);
  ~Session() override;

  void start() override { manager_->start(); }
  std::vector<cache::Informer*> needed() override { return manager_->needed(); }
  bool synced() override { return manager_->synced(); }
  void on_ready() override;
  std::vector<WatchHealth> health(SteadyTime now) override;
  std::string ownership() override;

 private:
  using Work::Work;
  void make_parts(const Options& options, notify::Targets targets);
  Metrics::Sources metric_sources();
  void finish(std::function<void()> ended) override;

  // In start order; destroyed in reverse.
  std::unique_ptr<events::EventRecorder> events_;
  std::unique_ptr<notify::HttpsPoster> poster_;
  std::unique_ptr<Manager> manager_;
};

// For raise_descriptor_limit(). `per_connection`: of each connection to the API server.
DescriptorUse descriptor_use(const Options& options, std::uint64_t per_connection);

}  // namespace holdfast::runtime
