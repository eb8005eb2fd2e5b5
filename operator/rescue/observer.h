// Observes what --rescue=on would do, and writes it down (docs/rescue.md, Observe). It reads pods,
// nodes and the Leases of nodes. It writes one Lease and one ConfigMap, and nothing else.
//
// The judgement is that of rescue: the same silences, the same live look, the same refusals. All
// pods of Jobs are judged, and those with the label.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "client/cache/view.h"
#include "operator/observe/node_monitor.h"
#include "operator/observe/window_keeper.h"
#include "operator/rescue/journal_store.h"
#include "operator/rescue/observer_lease.h"
#include "operator/rescue/rescuer.h"

namespace holdfast::rescue {

class Observer {
 public:
  struct Config {
    std::string namespace_;  // of its Lease and its ConfigMap
    std::string self;        // no other process has it
    reconciler::MemberTimings timings;
    std::vector<std::string> namespaces = {};  // of the pods; empty: all
    std::set<std::string> owners = {};         // see Config of the controller
    int most_per_minute = 60;
  };
  Observer(const cache::Informer::Dependencies& shared, Config config);
  ~Observer();

  void start();
  void stop(std::function<void()> stopped);
  bool synced();
  // This replica is the one that observes.
  bool acting() const { return lease_.acting(); }
  std::vector<cache::Informer*> informers();

 private:
  using PodView = cache::View<CachedRescuePod>;
  using Nodes = std::set<std::string>;
  // Nothing is written under it.
  class NoWrites : public controller::Gate {
    bool holds(const Claim&) const override { return false; }
    Duration time_left() const override { return Duration::zero(); }
  };
  // At the node of a pod.
  struct LookState {
    bool under_way = false;
    SteadyTime next{};  // it led nowhere, so not before
  };
  // When the node of an entry renewed again.
  struct Return {
    SteadyTime seen;
    Time at;
  };

  void tick();
  void judge_all(PodView pods, const Nodes& silent);
  reconciler::RescueDecision decide(const CachedRescuePod& pod, const Rescuer::Look* look);
  // `stays`: why it would be left; empty: it would be freed.
  reconciler::JournalEntry entry_of(const CachedRescuePod& pod, std::string stays);
  Task<void> look(RescuePodPtr pod);
  void on_pod(const PodView::Change& change);
  void on_lease(const cache::Change& change);
  // If it is there. It may be in both caches.
  RescuePodPtr pod_of(const std::string& key, const std::string& uid);
  // What became of those whose pods are gone or have ended.
  void note_ends(reconciler::Journal::Fate of_others);
  void note_returns();
  Time now() const;

  const cache::Informer::Dependencies shared_;
  const Config config_;
  cache::Informer job_pods_;
  cache::Informer labelled_;
  observe::NodeMonitor nodes_;
  observe::WindowKeeper windows_;
  NoWrites gate_;
  Rescuer rescuer_;
  ObserverLease lease_;
  reconciler::RescueAllowance allowance_;
  JournalStore store_;
  std::map<std::string, LookState> looks_;  // by the pods' UIDs
  std::map<std::string, Return> returns_;   // by the open entries' UIDs
  bool begun_ = false;                      // the Lease is asked for
  TimerId timer_ = 0;
};

}  // namespace holdfast::rescue
