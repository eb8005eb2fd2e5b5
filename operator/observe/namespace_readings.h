// Which watched namespaces have been read: since the start, or since the last lapse, all their
// kinds have been fresh once. Nothing is done about the jobs of a namespace that was not.
//
// A reading is over once the cluster's own kinds are watched, and each namespace is read or has
// trouble; where that takes too long, without those that are late. They are taken in when they
// come.
//
// Loop only. Knows nothing of time but the one timer that ends its patience.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "core/log.h"
#include "core/loop.h"

namespace holdfast::controller {

class NamespaceReadings {
 public:
  // For namespaces that are late, counted from when the first was read.
  static constexpr std::chrono::seconds kPatience{5};

  struct Dependencies {
    Loop& loop;
    Log log;
    std::vector<cache::Informer*> of_cluster;
    std::vector<cache::Informer*> of_namespaces;
  };
  // `namespaces`: empty means all, which are then read together. `on_read`: this one has come after
  // the reading was over; "" stands for all.
  NamespaceReadings(Dependencies dependencies, std::vector<std::string> namespaces,
                    std::function<void(const std::string& watched)> on_read);
  ~NamespaceReadings() { stop(); }

  // Everything is to be read (anew). `over` runs once, unless another reading begins before.
  void begin(std::function<void()> over);
  bool read(const std::string& namespace_) const;
  // Nobody is told any more.
  void stop();

 private:
  void look();
  bool is_over();
  bool has_trouble(const std::string& watched) const;

  Dependencies deps_;
  const std::vector<std::string> watched_;
  const std::function<void(const std::string&)> on_read_;
  std::set<std::string> unread_;
  std::function<void()> over_;  // none: no reading is under way
  TimerId patience_ = 0;
  bool patience_is_over_ = false;
  bool stopped_ = true;
};

}  // namespace holdfast::controller
