#include "reconciler/lost_nodes.h"

#include <algorithm>

namespace holdfast::reconciler {
namespace {

// Silence, in which the node may have a part. A pod that was deleted or evicted says nothing of it.
bool doubts_its_node(const HistoryEntry& entry) {
  if (entry.outcome != Outcome::kLost || entry.node_name.empty()) return false;
  return entry.reason == Reason::kNodeSilent || entry.reason == Reason::kHolderSilent ||
         entry.reason == Reason::kPodStuckTerminating;
}

}  // namespace

std::vector<std::string> lost_nodes(const Status& status, Time now) {
  std::vector<std::string> nodes;
  for (auto entry = status.history.rbegin(); entry != status.history.rend(); ++entry) {
    if (nodes.size() == kLostNodesLimit) break;
    const bool is_recent = entry->end_time && now - *entry->end_time < kLostNodeAvoided;
    const bool is_new = std::find(nodes.begin(), nodes.end(), entry->node_name) == nodes.end();
    if (is_recent && is_new && doubts_its_node(*entry)) nodes.push_back(entry->node_name);
  }
  return nodes;
}

}  // namespace holdfast::reconciler
