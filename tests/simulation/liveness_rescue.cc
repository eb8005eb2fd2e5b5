// Other controllers' pods that hang on a silent node are freed in time.
#include "reconciler/rescue/rescue.h"
#include "tests/simulation/liveness.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/others.h"

namespace holdfast::simulation {

void Liveness::look_at_others() {
  gateway_.server().for_each("pods", [&](const Json& pod) {
    if (!is_of_others(pod) || !may_be_rescued(pod)) return;
    const Cluster::Node* const node = cluster_.node(string_at(at(pod, "spec"), "nodeName"));
    if (!node || !node->exists || node->usable()) return;
    const Duration window = rescue_window_of(pod);
    if (breaker_may_hold(*node, window)) return;
    const auto its = ledger_.pods().find(uid_of(pod));
    if (its == ledger_.pods().end()) return;
    const Duration bound = instant(its->second.bound_at);
    const Duration since = std::max(node->renewed, bound);
    Duration longest = window;
    if (window >= reconciler::kMarkedAfter) {
      const Duration marked =
          cluster_.is_marked(*node) ? node->marked_at + reconciler::kMarkLook : Duration::max();
      longest = std::clamp<Duration>(marked - since, window, window + reconciler::kMarkWait);
    }
    note(key_of(pod), "another controller's pod hangs", late(longest) + longest, since);
  });
}

}  // namespace holdfast::simulation
