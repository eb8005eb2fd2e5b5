#include "reconciler/run/context.h"

namespace holdfast::reconciler {

RunContext of_run(const Context& context, std::size_t place) {
  static const Run kNotBegun;
  const auto& runs = context.job.status.runs;
  const bool begun = place < runs.size();
  return {context, begun ? runs[place] : kNotBegun, context.view.seen(place),
          begun ? context.pods[place] : nullptr};
}

bool is_read(const Context& context, std::size_t place) {
  return context.job.status.runs[place].at_worker() || context.view.seen(place).observed.confirmed;
}

std::vector<std::int64_t> unseen_runs(const Context& context) {
  std::vector<std::int64_t> unseen;
  const auto& runs = context.job.status.runs;
  for (std::size_t place = 0; place < runs.size(); ++place) {
    const bool is_seen = context.pods[place] || is_read(context, place);
    if (!is_seen && !runs[place].pod_name.empty()) unseen.push_back(runs[place].index);
  }
  return unseen;
}

Waiting version_waiting(const Context& context, std::optional<Time> deadline) {
  const std::string& unknown = context.job.unknown;
  return Waiting{Reason::kNotKnownToThisVersion,
                 std::string(unknown.empty() ? "the WorkerPool" : "the job") +
                     " has fields that this version of the operator does not know: " +
                     (unknown.empty() ? context.view.observed.pool.unknown : unknown),
                 "the next attempt starts once the operator's version knows them; until then the "
                 "job can be cancelled or deleted",
                 deadline};
}

bool told_deadline_has_passed(const Context& context) {
  const auto& told = context.job.status.waiting;
  return told && told->deadline && *told->deadline <= context.now;
}

bool pod_lives(const Context& context, const PodView& pod) {
  if (pod.ended()) return false;
  if (pod.node_name.empty()) return !pod.deletion;
  const NodeObservation* const node = node_of(context, pod);
  return !node || !node->missing_for || *node->missing_for < context.spec.lost_after;
}

const NodeObservation* node_of(const Context& context, const PodView& pod) {
  // A worker's pod may have the name of a node.
  if (pod.slot) return nullptr;
  const auto node = context.view.observed.nodes.find(pod.node_name);
  return node == context.view.observed.nodes.end() ? nullptr : &node->second;
}

}  // namespace holdfast::reconciler
