#include "reconciler/run/context.h"

namespace holdfast::reconciler {

RunContext of_run(const Context& context, std::size_t position) {
  static const Run kNotBegun;
  const auto& runs = context.job.status.runs;
  const bool begun = position < runs.size();
  return {context, begun ? runs[position] : kNotBegun, context.view.seen(position),
          begun ? context.pods[position] : nullptr};
}

bool is_read(const Context& context, std::size_t position) {
  return context.job.status.runs[position].at_worker() ||
         context.view.seen(position).observed.confirmed;
}

std::vector<std::int64_t> unseen_runs(const Context& context) {
  std::vector<std::int64_t> unseen;
  const auto& runs = context.job.status.runs;
  for (std::size_t position = 0; position < runs.size(); ++position) {
    const bool is_seen = context.pods[position] || is_read(context, position);
    if (!is_seen && !runs[position].pod_name.empty()) unseen.push_back(runs[position].index);
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

Waiting guard_waiting(const Context& context, std::optional<Time> deadline) {
  const GuardView& guard = context.view.observed.guard;
  if (guard.fault.empty()) {
    return Waiting{Reason::kGuardMissing, "the operator looks for the policies of the guard",
                   "the next attempt starts once it has found them", deadline};
  }
  return Waiting{Reason::kGuardMissing, guard.fault, "the next attempt starts once " + guard.remedy,
                 deadline};
}

bool reported_deadline_has_passed(const Context& context) {
  const auto& reported = context.job.status.waiting;
  return reported && reported->deadline && *reported->deadline <= context.now;
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
