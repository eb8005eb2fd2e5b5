#include "tests/unit/reconciler/scenario.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace holdfast::reconciler::testing {

Time now() {
  static const Time kNow = *parse_time("2026-03-01T12:00:00Z");
  return kNow;
}

JobView new_job() {
  JobView view;
  view.job.namespace_ = "default";
  view.job.name = kJobName;
  view.job.uid = kUid;
  view.job.version = 100;
  view.job.generation = 1;
  view.job.created = now() - seconds(200);
  view.observed.live_for = seconds(3600);
  view.observed.nonce = 4711;
  return view;
}

JobView running_job(std::int64_t attempt) {
  JobView view = new_job();
  Status& status = view.job.status;
  status.phase = Phase::kRunning;
  status.attempt = attempt;
  status.begun().attempt = attempt;
  status.begun().pod_name = pod_of(attempt);
  status.start_time = now() - seconds(100);
  status.begun().start_time = now() - seconds(100) + Duration(4711);  // an intent's
  status.observed_generation = 1;
  status.waiting = Waiting{Reason::kPodStarting, "m", "n", now() + seconds(500)};
  return view;
}

JobView job_with_pod() {
  JobView view = running_job();
  add_pod(view, 1, PodPhase::kRunning);
  return view;
}

JobView job_with_ended_pod(int exit_code) {
  JobView view = running_job();
  add_ended_pod(view, 1, exit_code);
  return view;
}

JobView job_before_its_pod() {
  JobView view = running_job();
  view.begun().observed.own_intent = true;
  return view;
}

JobView job_in(Phase phase) {
  if (phase == Phase::kNone) return new_job();
  JobView view = running_job();
  Status& status = view.job.status;
  status.phase = phase;
  if (phase == Phase::kRunning) return view;
  status.begun().node_name = kNode;
  status.waiting = Waiting{AnyReason("Something"), "m", "n", std::nullopt};
  status.begun().next_attempt_time = now() - seconds(10);
  if (phase == Phase::kBackoff) {
    status.begun().next_attempt_time = status.waiting->deadline = now() + seconds(10);
  }
  if (phase == Phase::kSuspended) {
    status.conditions.push_back({"Suspended", true, "JobSuspended", "m", now() - seconds(60)});
  }
  if (is_terminal(phase)) {
    status.runs.clear();
    status.waiting.reset();
    status.completion_time = now() - seconds(10);
  }
  return view;
}

JobView job_of_runs(std::int64_t completions, std::int64_t parallelism, std::int64_t open) {
  JobView view = new_job();
  view.job.spec.completions = completions;
  view.job.spec.parallelism = parallelism;
  view.job.spec.indexed = true;
  if (open == 0) return view;
  Status& status = view.job.status;
  status.phase = Phase::kRunning;
  status.attempt = open;
  status.start_time = now() - seconds(100);
  status.observed_generation = 1;
  status.waiting = Waiting{Reason::kPodRunning, "m", "n", std::nullopt};
  for (std::int64_t index = 0; index < open; ++index) {
    Run run;
    run.index = index;
    run.attempt = index + 1;
    run.attempts = 1;
    run.pod_name = pod_of(run.attempt);
    run.pod_uid = "pod-uid-" + std::to_string(run.attempt);
    run.node_name = kNode;
    run.start_time = now() - seconds(90);
    status.runs.push_back(run);
    add_pod(view, run.attempt, PodPhase::kRunning);
  }
  return view;
}

void end_pod(JobView& view, std::int64_t index, int exit_code) {
  const std::int64_t attempt = view.job.status.runs.at(static_cast<std::size_t>(index)).attempt;
  std::erase_if(view.pods, [&](const PodView& pod) { return pod.attempt == attempt; });
  add_ended_pod(view, attempt, exit_code);
}

void create_pod_slowly(JobView& view, std::int64_t attempt, Duration left) {
  view.observed.creations.push_back({attempt, pod_of(attempt), true, true, left});
}

std::string pod_of(std::int64_t attempt) { return pod_name(kJobName, kUid, attempt); }

