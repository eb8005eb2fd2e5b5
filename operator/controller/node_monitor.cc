#include "operator/controller/node_monitor.h"

#include <algorithm>

#include "operator/controller/pod_codec.h"

namespace holdfast::controller {
namespace {

constexpr std::size_t kMaxRemembered = 10'000;

kube::Kind node_kind() {
  kube::Kind kind;
  kind.name = "nodes";
  kind.group_path = "/api/v1";
  kind.plural = "nodes";
  kind.namespaced = false;
  kind.metadata_only = true;
  kind.decode = decode_bare;
  return kind;
}

kube::Kind lease_kind() {
  kube::Kind kind;
  kind.name = "node-leases";
  kind.group_path = "/apis/coordination.k8s.io/v1";
  kind.plural = "leases";
  kind.decode = decode_bare;
  return kind;
}

std::string node_path(const std::string& node) {
  return kube::object_path("/api/v1", "nodes", "", node);
}

std::string lease_path(const std::string& namespace_, const std::string& name) {
  return kube::object_path("/apis/coordination.k8s.io/v1", "leases", namespace_, name);
}

}  // namespace

NodeMonitor::NodeMonitor(Dependencies dependencies)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      log_(dependencies.log),
      pods_(dependencies.pods),
      nodes_({dependencies.loop, dependencies.client, dependencies.random, dependencies.log},
             node_kind(), {}),
      leases_({dependencies.loop, dependencies.client, dependencies.random, dependencies.log},
              lease_kind(), {kNodeLeaseNamespace}),
      pod_clocks_(dependencies.namespaces) {
  leases_.on_change([this](const cache::Change& change) { on_lease(change); });
  nodes_.on_change([this](const cache::Change& change) { on_node(change); });
  leases_.on_progress([this] { update_clocks(); });
  nodes_.on_progress([this] { update_clocks(); });
  pods_.on_progress([this] { update_clocks(); });
}

NodeMonitor::~NodeMonitor() = default;

void NodeMonitor::on_node_change(std::function<void(const std::string&)> handler) {
  on_node_change_ = std::move(handler);
}

void NodeMonitor::on_answers_again(std::function<void()> handler) {
  on_answers_again_ = std::move(handler);
}

void NodeMonitor::start() {
  nodes_.start();
  leases_.start();
}

void NodeMonitor::stop() {
  nodes_.stop();
  leases_.stop();
}

void NodeMonitor::update_clocks() {
  const SteadyTime now = loop_.now();
  node_clock_.watch(nodes_.synced() && nodes_.live(), now);
  lease_clock_.watch(leases_.synced() && leases_.live(), now);
  pod_clocks_.watch([this](const std::string& watched) { return pods_.live(watched); }, now);
}

void NodeMonitor::proof() {
  update_clocks();
  const SteadyTime now = loop_.now();
  node_clock_.proof(now);
  lease_clock_.proof(now);
  pod_clocks_.proof(now);
  const bool again = !last_proof_ || now - *last_proof_ > reconciler::kGapLimit;
  last_proof_ = now;
  if (again && on_answers_again_) on_answers_again_();
}

void NodeMonitor::on_lease(const cache::Change& change) {
  update_clocks();
  // A Lease that is deleted is silent from its last change on: its node may be dead.
  if (!change.after) return;
  lease_tracker_.seen(change.after->name, change.after->version, lease_clock_.read(loop_.now()));
}

void NodeMonitor::on_node(const cache::Change& change) {
  update_clocks();
  const std::string& name = change.after ? change.after->name : change.before->name;
  if (change.after) {
    missing_since_.erase(name);
  } else {
    mark_missing(name);
    lease_tracker_.gone(name);
  }
  const bool came_or_went = !change.before || !change.after;
  if (came_or_went && on_node_change_) on_node_change_(name);
}

void NodeMonitor::mark_missing(const std::string& node) {
  // Bounded: forgetting only starts windows anew.
  if (missing_since_.size() >= kMaxRemembered) missing_since_.clear();
  missing_since_.try_emplace(node, node_clock_.read(loop_.now()));
}

reconciler::NodeObservation NodeMonitor::observe(const std::string& node, Duration window) {
  update_clocks();
  const SteadyTime now = loop_.now();
  reconciler::NodeObservation observation;
  if (!nodes_.synced() || !leases_.synced()) return observation;
  if (!nodes_.store().get(node)) {
    mark_missing(node);
    const Duration live = node_clock_.read(now);
    observation.missing_for = live - std::max(missing_since_[node], node_clock_.epoch());
    return observation;
  }
  const Duration live = lease_clock_.read(now);
  if (!lease_tracker_.silent_for(node, live, lease_clock_.epoch())) {
    lease_tracker_.seen(node, 0, live);  // it has no Lease: silent from now on
  }
  observation.silent_for = lease_tracker_.silent_for(node, live, lease_clock_.epoch());
  observation.breaker = lease_tracker_.held_back(node, window, [&](const std::string&) {
    return reconciler::LiveTime{live, lease_clock_.epoch()};
  });
  return observation;
}

Duration NodeMonitor::pods_live_for(const std::string& namespace_) {
  update_clocks();
  if (!pods_.live(namespace_)) return Duration::zero();
  const reconciler::LiveTime live = pod_clocks_.read(namespace_, loop_.now());
  return live.now - live.epoch;
}

Task<Status> NodeMonitor::confirm(std::string node, SteadyTime by) {
  auto get_lease =
      client_.get(lease_path(kNodeLeaseNamespace, node), kube::live_look(by, loop_.now()));
  const Result<JsonDocument> lease = co_await get_lease;
  if (!lease.ok() && lease.error().code != ErrorCode::kNotFound) co_return lease.error();
  auto get_node = client_.get(node_path(node), kube::live_look(by, loop_.now()));
  const Result<JsonDocument> object = co_await get_node;
  if (!object.ok() && object.error().code != ErrorCode::kNotFound) co_return object.error();
  proof();
  if (lease.ok()) {
    kube::Object live;
    const kube::ObjectPtr cached =
        leases_.store().get(std::string(kNodeLeaseNamespace) + "/" + node);
    if (kube::decode_meta(*lease, live) && (!cached || cached->version < live.version)) {
      lease_tracker_.seen(node, live.version, lease_clock_.read(loop_.now()));
      leases_.watch_lags(kNodeLeaseNamespace, {{"node", node}});
    }
  }
  if (object.ok() && !nodes_.store().get(node)) {
    missing_since_.erase(node);
    nodes_.watch_lags("", {{"node", node}});
  }
  co_return Unit{};
}

}  // namespace holdfast::controller
