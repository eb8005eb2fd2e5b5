#include "operator/observe/node_monitor.h"

#include <algorithm>

namespace holdfast::observe {
namespace {

// How often to look for nodes that are not heard any more.
constexpr std::chrono::seconds kLookAtNodes{1};

kube::Kind node_kind() {
  kube::Kind kind;
  kind.name = "nodes";
  kind.group_path = "/api/v1";
  kind.plural = "nodes";
  kind.namespaced = false;
  kind.metadata_only = true;
  kind.decode = kube::decode_bare;
  return kind;
}

std::string node_path(const std::string& node) {
  return kube::object_path("/api/v1", "nodes", "", node);
}

}  // namespace

NodeMonitor::NodeMonitor(Dependencies dependencies)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      pods_(dependencies.pods),
      nodes_({dependencies.loop, dependencies.client, dependencies.random, dependencies.log},
             node_kind(), {}),
      leases_({dependencies.loop, dependencies.client, dependencies.random, dependencies.log},
              [this] { proof(); }),
      reads_(dependencies.loop,
             [this](std::string node, SteadyTime by) { return read(std::move(node), by); }),
      pod_clocks_(dependencies.namespaces),
      conditions_({dependencies.loop, dependencies.client, [this] { update_clocks(); },
                   [this] { return node_time(); },
                   [this](const std::string& node) {
                     if (on_node_change_) on_node_change_(node);
                   }}) {
  leases_.informer().on_change([this](const cache::Change& change) { on_lease(change); });
  nodes_.on_change([this](const cache::Change& change) { on_node(change); });
  leases_.informer().on_progress([this] { update_clocks(); });
  nodes_.on_progress([this] {
    update_clocks();
    forget_leases_without_nodes();
  });
  pods_.on_progress([this] { update_clocks(); });
}

NodeMonitor::~NodeMonitor() { loop_.cancel(silence_timer_); }

void NodeMonitor::on_node_change(std::function<void(const std::string&)> handler) {
  on_node_change_ = std::move(handler);
}

void NodeMonitor::on_answers_again(std::function<void()> handler) {
  on_answers_again_ = std::move(handler);
}

void NodeMonitor::start() {
  nodes_.start();
  leases_.informer().start();
  tell_of_silent_nodes();
}

void NodeMonitor::tell_of_silent_nodes() {
  silence_timer_ = loop_.call_after(kLookAtNodes, [this] { tell_of_silent_nodes(); });
  update_clocks();
  for (const std::string& node : leases_.take_unheard()) {
    if (on_node_change_) on_node_change_(node);
  }
}

void NodeMonitor::update_clocks() {
  const SteadyTime now = loop_.now();
  node_clock_.watch(nodes_.synced() && nodes_.live(), now);
  leases_.update();
  // A list because of other shards is no gap: each verdict reads its pod live.
  const auto sees = [this](const std::string& watched) {
    return pods_.live(watched) || (pods_.version(watched) > 0 && pods_.widening(watched));
  };
  pod_clocks_.watch(sees, now);
}

void NodeMonitor::proof() {
  update_clocks();
  const SteadyTime now = loop_.now();
  node_clock_.proof(now);
  leases_.proof(now);
  pod_clocks_.proof(now);
  const bool again = !last_proof_ || now - *last_proof_ > reconciler::kGapLimit;
  last_proof_ = now;
  conditions_.read();
  if (again && on_answers_again_) on_answers_again_();
}

reconciler::LiveTime NodeMonitor::node_time() {
  const Duration now = node_clock_.read(loop_.now());
  return {now, node_clock_.epoch()};
}

reconciler::LiveTime NodeMonitor::pods_time(const std::string& namespace_) {
  update_clocks();
  return pod_clocks_.read(namespace_, loop_.now());
}

void NodeMonitor::keep_windows(WindowKeeper& windows, const Wanted& wanted) {
  const auto by_nodes = [this](const std::string&) { return node_time(); };
  const auto by_leases = [this](const std::string&) { return leases_.time(); };
  const auto silent = [wanted](const std::string& node, Duration) { return wanted(node, false); };
  const auto missing = [wanted](const std::string& node, Duration) { return wanted(node, true); };
  windows.add("node", {leases_.tracker(), by_leases, silent});
  windows.add("unready", {conditions_.unready(), by_nodes, silent});
  windows.add("missing", {missing_, by_nodes, missing});
}

void NodeMonitor::on_lease(const cache::Change& change) {
  update_clocks();
  const std::string& name = change.after ? change.after->name : change.before->name;
  // The Lease of a deleted node says nothing. Nobody need ever delete it.
  if (nodes_.synced() && !nodes_.store().get(name)) return leases_.tracker().gone(name);
  // A deleted Lease is silent since its last change: its node may be dead.
  if (!change.after) return;
  leases_.tracker().seen(name, change.after->version, leases_.time().now);
  conditions_.has_lease(name);
}

// The Leases may have been listed before the nodes. Once, when the nodes are known.
void NodeMonitor::forget_leases_without_nodes() {
  if (knows_nodes_ || !nodes_.synced()) return;
  knows_nodes_ = true;
  leases().store().for_each([this](const kube::ObjectPtr& lease) {
    if (!nodes_.store().get(lease->name)) leases_.tracker().gone(lease->name);
  });
}

void NodeMonitor::on_node(const cache::Change& change) {
  update_clocks();
  const std::string& name = change.after ? change.after->name : change.before->name;
  if (change.after) {
    missing_.gone(name);
    leases_.see_cached(name);
    conditions_.changed(name);
  } else {
    mark_missing(name);
    leases_.tracker().gone(name);
    conditions_.gone(name);
  }
  const bool came_or_went = !change.before || !change.after;
  if (came_or_went && on_node_change_) on_node_change_(name);
}

void NodeMonitor::mark_missing(const std::string& node) {
  missing_.seen_within(kMostNodes, node, 0, node_time().now);
}

void NodeMonitor::look(const std::string& node) {
  if (!nodes_.synced() || !leases_.informer().synced()) return;
  update_clocks();
  if (!nodes_.store().get(node)) return mark_missing(node);
  if (const auto version = leases_.tracker().version(node)) {
    // A recorded Lease that no longer exists is silent since its last change.
    leases_.tracker().seen(node, *version, leases_.time().now);
  } else {
    conditions_.add(node);
  }
}

LookTimes NodeMonitor::look_times(const std::string& namespace_) {
  update_clocks();
  LookTimes now;
  now.steady = loop_.now();
  now.nodes = node_time().now;
  now.node_leases = leases_.time().now;
  now.pods = pod_clocks_.read(namespace_, loop_.now()).now;
  return now;
}

reconciler::NodeObservation NodeMonitor::observe(const std::string& node, Duration window,
                                                 const LookTimes& asked) {
  reconciler::NodeObservation observation;
  if (!nodes_.synced() || !leases_.informer().synced()) return observation;
  look(node);
  if (!nodes_.store().get(node)) {
    observation.missing_for =
        missing_.counted(node, window, reconciler::kFirstLook, until(asked.nodes, node_time()));
  } else if (leases_.tracker().version(node)) {
    const auto clock = [this](const std::string&) { return leases_.time(); };
    observation.silent_for = leases_.tracker().counted(node, window, reconciler::kFirstLook,
                                                       until(asked.node_leases, leases_.time()));
    observation.unheard_for = leases_.tracker()
                                  .silent_for(node, leases_.time().now, Duration::zero())
                                  .value_or(Duration::zero());
    observation.is_heard = leases_.is_heard(node);
    observation.breaker = leases_.tracker().held_back(node, window, clock, loop_.now());
  } else {
    const reconciler::LiveTime time = until(asked.nodes, node_time());
    observation.silent_for =
        conditions_.unready().counted(node, window, reconciler::kFirstLook, time);
    observation.has_lease = false;
  }
  return observation;
}

Duration NodeMonitor::pods_live_for(const std::string& namespace_, const LookTimes& asked) {
  update_clocks();
  if (!pods_.live(namespace_)) return Duration::zero();
  const reconciler::LiveTime live = until(asked.pods, pod_clocks_.read(namespace_, loop_.now()));
  return std::max(Duration::zero(), live.now - live.epoch);
}

Task<Result<>> NodeMonitor::read(std::string node, SteadyTime by) {
  auto get_lease = leases_.get(node, by);
  const Result<JsonDocument> lease = co_await get_lease;
  if (!lease.ok() && lease.error().code != ErrorCode::kNotFound) co_return lease.error();
  auto get_node = client_.get(node_path(node), kube::live_look(by, loop_.now()));
  const Result<JsonDocument> object = co_await get_node;
  if (!object.ok() && object.error().code != ErrorCode::kNotFound) co_return object.error();
  proof();
  if (lease.ok()) leases_.see_live(node, *lease);
  if (object.ok() && !nodes_.store().get(node)) {
    missing_.gone(node);
    nodes_.watch_lags("", {{"node", node}});
  }
  if (object.ok()) conditions_.note(node, *object);
  co_return Unit{};
}

}  // namespace holdfast::observe
