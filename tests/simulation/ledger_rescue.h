// S25 Freed: checks what replicas do to the pods of other controllers. A part of the Ledger.
// - The write that frees a pod names its UID and version. A live look at the Lease of its node comes
//   right before it.
// - The node has been silent for the pod's window, and most others have not fallen silent with it.
// - A pod is freed once, and only if nothing forbids it. Only a freed pod is deleted.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class RescueLedger {
 public:
  struct Dependencies {
    Scheduler& scheduler;
    Gateway& gateway;
    const Cluster& cluster;
    std::function<void(const std::string&)> complain;
    // Of the fastest replica's clock, in parts per million.
    std::function<std::int64_t()> fastest_rate;
  };
  explicit RescueLedger(Dependencies dependencies) : deps_(std::move(dependencies)) {}

  // These follow a replica's requests. `sent`: a write.
  void sent(const Delivery& delivery, const Json& body);
  void handled(const Delivery& delivery);
  void answered(const Delivery& delivery, int status);
  // A write that the server took. `by_replica`: a replica's.
  void pod_written(const Applied& applied, bool by_replica);
  void node_renewed(const std::string& node) { renewals_[node].push_back(deps_.scheduler.now()); }
  void data_restored() { restored_ = true; }

  // The pod with this UID is one of other controllers.
  bool knows(const std::string& uid) const { return uids_.contains(uid); }

 private:
  using Life = std::pair<int, std::uint64_t>;
  struct Look {
    Duration handled{0};
    Duration answered{-1};
  };
  void check_freeing(const Delivery& delivery, const Json& body);
  void check_mark(const Json& pod, Duration looked, const std::string& what) const;
  void check_silence(const Json& pod, Duration looked, const std::string& what) const;
  void check_breaker(const Json& pod, const std::string& what) const;
  Duration silent_at(const std::string& node, Duration when) const;

  const Dependencies deps_;
  std::set<std::string> uids_;
  std::map<std::pair<Life, std::string>, Look> looks_;  // by the node
  std::map<std::string, std::vector<Duration>> renewals_;
  bool restored_ = false;
};

}  // namespace holdfast::simulation
