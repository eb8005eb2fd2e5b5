#include "reconciler/run/context.h"

namespace holdfast::reconciler {

RunContext of_run(const Context& context, std::size_t place) {
  static const Run kNotBegun;
  const auto& runs = context.job.status.runs;
  const bool begun = place < runs.size();
  return {context, begun ? runs[place] : kNotBegun, context.view.seen(place),
          begun ? context.pods[place] : nullptr};
}

bool told_deadline_has_passed(const Context& context) {
  const auto& told = context.job.status.waiting;
  return told && told->deadline && *told->deadline <= context.now;
}

bool pod_lives(const Context& context, const PodView& pod) {
  if (pod.ended()) return false;
  if (pod.node_name.empty()) return !pod.deletion;
  const auto node = context.view.observed.nodes.find(pod.node_name);
  if (node == context.view.observed.nodes.end()) return true;
  return !node->second.missing_for || *node->second.missing_for < context.spec.lost_after;
}

}  // namespace holdfast::reconciler
