#include "reconciler/job/decide.h"

#include <algorithm>

#include "core/invariant.h"
#include "reconciler/edge_table.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/kstatus.h"
#include "reconciler/job/phases.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"

namespace holdfast::reconciler {
namespace {

// Deadlines are computed from the time left on several clocks. Differences below this are noise.
constexpr seconds kDeadlineNoise{2};

bool says_the_same(const std::optional<Waiting>& a, const std::optional<Waiting>& b) {
  if (a.has_value() != b.has_value()) return false;
  if (!a) return true;
  if (a->reason != b->reason || a->message != b->message || a->next_action != b->next_action ||
      a->deadline.has_value() != b->deadline.has_value()) {
    return false;
  }
  return !a->deadline || std::chrono::abs(*a->deadline - *b->deadline) <= kDeadlineNoise;
}

bool same_second(const std::optional<Time>& a, const std::optional<Time>& b) {
  if (a.has_value() != b.has_value()) return false;
  return !a || std::chrono::floor<seconds>(*a) == std::chrono::floor<seconds>(*b);
}

// While a job waits for the same thing, `since` keeps its first value.
void tell_since(const Context& context, Status& next) {
  const Status& before = context.job.status;
  if (!next.waiting) return;
  const bool same = before.waiting && before.waiting->reason == next.waiting->reason &&
                    before.attempt == next.attempt;
  if (same && before.waiting->since) next.waiting->since = before.waiting->since;
  if (!next.waiting->since) next.waiting->since = context.now;
}

// The API server would refuse any of these, and each would be a bug.
void check_planned(const Status& before, const Status& next) {
  invariant(is_edge(before.phase, next.phase), "a status follows an edge of the state machine");
  invariant(next.attempt >= before.attempt, "the attempt, which fences, never falls");
  invariant(next.failures >= before.failures && next.disruptions >= before.disruptions,
            "what a budget has spent stays spent");
  invariant(is_terminal(next.phase) == next.completion_time.has_value(),
            "a job has ended if and only if completionTime says when");
  invariant(is_terminal(next.phase) != next.waiting.has_value(),
            "a job that has not ended says what it waits for");
  const bool open =
      std::any_of(next.runs.begin(), next.runs.end(), [](const Run& run) { return run.open(); });
  invariant(open == (next.phase == Phase::kRunning), "a job is Running while a run of it is open");
  invariant(!is_terminal(next.phase) || next.runs.empty(), "a job that has ended has no runs");
}

// Stops and releases every pod without a current attempt. `next` is the status after the planned
// writes.
void tidy_pods(const Context& context, const Status& next, std::vector<Write>& writes) {
  const Job& job = context.job;
  std::vector<const PodView*> stay;  // the pods of the attempts that go on
  for (std::size_t place = 0; place < next.runs.size() && place < job.status.runs.size(); ++place) {
    const Run& run = next.runs[place];
    if (!run.open() || run.attempt != job.status.runs[place].attempt) continue;
    if (const PodView* const pod = current_pod(context.view, place)) stay.push_back(pod);
  }
  for (const PodView& pod : context.view.pods) {
    const bool ours = is_ours(context.view, pod);
    if (!ours && !pod.owner_uid.empty()) continue;
    if (!job.deleting) {
      const std::int64_t attempt = attempt_in_name(job.name, job.uid, pod.name);
      // The watch does not see a pod without our label, nor its end.
      if (ours && pod.job_uid_label != job.uid && attempt > 0 && pod_lives(context, pod)) {
        writes.emplace_back(RelabelPod{pod.name, pod.uid, attempt});
      }
      // A later attempt's pod: this view of the job is older than its pods, and we must not stop
      // another replica's attempt. An ended job has no later attempts.
      if (attempt > next.attempt && !is_terminal(next.phase)) continue;
      if (std::find(stay.begin(), stay.end(), &pod) != stay.end()) continue;
    }
    // An ended pod stays for its logs, unless it has the name that the attempt's pod needs.
    const bool in_the_way = std::any_of(next.runs.begin(), next.runs.end(), [&](const Run& run) {
      return run.open() && run.pod_name == pod.name;
    });
    if (ours && (!pod.ended() || in_the_way) && !pod.deletion && !job.deleting) {
      writes.emplace_back(DeletePod{pod.name, pod.uid, pod.version});
    }
    // A pod without an owner that only has our label is released, and nothing else is done to it.
    if (pod.has_finalizer) writes.emplace_back(ReleasePod{pod.name, pod.uid});
  }
}

// Status first. The old pod is deleted before the new one is created. Other clean-up comes after
// the creation, because a policy of the cluster may refuse it for a long time. The exception is a
// forged pod with the new pod's name. The job itself is deleted last.
int rank(const Write& write, const std::string& next_pod) {
  struct Rank {
    const std::string& next_pod;
    int operator()(const WriteStatus&) const { return 0; }
    int operator()(const DeletePod&) const { return 1; }
    int operator()(const CreatePod&) const { return 2; }
    int operator()(const WriteLease&) const { return 3; }
    int operator()(const ReleasePod& write) const { return write.name == next_pod ? 1 : 4; }
    int operator()(const RelabelPod&) const { return 5; }
    int operator()(const DeleteJob&) const { return 6; }
  };
  return std::visit(Rank{next_pod}, write);
}

}  // namespace

void Plan::write(WriteStatus status) {
  count_gated_time(context_, status.status);
  tell_since(context_, status.status);
  tell_kstatus(status.status, context_.now);
  keep_within_schema(status);
  // It causes no write by itself.
  const Status& before = context_.job.status;
  const bool goes_on = status.status.attempt == before.attempt && !is_terminal(before.phase);
  const std::size_t known = std::min(before.runs.size(), status.status.runs.size());
  for (std::size_t place = 0; goes_on && place < known; ++place) {
    std::string& uid = status.status.runs[place].pod_uid;
    if (uid.empty()) uid = proven_pod_uid(context_.view, place);
  }
  check_planned(before, status.status);
  next_ = status.status;
  decision_.writes.emplace_back(std::move(status));
}

void Plan::inform(Status status, bool at_once) {
  if (status.waiting) keep_within_schema(*status.waiting);
  const Status& before = context_.job.status;
  status.observed_generation = context_.job.generation;
  Status rest = status;
  rest.waiting = before.waiting;
  if (!rest.runs.empty()) rest.runs.front().start_time = before.run().start_time;
  if (rest == before && says_the_same(status.waiting, before.waiting) &&
      same_second(status.run().start_time, before.run().start_time)) {
    return;
  }
  if (says_the_same(status.waiting, before.waiting)) status.waiting = before.waiting;
  if (!at_once && context_.view.observed.since_write < kInfoWriteInterval) {
    wake_in(kInfoWriteInterval - context_.view.observed.since_write);
    return;
  }
  write(WriteStatus{std::move(status)});
}

void Plan::create_pod(const Run& run) {
  decision_.writes.emplace_back(CreatePod{run.attempt, run.pod_name, run.start_time});
}

void Plan::wake_in(Duration delay) {
  delay = std::max(delay, Duration::zero());
  if (!decision_.wake_after || delay < *decision_.wake_after) decision_.wake_after = delay;
}

namespace {

// A job that is being deleted: its last pod is in the view, or a live read did not find it.
bool has_seen_last_pod(const JobView& view) {
  if (last_pod(view.job.status).name.empty()) return true;
  if (view.job.status.runs.empty()) return view.observed.confirmed;
  return current_pod(view, 0) || view.seen(0).observed.confirmed;
}

void hand_over_leases(const Context& context, const Status& next, Plan& plan) {
  for (std::size_t place = 0; place < next.runs.size(); ++place) {
    const LeaseStep step = hand_over_lease(of_run(context, place), next.runs[place]);
    if (step.write) plan.decision().writes.emplace_back(*step.write);
    if (step.wake_after) plan.wake_in(*step.wake_after);
  }
}

}  // namespace

Decision decide(const JobView& view, Time now) {
  Context context{view, view.job, view.job.spec, now};
  context.deadline = active_deadline(context);
  Plan plan(context);
  if (view.job.deleting) {
    // Its labels may be gone, but our finalizer must not block its deletion.
    if (!has_seen_last_pod(view)) {
      plan.confirm();
      return plan.decision();
    }
    tidy_pods(context, view.job.status, plan.decision().writes);
    return plan.decision();
  }
  switch (view.job.status.phase) {
    case Phase::kNone:
    case Phase::kPending:
    case Phase::kRunning:
    case Phase::kBackoff:
      decide_active(context, plan);
      break;
    case Phase::kSuspended:
      decide_suspended(context, plan);
      break;
    case Phase::kCancelling:
      decide_cancelling(context, plan);
      break;
    case Phase::kSucceeded:
    case Phase::kFailed:
    case Phase::kCancelled:
      decide_finished(context, plan);
      break;
  }
  Decision& decision = plan.decision();
  if (decision.confirm) {
    decision.writes.clear();
    return decision;
  }
  const Status& next = plan.status();
  tidy_pods(context, next, decision.writes);
  hand_over_leases(context, next, plan);
  for (const Run& run : next.runs) {
    if (run.open() && run.attempt > view.job.status.attempt) plan.create_pod(run);
  }
  // Never rely on events alone: check again after a while.
  if (!decision.wake_after && !is_terminal(next.phase) && next.phase != Phase::kSuspended) {
    plan.wake_in(view.job.spec.lost_after);
  }
  std::stable_sort(decision.writes.begin(), decision.writes.end(),
                   [&](const Write& a, const Write& b) {
                     return rank(a, next.run().pod_name) < rank(b, next.run().pod_name);
                   });
  return decision;
}

}  // namespace holdfast::reconciler
