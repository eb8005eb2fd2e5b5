// Which watched namespaces have been read. A namespace is read once all its kinds have been fresh,
// since the start or the last lapse. Before that, the operator does nothing about its jobs.
//
// A reading is over once the cluster-scoped kinds are watched, and each namespace is read or has
// trouble. After kPatience it no longer waits for late namespaces; they join when they are read.
//
// Loop only. Its only use of time is the timer of kPatience.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "core/log.h"
#include "core/loop.h"

namespace holdfast::observe {

class NamespaceReadings {
 public:
  // How long to wait for late namespaces after the first was read.
  static constexpr std::chrono::seconds kPatience{5};

  struct Dependencies {
    Loop& loop;
    Log log;
    std::vector<cache::Informer*> of_cluster;
    std::vector<cache::Informer*> of_namespaces;
  };
  // `namespaces`: empty means all, read together. `on_read` runs for each namespace that is read
  // after the reading was over; "" means all.
  NamespaceReadings(Dependencies dependencies, std::vector<std::string> namespaces,
                    std::function<void(const std::string& watched)> on_read);
  ~NamespaceReadings() { stop(); }

  // Begins a reading of everything. `over` runs once, unless another reading begins first.
  void begin(std::function<void()> over);
  bool read(const std::string& namespace_) const;
  // No callback runs after it.
  void stop();

 private:
  void look();
  bool is_over();
  bool has_trouble(const std::string& watched) const;

  Dependencies deps_;
  const std::vector<std::string> watched_;
  const std::function<void(const std::string&)> on_read_;
  std::set<std::string> unread_;
  std::function<void()> over_;  // none: no reading in progress
  TimerId patience_ = 0;
  bool patience_is_over_ = false;
  bool stopped_ = true;
};

}  // namespace holdfast::observe