PodView& add_pod(JobView& view, std::int64_t attempt, PodPhase phase) {
  PodView pod;
  pod.name = pod_of(attempt);
  pod.uid = "pod-uid-" + std::to_string(attempt);
  pod.version = 1000 + static_cast<std::uint64_t>(attempt);
  pod.owner_uid = kUid;
  pod.job_uid_label = kUid;
  pod.attempt = attempt;
  if (attempt == view.job.status.attempt) pod.intent = view.job.status.run().start_time;
  pod.node_name = kNode;
  pod.phase = phase;
  pod.created = now() - seconds(100);
  pod.has_finalizer = true;
  ContainerView container;
  container.name = "main";
  container.started = phase != PodPhase::kPending;
  if (container.started) container.started_at = now() - seconds(90);
  pod.containers.push_back(container);
  view.pods.push_back(std::move(pod));
  return view.pods.back();
}

PodView& add_ended_pod(JobView& view, std::int64_t attempt, int exit_code) {
  PodView& pod = add_pod(view, attempt, exit_code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed);
  Terminated terminated;
  terminated.exit_code = exit_code;
  terminated.reason = exit_code == 0 ? "Completed" : "Error";
  terminated.started = now() - seconds(90);
  terminated.finished = now() - seconds(5);
  pod.containers[0].terminated = terminated;
  return pod;
}

ContainerView& add_container(PodView& pod, const std::string& name, Progress progress) {
  ContainerView container;
  container.name = name;
  container.started = progress != Progress::kWaits;
  if (container.started) container.started_at = now() - seconds(90);
  if (progress == Progress::kEnded) container.terminated = Terminated{};
  pod.containers.push_back(container);
  return pod.containers.back();
}

void delete_pod(PodView& pod, seconds ago) {
  pod.deletion_grace = seconds(30);
  pod.deletion = now() - ago + pod.deletion_grace;
  pod.going_for = std::chrono::hours(1);
}

void add_history(JobView& view, Outcome outcome, int times) {
  for (int i = 0; i < times; ++i) {
    HistoryEntry entry;
    entry.attempt = static_cast<std::int64_t>(view.job.status.history.size()) + 1;
    entry.outcome = outcome;
    view.job.status.history.push_back(entry);
  }
}

Decision settle(JobView view, Time at) {
  const Time first_read = std::exchange(view.observed.asked, std::nullopt).value_or(at);
  Decision decision = decide(view, at);
  if (!decision.confirm) return decision;
  view.runs.resize(std::max(view.job.status.runs.size(), view.runs.size()));
  for (RunView& run : view.runs) run.observed.confirmed = true;
  view.observed.confirmed = true;
  view.observed.asked = first_read;
  std::erase_if(view.observed.creations, [&](const OpenCreation& one) {
    const auto& asked = decision.confirm_creations;
    return std::count(asked.begin(), asked.end(), one.attempt) > 0;
  });
  decision = decide(view, at);
  EXPECT_FALSE(decision.confirm) << "asks for a second live look";
  return decision;
}

WriteStatus written(const JobView& view, Time at) {
  const auto writes = all<WriteStatus>(settle(view, at));
  EXPECT_EQ(writes.size(), 1u) << "no status is written";
  return writes.empty() ? WriteStatus{view.job.status} : writes.front();
}

Status after(const JobView& view, Time at) {
  const auto writes = all<WriteStatus>(settle(view, at));
  return writes.empty() ? view.job.status : writes.front().status;
}

std::optional<Duration> rests_for(const Decision& decision) {
  return all<WriteStatus>(decision).empty() ? decision.wake_after : std::nullopt;
}

PolicyRule on_exit_code(PolicyAction action, std::vector<int> codes) {
  PolicyRule rule;
  rule.action = action;
  rule.exit_codes = PolicyRule::ExitCodes{"", true, std::move(codes)};
  return rule;
}

bool has_condition(const Status& status, const std::string& type, const std::string& reason) {
  const Condition* const condition = status.condition(type);
  return condition && condition->status && condition->reason == reason;
}

}  // namespace holdfast::reconciler::testing
