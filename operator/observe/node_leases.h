// The Leases of nodes: when each last changed, as this replica and earlier ones have seen it. The
// clock runs only while the watch is open and the API server can write.
//
// NodeMonitor uses it for pods of ours, and rescue/ for those of other controllers. Loop only.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "client/kube/client.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/observe/look_times.h"
#include "operator/observe/window_keeper.h"
#include "reconciler/staleness.h"

namespace holdfast::observe {

inline constexpr const char* kNodeLeaseNamespace = "kube-node-lease";

class NodeLeases {
 public:
  // `on_answer`: a live read has succeeded, and is recorded next.
  NodeLeases(const cache::Informer::Dependencies& dependencies, std::function<void()> on_answer);

  // A write of ours, or a consistent read, succeeded.
  void proof(SteadyTime at) { clock_.proof(at); }
  // The state of the watch may have changed.
  void update();
  reconciler::LiveTime time();

  struct Silence {
    std::optional<Duration> silent_for;  // none: no Lease, or nothing known
    bool in_doubt = false;               // RecordTracker::in_doubt()
  };
  // `window`: how long it may last. `asked`: up to when.
  Silence silence(const std::string& node, Duration window, const LookTimes& asked = {});

  // Most have been silent for over half of this, or of 24 s if that is longer: see
  // RecordTracker::breaker(). Nodes renew every 10 s.
  bool most_are_silent(Duration window);

  // Those whose Lease has not changed for so long.
  std::set<std::string> silent_nodes(Duration at_least);
  // Those that have not been heard for kNodeHeard, each once for each silence.
  std::vector<std::string> take_unheard();
  // It is not silent yet: take_unheard() will have it once it is.
  bool is_heard(const std::string& node);

  // Records the silence of every node, by one shard each. So in_doubt() counts the same nodes after
  // a restart.
  void keep_every_window(WindowKeeper& windows,
                         const std::function<int(const std::string& node)>& shard_of);

  // Reads the Lease live, until `by` at the latest, and records the result. kNotFound: the node has
  // none.
  Task<Result<>> confirm(std::string node, SteadyTime by);
  Task<Result<JsonDocument>> get(std::string node, SteadyTime by);
  // What a live read has shown. It may be newer than the watch.
  void see_live(const std::string& node, const JsonView& lease);
  // The Lease in the cache, unless the tracker knows it already.
  void see_cached(const std::string& node);
  kube::ObjectPtr cached(const std::string& node);

  cache::Informer& informer() { return informer_; }
  reconciler::RecordTracker& tracker() { return tracker_; }

 private:
  // The last answer of most_are_silent().
  struct Most {
    Duration window{0};
    std::optional<SteadyTime> at;
    bool are_silent = false;
  };
  Loop& loop_;
  kube::Client& client_;
  const std::function<void()> on_answer_;
  cache::Informer informer_;
  reconciler::LiveClock clock_;
  reconciler::RecordTracker tracker_;
  Most most_;
  std::set<std::string> unheard_;  // as of the last take_unheard()
};

}  // namespace holdfast::observe
