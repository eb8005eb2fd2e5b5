#include "operator/observe/node_leases.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "client/kube/lease_resource.h"

namespace holdfast::observe {
namespace {

// A longer silence is not counted on across restarts. No silence that began with it is judged so
// late.
constexpr std::chrono::hours kLongestRecorded{1};

// Half of it is longer than the 10 s between two renewals of a node.
constexpr std::chrono::seconds kShortestWindow{24};

// As RecordTracker::held_back() counts the others.
constexpr std::chrono::milliseconds kCountedFor{100};

kube::Kind lease_kind() {
  kube::Kind kind;
  kind.name = "node-leases";
  kind.group_path = kube::kLeaseGroupPath;
  kind.plural = kube::kLeasePlural;
  kind.decode = kube::decode_bare;
  return kind;
}

}  // namespace

NodeLeases::NodeLeases(const cache::Informer::Dependencies& dependencies,
                       std::function<void()> on_answer)
    : loop_(dependencies.loop),
      client_(dependencies.client),
      on_answer_(std::move(on_answer)),
      informer_(dependencies, lease_kind(), {kNodeLeaseNamespace}) {}

void NodeLeases::update() { clock_.watch(informer_.synced() && informer_.live(), loop_.now()); }

reconciler::LiveTime NodeLeases::time() {
  const Duration now = clock_.read(loop_.now());
  return {now, clock_.epoch()};
}

kube::ObjectPtr NodeLeases::cached(const std::string& node) {
  return informer_.store().get(std::string(kNodeLeaseNamespace) + "/" + node);
}

NodeLeases::Silence NodeLeases::silence(const std::string& node, Duration window,
                                        const LookTimes& asked) {
  if (!informer_.synced() || !cached(node)) return {};
  update();
  const auto clock = [this](const std::string&) { return time(); };
  Silence silence;
  silence.silent_for =
      tracker_.counted(node, window, reconciler::kFirstLook, until(asked.node_leases, time()));
  if (!silence.silent_for || *silence.silent_for < window) return silence;
  silence.in_doubt = tracker_.in_doubt(node, window, clock, loop_.now());
  return silence;
}

// For the Leases of many runs that fell silent together it is asked as often.
bool NodeLeases::most_are_silent(Duration window) {
  const SteadyTime now = loop_.now();
  if (most_.window == window && most_.at && now - *most_.at < kCountedFor) return most_.are_silent;
  update();
  most_ = {window, now,
           tracker_.breaker("", std::max<Duration>(window, kShortestWindow),
                            [this](const std::string&) { return time(); })};
  return most_.are_silent;
}

std::set<std::string> NodeLeases::silent_nodes(Duration at_least) {
  update();
  std::set<std::string> nodes;
  tracker_.for_each_silent(
      at_least, [this](const std::string&) { return time(); },
      [&](const std::string& node, std::uint64_t, Duration) { nodes.insert(node); });
  return nodes;
}

std::vector<std::string> NodeLeases::take_unheard() {
  const auto before = std::exchange(unheard_, silent_nodes(reconciler::kNodeHeard));
  std::vector<std::string> taken;
  std::set_difference(unheard_.begin(), unheard_.end(), before.begin(), before.end(),
                      std::back_inserter(taken));
  return taken;
}

bool NodeLeases::is_heard(const std::string& node) {
  const reconciler::LiveTime now = time();
  const auto silent = tracker_.silent_for(node, now.now, now.epoch);
  return silent && *silent < reconciler::kNodeHeard && !unheard_.contains(node);
}

void NodeLeases::keep_every_window(WindowKeeper& windows,
                                   const std::function<int(const std::string&)>& shard_of) {
  windows.add("silent", {tracker_, [this](const std::string&) { return time(); },
                         [shard_of](const std::string& node, Duration) {
                           return WindowKeeper::Wanted{{shard_of(node)}, kLongestRecorded};
                         }});
}

Task<Result<JsonDocument>> NodeLeases::get(std::string node, SteadyTime by) {
  return client_.get(
      kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural, kNodeLeaseNamespace, node),
      kube::live_look(by, loop_.now()));
}

Task<Result<>> NodeLeases::confirm(std::string node, SteadyTime by) {
  auto read = get(node, by);
  const Result<JsonDocument> lease = co_await read;
  if (!lease) co_return lease.error();
  on_answer_();
  see_live(node, *lease);
  co_return Unit{};
}

void NodeLeases::see_live(const std::string& node, const JsonView& lease) {
  kube::Object live;
  const kube::ObjectPtr before = cached(node);
  if (!kube::decode_meta(lease, live) || (before && before->version >= live.version)) return;
  tracker_.seen(node, live.version, time().now);
  informer_.watch_lags(kNodeLeaseNamespace, {{"node", node}});
}

// The watch of Leases may be ahead of that of nodes.
void NodeLeases::see_cached(const std::string& node) {
  const kube::ObjectPtr lease = cached(node);
  if (!lease || tracker_.knows(node)) return;
  tracker_.seen(node, lease->version, time().now);
}

}  // namespace holdfast::observe
