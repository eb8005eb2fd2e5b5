#include "reconciler/job/decide.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "reconciler/job/job_clock.h"
#include "reconciler/job/notifications.h"
#include "reconciler/job/phases.h"
#include "reconciler/job/settled.h"
#include "reconciler/job/waiting.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"

namespace holdfast::reconciler {
namespace {

// The run with this index; null: it is not in status.runs.
const Run* find_run(const Status& status, std::int64_t index) {
  const auto found = std::lower_bound(status.runs.begin(), status.runs.end(), index,
                                      [](const Run& run, std::int64_t i) { return run.index < i; });
  return found == status.runs.end() || found->index != index ? nullptr : &*found;
}

// The pods of attempts that go on, and for each pod the index of its run.
struct PodsOfRuns {
  std::unordered_set<const PodView*> stay;
  std::unordered_map<std::string_view, std::int64_t> runs;  // by the pod's name
  std::unordered_set<std::string_view> needed;              // names that open attempts need

  std::int64_t run_of(const PodView& pod) const {
    const auto found = runs.find(pod.name);
    return found == runs.end() ? kNoRun : found->second;
  }
};

PodsOfRuns pods_of_runs(const Context& context, const Status& next) {
  PodsOfRuns pods;
  const auto& before = context.job.status.runs;
  for (std::size_t position = 0; position < before.size(); ++position) {
    pods.runs[before[position].pod_name] = before[position].index;
    const Run* const run = find_run(next, before[position].index);
    const bool goes_on = run && run->open() && run->attempt == before[position].attempt;
    if (goes_on && context.pods[position]) pods.stay.insert(context.pods[position]);
  }
  for (const Run& run : next.runs) {
    if (!run.open()) continue;
    pods.runs[run.pod_name] = run.index;
    pods.needed.insert(run.pod_name);
  }
  return pods;
}

// The watch does not show a pod without our label, nor its end. A pod without a label of a shard is
// shown to all replicas.
bool is_hidden(const JobView& view, const PodView& pod) {
  return pod.job_uid_label != view.job.uid ||
         (!pod.shard_label.empty() && pod.shard_label != view.shard_label);
}

// Stops and releases every pod without a current attempt. `next` is the status after the planned
// writes.
void tidy_pods(const Context& context, const Status& next, std::vector<Write>& writes) {
  const Job& job = context.job;
  const PodsOfRuns pods = pods_of_runs(context, next);
  for (const PodView& pod : context.view.pods) {
    const bool ours = is_ours(context.view, pod);
    if (pod.slot || (!ours && !pod.owner_uid.empty())) continue;
    if (!job.deleting) {
      const std::int64_t attempt = attempt_in_name(job.name, job.uid, pod.name);
      if (ours && is_hidden(context.view, pod) && attempt > 0 && pod_lives(context, pod)) {
        writes.emplace_back(RelabelPod{pod.name, pod.uid, attempt, pods.run_of(pod)});
      }
      // A later attempt's pod: this view of the job is older than its pods, and we must not stop
      // another replica's attempt. An ended job has no later attempts.
      if (attempt > next.attempt && !is_terminal(next.phase)) continue;
      if (pods.stay.count(&pod) != 0) continue;
    }
    // An ended pod stays for its logs, unless it has the name that the attempt's pod needs. The
    // garbage collector deletes the pods of a job that is gone, but not while the outbox holds it.
    const bool in_the_way = pods.needed.count(pod.name) != 0;
    const bool goes = job.deleting ? job.holds_outbox && !job.orphans : !pod.ended() || in_the_way;
    if (ours && goes && !pod.deletion) {
      writes.emplace_back(DeletePod{pod.name, pod.uid, pod.version, pods.run_of(pod)});
    }
    // A pod without an owner that only has our label is released, and nothing else is done to it.
    if (pod.has_finalizer) writes.emplace_back(ReleasePod{pod.name, pod.uid, pods.run_of(pod)});
  }
}

// Status first. The old pod is deleted before the new one is created. Other clean-up comes after
// the creation, because a policy of the cluster may refuse it for a long time. The exception is a
// forged pod with the new pod's name. The job itself is deleted last.
int rank(const Write& write, const std::unordered_set<std::string>& next_pods) {
  struct Rank {
    const std::unordered_set<std::string>& next_pods;
    int operator()(const WriteStatus&) const { return 0; }
    int operator()(const DeletePod&) const { return 1; }
    int operator()(const CreatePod&) const { return 2; }
    int operator()(const WriteLease&) const { return 3; }
    int operator()(const ReleasePod& write) const { return next_pods.count(write.name) ? 1 : 4; }
    int operator()(const RelabelPod&) const { return 5; }
    int operator()(const DeleteLease&) const { return 6; }
    int operator()(const ReleaseJob&) const { return 7; }
    int operator()(const DeleteJob&) const { return 8; }
  };
  return std::visit(Rank{next_pods}, write);
}

void decide_deleting(const Context& context, Plan& plan) {
  const JobView& view = context.view;
  if (hold_for_outbox(context, plan)) {
    decide_outbox(context, plan);
    return tidy_pods(context, view.job.status, plan.decision().writes);
  }
  // Each pod that goes is an event. Those that no watch shows are looked for at the end alone.
  const bool waits_for_pods = std::any_of(view.pods.begin(), view.pods.end(),
                                          [&](const PodView& pod) { return is_ours(view, pod); });
  if (waits_for_pods) return tidy_pods(context, view.job.status, plan.decision().writes);
  if (plan.looks_at(unseen_runs(context))) return;
  const bool has_last = view.job.status.runs.empty() && !last_pod(view.job.status).name.empty();
  if (has_last && !view.observed.confirmed) return plan.confirm_last();
  // Its labels may be gone, but our finalizer must not block its deletion.
  tidy_pods(context, view.job.status, plan.decision().writes);
}

void hand_over_leases(const Context& context, const Status& next, Plan& plan) {
  const auto& before = context.job.status.runs;
  std::size_t position = 0;  // both lists are in order
  for (const Run& run : next.runs) {
    while (position < before.size() && before[position].index < run.index) ++position;
    const bool begun = position < before.size() && before[position].index == run.index;
    const LeaseStep step = hand_over_lease(of_run(context, begun ? position : before.size()), run);
    if (step.write) plan.decision().writes.emplace_back(*step.write);
    if (step.wake_after) plan.wake_in(*step.wake_after);
  }
  for (const LeaseOver& over : context.view.leases_over) {
    // The Lease of an attempt that this view does not have yet is another replica's: the run lives.
    // Only runs among many of a stage with a heartbeat have such a Lease.
    const bool is_used = over.run != kSingleLease && context.spec.has_run_leases() &&
                         find_run(next, over.run) != nullptr;
    if (is_used || over.lease.attempt > next.attempt) continue;
    const LeaseStep step = leave_lease(context, over, next);
    if (step.write) plan.decision().writes.emplace_back(*step.write);
    if (step.wake_after) plan.wake_in(*step.wake_after);
    if (!step.is_over) continue;
    plan.decision().writes.emplace_back(DeleteLease{over.lease.uid, over.lease.version, over.run});
  }
}

// The pods of attempts that the same decision ends need not be created any more.
void drop_needless_creations(const Status& next, std::vector<Write>& writes) {
  std::erase_if(writes, [&](const Write& write) {
    const auto* const create = std::get_if<CreatePod>(&write);
    const Run* const run = create ? find_run(next, create->run) : nullptr;
    return create && (!run || !run->open() || run->attempt != create->attempt);
  });
}

// A job keeps the permit of its queue from one attempt to the next as long as it is Running. One
// that is Cancelling may never have had a permit: its Always stages are admitted anew.
bool has_permit(const JobView& view) {
  return !view.job.queue || view.job.status.phase == Phase::kRunning ||
         view.observed.permit.admitted;
}

void decide_by_phase(const Context& context, Plan& plan) {
  switch (context.job.status.phase) {
    case Phase::kNone:
    case Phase::kPending:
    case Phase::kRunning:
    case Phase::kBackoff:
      return decide_active(context, plan);
    case Phase::kSuspended:
      return decide_suspended(context, plan);
    case Phase::kCancelling:
      return decide_cancelling(context, plan);
    case Phase::kSucceeded:
    case Phase::kFailed:
    case Phase::kCancelled:
      return decide_finished(context, plan);
  }
}

}  // namespace

Decision decide(const JobView& view, Time now) {
  const std::vector<const PodView*> pods = current_pods(view);
  Context context{view, view.job, view.job.spec, now, pods};
  context.deadline = active_deadline(context);
  context.deadline_is_jobs = is_jobs_deadline(context);
  context.has_permit = has_permit(view);
  Plan plan(context);
  if (view.belongs_elsewhere) {
    WriteStatus write = start_write(context);
    // The holder of the right shard looks at it first.
    if (write.status.phase == Phase::kNone) {
      write.status.phase = Phase::kPending;
      write.status.waiting = unseen_waiting();
    }
    plan.write(std::move(write));
    return plan.decision();
  }
  if (view.job.deleting) {
    decide_deleting(context, plan);
    Decision& decision = plan.decision();
    if (decision.confirm) decision.writes.clear();
    // Somebody else's finalizer may hold it for long.
    decision.at_rest = !decision.confirm && decision.writes.empty() && is_at_rest(view);
    return decision;
  }
  decide_by_phase(context, plan);
  plan.give_back_permit();
  decide_outbox(context, plan);
  plan.say_shard();
  Decision& decision = plan.decision();
  if (decision.confirm) {
    decision.writes.clear();
    return decision;
  }
  const Status& next = plan.status();
  const bool moves = next.stage != view.job.status.stage;
  drop_needless_creations(next, decision.writes);
  tidy_pods(context, next, decision.writes);
  // This view has the old stage's template and runs. The next one, which the write causes, creates
  // the pods and hands over the Leases of the new stage.
  if (!moves) hand_over_leases(context, next, plan);
  for (const Run& run : next.runs) {
    const bool is_new = run.open() && run.attempt > view.job.status.attempt;
    // The record alone brings an attempt to its worker.
    if (!moves && is_new && !run.at_worker()) plan.create_pod(run);
  }
  decision.lacks_settled = decision.writes.empty() && lacks_settled(view);
  decision.at_rest = decision.writes.empty() && is_at_rest(view);
  // Never rely on events alone: check again after a while.
  if (!decision.wake_after && !is_terminal(next.phase) && next.phase != Phase::kSuspended) {
    plan.wake_in(view.job.spec.lost_after);
  }
  std::unordered_set<std::string> next_pods;
  for (const Run& run : next.runs) next_pods.insert(run.pod_name);
  std::stable_sort(
      decision.writes.begin(), decision.writes.end(),
      [&](const Write& a, const Write& b) { return rank(a, next_pods) < rank(b, next_pods); });
  return decision;
}

}  // namespace holdfast::reconciler
