// What this replica knows of the nodes' lives: their Leases and objects, on clocks that run only
// while the watches are open and the renewals of our own member Lease succeed. Feeds the pure rules
// of reconciler/staleness.h. Loop only.
//
// A node that never had a Lease (virtual kubelets, simulators) is judged by its Ready condition,
// where the node controller says Unknown. Nodes are watched by their metadata alone, so the
// condition is read live: once, and again whenever the watch shows that the object has changed.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>

#include "client/cache/informer.h"
#include "client/kube/client.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/observe/namespace_clocks.h"
#include "operator/observe/shared_reads.h"
#include "operator/observe/window_keeper.h"
#include "reconciler/staleness.h"
#include "reconciler/types.h"

namespace holdfast::controller {

inline constexpr const char* kNodeLeaseNamespace = "kube-node-lease";

class NodeMonitor {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    cache::Informer& pods;                // its liveness is watched too
    std::vector<std::string> namespaces;  // the pods'; empty: all
  };
  explicit NodeMonitor(Dependencies dependencies);
  ~NodeMonitor();

  // A node's object came or went: the pods on it should be looked at.
  void on_node_change(std::function<void(const std::string& node)> handler);

  // A renewal succeeded for the first time, or after none had for kGapLimit.
  void on_answers_again(std::function<void()> handler);

  void start();
  void stop();

  // A write of ours, or a consistent read, succeeded: the API server and its storage answer.
  void proof();

  // A pod is on this node: from now on it is known since when the node is missing or not ready.
  void look(const std::string& node);

  // `wanted`: whose jobs wait for a node that is silent, or for one that is missing.
  using Wanted = std::function<WindowKeeper::Wanted(const std::string& node, bool missing)>;
  void keep_windows(WindowKeeper& windows, const Wanted& wanted);

  // `window`: how long the job that asks lets a node be silent or missing.
  reconciler::NodeObservation observe(const std::string& node, Duration window);

  // How long this namespace's watch of pods has been live without a gap.
  Duration pods_live_for(const std::string& namespace_);
  reconciler::LiveTime pods_time(const std::string& namespace_);

  // Reads the node and its Lease live and takes what they say into account. An error: nothing is
  // known, no verdict may be given; so it is where `by` passes without an answer. Jobs that ask for
  // one node at the same time share its reads.
  Task<Status> confirm(std::string node, SteadyTime by) { return reads_.ask(std::move(node), by); }

  cache::Informer& nodes() { return nodes_; }
  cache::Informer& leases() { return leases_; }

 private:
  Task<Status> read(std::string node, SteadyTime by);
  void update_clocks();
  void on_lease(const cache::Change& change);
  void on_node(const cache::Change& change);
  void mark_missing(const std::string& node);
  void read_conditions();
  Task<void> read_condition(std::string node);
  void note_condition(const std::string& node, const JsonView& object);
  reconciler::LiveTime node_time();
  reconciler::LiveTime lease_time();

  Loop& loop_;
  kube::Client& client_;
  Log log_;
  cache::Informer& pods_;
  cache::Informer nodes_;
  cache::Informer leases_;
  std::function<void(const std::string&)> on_node_change_;
  std::function<void()> on_answers_again_;

  SharedReads reads_;
  reconciler::LiveClock node_clock_;
  reconciler::LiveClock lease_clock_;
  NamespaceClocks pod_clocks_;
  reconciler::RecordTracker lease_tracker_;
  reconciler::RecordTracker missing_;          // nodes that are not there
  reconciler::RecordTracker unready_;          // without a Lease, and Ready is Unknown
  std::unordered_set<std::string> leaseless_;  // whose Ready condition is asked for
  std::set<std::string> unread_;               // of those, to be read
  int reading_ = 0;
  std::optional<SteadyTime> last_proof_;
};

}  // namespace holdfast::controller
