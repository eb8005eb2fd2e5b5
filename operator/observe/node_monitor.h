// What this replica knows about the life of nodes, from their Leases and objects. Feeds the pure
// rules of reconciler/staleness.h. Its clocks run only while the watches are open and the renewals
// of our member Lease succeed. Nodes without a Lease are judged by their Ready condition. Loop
// only.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "client/cache/informer.h"
#include "client/kube/client.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/observe/look_times.h"
#include "operator/observe/namespace_clocks.h"
#include "operator/observe/node_leases.h"
#include "operator/observe/ready_conditions.h"
#include "operator/observe/shared_reads.h"
#include "operator/observe/window_keeper.h"
#include "reconciler/staleness.h"
#include "reconciler/types.h"

namespace holdfast::observe {

class NodeMonitor {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Random& random;
    Log log;
    cache::Informer& pods;                // for the liveness of its watches
    std::vector<std::string> namespaces;  // the pods'; empty: all
  };
  explicit NodeMonitor(Dependencies dependencies);
  ~NodeMonitor();

  // A node's object was created or deleted, or its Lease has not changed for kNodeHeard: look at the
  // node's pods. Of each silence it tells once.
  void on_node_change(std::function<void(const std::string& node)> handler);

  // A renewal succeeded for the first time, or for the first time in kGapLimit.
  void on_answers_again(std::function<void()> handler);

  void start();

  // One of our writes or consistent reads succeeded: the API server and its storage answer.
  void proof();

  // A pod is on this node: track from now on how long the node is missing or not ready.
  void look(const std::string& node);

  // `wanted`: which shards' jobs wait for a silent or missing node.
  using Wanted = std::function<WindowKeeper::Wanted(const std::string& node, bool missing)>;
  void keep_windows(WindowKeeper& windows, const Wanted& wanted);

  // `window`: how long the job allows a node to be silent or missing. `asked`: up to when.
  reconciler::NodeObservation observe(const std::string& node, Duration window,
                                      const LookTimes& asked = {});
  // Now, on the steady clock and those of nodes and of this namespace's pods.
  LookTimes look_times(const std::string& namespace_);

  // How long this namespace's watch of pods has been live without a gap. `asked`: up to when.
  Duration pods_live_for(const std::string& namespace_, const LookTimes& asked = {});
  reconciler::LiveTime pods_time(const std::string& namespace_);

  // Reads the node and its Lease live and records the result. An error, or no answer until `by`,
  // means that nothing is known: give no verdict. Jobs that ask about one node at the same time
  // share the reads.
  Task<Result<>> confirm(std::string node, SteadyTime by) {
    return reads_.ask(std::move(node), by);
  }

  cache::Informer& nodes() { return nodes_; }
  cache::Informer& leases() { return leases_.informer(); }
  NodeLeases& of_leases() { return leases_; }

 private:
  Task<Result<>> read(std::string node, SteadyTime by);
  void update_clocks();
  void on_lease(const cache::Change& change);
  void on_node(const cache::Change& change);
  void mark_missing(const std::string& node);
  void tell_of_silent_nodes();
  void forget_leases_without_nodes();
  reconciler::LiveTime node_time();

  Loop& loop_;
  kube::Client& client_;
  cache::Informer& pods_;
  cache::Informer nodes_;
  NodeLeases leases_;
  std::function<void(const std::string&)> on_node_change_;
  std::function<void()> on_answers_again_;

  SharedReads reads_;
  reconciler::LiveClock node_clock_;
  NamespaceClocks pod_clocks_;
  reconciler::RecordTracker missing_;  // nodes without an object
  ReadyConditions conditions_;         // of nodes without a Lease
  TimerId silence_timer_ = 0;
  std::optional<SteadyTime> last_proof_;
  bool knows_nodes_ = false;
};

}  // namespace holdfast::observe
