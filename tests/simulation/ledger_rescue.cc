#include "tests/simulation/ledger_rescue.h"

#include <algorithm>

#include "reconciler/rescue/rescue.h"
#include "reconciler/staleness.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/others.h"
#include "tests/simulation/requests.h"

namespace holdfast::simulation {
namespace {

using std::chrono::seconds;

// A write that cannot go out within this is not sent any more.
constexpr seconds kLookAge{6};
// Silences are recorded in whole seconds.
constexpr seconds kTolerance{1};
// The breaker looks at half of the window. A kubelet renews every 10 s, and late by a little.
constexpr seconds kRenewal{12};
constexpr std::size_t kFewest = 3;
constexpr const char* kNodeLeases = "/namespaces/kube-node-lease/leases/";

// The node whose Lease is read; empty: another request.
std::string node_read_by(const ApiRequest& request) {
  const std::size_t at = request.target.find(kNodeLeases);
  if (request.method != "GET" || at == std::string::npos) return "";
  const std::string rest = request.target.substr(at + std::string(kNodeLeases).size());
  return rest.substr(0, rest.find('?'));
}

std::string node_of(const Json& pod) { return string_at(at(pod, "spec"), "nodeName"); }

}  // namespace

void RescueLedger::sent(const Delivery& delivery, const Json& body) {
  if (!is_pod(delivery.request)) return;
  const bool deletes = delivery.request.method == "DELETE";
  const std::string uid = string_at(at(body, deletes ? "preconditions" : "metadata"), "uid");
  if (!deletes && delivery.request.target.ends_with("/status")) {
    return check_freeing(delivery, body);
  }
  if (!knows(uid)) return;
  const std::string what = delivery.request.method + " " + delivery.request.target;
  if (!deletes) return deps_.complain("S25 Freed: another controller's pod is changed: " + what);
  const std::string name = delivery.request.target.substr(delivery.request.target.rfind('/') + 1);
  const Json* const pod =
      deps_.gateway.server().find("pods", namespace_in(delivery.request.target), name);
  // A restore may have undone it.
  if (restored_ || !pod || uid_of(*pod) != uid || is_freed(*pod)) return;
  deps_.complain("S25 Freed: a pod is deleted before it is freed: " + what);
}

void RescueLedger::check_freeing(const Delivery& delivery, const Json& body) {
  const std::string what = delivery.request.target;
  const std::string uid = string_at(at(body, "metadata"), "uid");
  if (uid.empty() || string_at(at(body, "metadata"), "resourceVersion").empty()) {
    return deps_.complain("S25 Freed: a pod is freed without its UID or version: " + what);
  }
  std::string path = what.substr(0, what.size() - std::string("/status").size());
  const Json* const pod =
      deps_.gateway.server().find("pods", namespace_in(what), path.substr(path.rfind('/') + 1));
  if (!pod || uid_of(*pod) != uid) return;  // it will be refused
  const Life life{delivery.replica, delivery.life};
  const auto look = looks_.find({life, node_of(*pod)});
  const bool has_looked = look != looks_.end() && look->second.answered >= Duration::zero() &&
                          delivery.sent - look->second.answered <= kLookAge;
  if (!has_looked) {
    return deps_.complain("S25 Freed: no live look at the Lease of " + node_of(*pod) +
                          " right before: " + what);
  }
  check_silence(*pod, look->second.handled, what);
  check_mark(*pod, look->second.handled, what);
  check_breaker(*pod, what);
}

Duration RescueLedger::silent_at(const std::string& node, Duration when) const {
  const auto found = renewals_.find(node);
  if (found == renewals_.end()) return when;
  const auto next = std::upper_bound(found->second.begin(), found->second.end(), when);
  return when - (next == found->second.begin() ? Duration::zero() : *std::prev(next));
}

// Time in which nobody could write is no silence.
void RescueLedger::check_silence(const Json& pod, Duration looked, const std::string& what) const {
  const Duration window = rescue_window_of(pod) / deps_.fastest_rate() * 1'000'000;
  const Duration silent = silent_at(node_of(pod), looked);
  const Duration trouble_end = deps_.gateway.last_trouble_end();
  const Duration first_look =
      std::min(window, Duration(reconciler::kFirstLook) / deps_.fastest_rate() * 1'000'000);
  if (looked < trouble_end) return;
  if (silent + kTolerance >= window && looked - trouble_end + kTolerance >= first_look) return;
  deps_.complain("S25 Freed: a pod is freed although " + node_of(pod) + " renewed its Lease " +
                 human_duration(silent) + " before the look: " + what);
}

// While the scheduler may put the next pod on the same node, it waits.
void RescueLedger::check_mark(const Json& pod, Duration looked, const std::string& what) const {
  const Duration window = rescue_window_of(pod);
  const Cluster::Node* const node = deps_.cluster.node(node_of(pod));
  if (window < reconciler::kMarkedAfter || !node || !node->exists || restored_) return;
  const Duration longest = (window + reconciler::kMarkWait) / deps_.fastest_rate() * 1'000'000;
  const Duration silent = silent_at(node->name, looked);
  if (deps_.cluster.is_marked(*node) || silent + kTolerance >= longest) return;
  deps_.complain("S25 Freed: a pod is freed after " + human_duration(silent) + " of silence, and " +
                 node->name + " is not marked: " + what);
}

// Only what is certain, whatever a watch may have shown late.
void RescueLedger::check_breaker(const Json& pod, const std::string& what) const {
  const Duration now = deps_.scheduler.now();
  const Duration window = rescue_window_of(pod);
  const Duration judged = silent_at(node_of(pod), now);
  std::size_t silent = 0;
  std::size_t others = 0;
  for (const Cluster::Node& node : deps_.cluster.nodes()) {
    if (!node.exists || node.name == node_of(pod)) continue;
    const Duration its = silent_at(node.name, now);
    if (its > judged + window + kRenewal) continue;
    ++others;
    const bool fell_with_it = its <= judged + window / 2 && its >= window / 2 + kRenewal;
    if (fell_with_it) ++silent;
  }
  if (others < kFewest || silent * 100 <= others * 55) return;
  deps_.complain("S25 Freed: a pod is freed while " + std::to_string(silent) + " of " +
                 std::to_string(others) + " other nodes are silent: " + what);
}

void RescueLedger::handled(const Delivery& delivery) {
  const std::string node = node_read_by(delivery.request);
  if (node.empty() || delivery.replica < 0) return;
  looks_[{{delivery.replica, delivery.life}, node}] = {deps_.scheduler.now(), Duration(-1)};
}

void RescueLedger::answered(const Delivery& delivery, int status) {
  const std::string node = node_read_by(delivery.request);
  if (node.empty() || status != 200) return;
  const auto look = looks_.find({{delivery.replica, delivery.life}, node});
  if (look != looks_.end()) look->second.answered = deps_.scheduler.now();
}

void RescueLedger::pod_written(const Applied& applied, bool by_replica) {
  const Json& pod = applied.after ? *applied.after : *applied.before;
  if (!is_of_others(pod)) return;
  uids_.insert(uid_of(pod));
  if (!by_replica || !applied.after || !applied.before) return;
  const std::string what = key_of(pod);
  if (!may_be_rescued(pod)) deps_.complain("S25 Freed: a pod that may not be freed: " + what);
  if (at(*applied.after, "status") == at(*applied.before, "status")) return;
  if (is_freed(*applied.before)) deps_.complain("S25 Freed: a pod is freed twice: " + what);
  if (!is_freed(*applied.after) || !is_final(pod_phase(*applied.after))) {
    deps_.complain("S25 Freed: a pod's status is changed without freeing it: " + what);
  }
}

}  // namespace holdfast::simulation
