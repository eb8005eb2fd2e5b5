// The live reads that verdicts need.
#include <algorithm>
#include <set>

#include "core/side_by_side.h"
#include "operator/jobs/job_controller.h"
#include "operator/jobs/lanes.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"

namespace holdfast::controller {
namespace {

// The limit of all live reads of a verdict, because a shard's hand-over waits for them.
constexpr std::chrono::seconds kLiveLook{30};
// Of a look at several runs no read begins later than this, and none lasts longer. The next look
// reads the others, so that slow reads hold up no verdict that is confirmed.
constexpr std::chrono::seconds kBeginLooks{5};
constexpr std::chrono::seconds kLookAtSeveral{10};

}  // namespace

Task<Status> JobController::confirm(const CachedJob& job, const reconciler::Decision& decision,
                                    JobMemory& memory, Live& live) {
  const auto wait = asked_to_wait(memory.looks_not_before, loop_.now());
  if (wait) co_return *wait;
  auto task = look(job, decision, memory, live);
  const Status done = co_await task;
  if (!done) heed(done.error(), loop_.now(), memory.looks_not_before);
  co_return done;
}

// Those whose last read has just failed are left out, because the others would wait for them.
JobController::Live JobController::runs_to_look_at(const CachedJob& job,
                                                   const std::vector<std::int64_t>& runs,
                                                   const JobMemory& memory) const {
  Live chosen;
  if (runs.empty()) {
    const reconciler::LastPod last = reconciler::last_pod(job.job.status);
    LiveRun& one = chosen[reconciler::kNoRun];
    one.pod_name = last.name;
    one.pod_uid = last.uid;
    one.attempt = job.job.status.attempt;
    return chosen;
  }
  const std::uint64_t shown = pods_->version(job.namespace_);
  const std::set<std::int64_t> wanted(runs.begin(), runs.end());
  std::set<std::int64_t> troubled;
  for (const reconciler::Run& run : job.job.status.runs) {
    if (wanted.count(run.index) == 0) continue;
    const AttemptMemory* const known = memory.find_attempt(run.attempt);
    const bool has_failed =
        known && known->look_failed && loop_.now() - *known->look_failed < kLookAtSeveral;
    if (has_failed) troubled.insert(run.index);
    LiveRun& one = chosen[run.index];
    one.pod_name = run.pod_name;
    one.pod_uid = run.pod_uid;
    one.attempt = run.attempt;
    // No pod of it comes any more.
    one.may_be_over = (!run.open() || job.job.deleting) && !(known && known->may_still_show(shown));
    if (job.job.spec.heartbeat) one.lease_name = lease_name(job.job, run.index);
  }
  if (troubled.size() < chosen.size()) {
    for (const std::int64_t index : troubled) chosen.erase(index);
  }
  return chosen;
}

// A read that begins now says of these pods, if they do not exist, that they never will. The pods
// of looked-at runs are read once.
void JobController::add_creations(const CachedJob& job, const std::vector<std::int64_t>& attempts,
                                  JobMemory& memory, Live& chosen) {
  std::set<std::int64_t> can_come;
  for (const auto& one : open_creations(job, memory, {})) {
    if (one.left > Duration::zero()) can_come.insert(one.attempt);
  }
  std::set<std::int64_t> looked;
  for (auto& [index, one] : chosen) {
    one.may_not_come = index >= 0 && can_come.count(one.attempt) == 0;
    looked.insert(one.attempt);
  }
  for (const std::int64_t attempt : attempts) {
    if (looked.count(attempt) != 0) continue;
    LiveRun& one = chosen[live_key(attempt)];
    one.pod_name = reconciler::pod_name(job.name, job.uid, attempt);
    one.attempt = attempt;
    one.may_not_come = can_come.count(attempt) == 0;
    memory.attempts.try_emplace(attempt);
  }
}

// What could be read goes into `live`, and a failure is returned. The decision acts on the runs
// that were read.
Task<Status> JobController::look(const CachedJob& job, const reconciler::Decision& decision,
                                 JobMemory& memory, Live& live) {
  const std::vector<std::int64_t>& runs = decision.confirm_runs;
  const SteadyTime begin_by = loop_.now() + kBeginLooks;
  // Other runs may lose their pods while this look at one of them lasts.
  const bool has_others = runs.size() > 1 || job.job.spec.many_runs();
  const SteadyTime by = loop_.now() + (has_others ? kLookAtSeveral : kLiveLook);
  Live seen;
  if (!runs.empty() || decision.confirm_creations.empty()) {
    seen = runs_to_look_at(job, runs, memory);
  }
  add_creations(job, decision.confirm_creations, memory, seen);
  const auto pod_is_known = [&](const LiveRun& one) {
    const AttemptMemory* const known = memory.find_attempt(one.attempt);
    return known && known->pod_existed;
  };
  std::optional<Error> failure;
  std::vector<std::function<Task<void>()>> looks;
  for (auto& [index, one] : seen) {
    one.pod_known = pod_is_known(one);
    looks.emplace_back([this, &job, &memory, begin_by, by, &run = one, &failure]() -> Task<void> {
      if (loop_.now() > begin_by) co_return;
      auto task = look_at_run(job, memory, by, run);
      const Status done = co_await task;
      run.read = done.ok();
      if (done) co_return;
      failure = done.error();
      AttemptMemory* const known = memory.find_attempt(run.attempt);
      if (known) known->look_failed = loop_.now();
    });
  }
  const Lanes lanes(executor_.lanes(), job.job.namespace_, looks.size());
  auto together = side_by_side(loop_, lanes.count(), std::move(looks));
  co_await together;
  const bool none =
      std::none_of(seen.begin(), seen.end(), [](const auto& entry) { return entry.second.read; });
  if (none && failure) co_return *failure;
  // Last, because a pod can have come and gone unseen only if the job has changed since.
  auto task = look_at_job(job, memory, std::max(by, loop_.now() + kBeginLooks));
  const Status same = co_await task;
  if (!same) co_return same;
  for (auto& [index, one] : seen) {
    if (!one.read) continue;
    // The answer to a creation came meanwhile: the read without a pod is older than the pod.
    if (!one.pod && pod_is_known(one) != one.pod_known) {
      failure = make_error(ErrorCode::kConflict, "the pod was created since it was looked for");
      continue;
    }
    // The reads may have taken long, and the watch may be newer by now.
    const auto cached = pods_.get(job.namespace_ + "/" + one.pod_name);
    if (one.pod && cached && cached->uid == one.pod->uid && cached->version > one.pod->version) {
      one.pod = cached;
    }
    AttemptMemory* const known = memory.find_attempt(one.attempt);
    // A stranger's pod of that name is none of the job's.
    const bool is_there = one.pod && one.pod->pod.owner_uid == job.uid;
    if (one.may_not_come && known && !is_there) known->comes_no_more = true;
    // A look may be too short for all runs, and the next one leaves these out.
    if (index >= 0 && one.may_be_over && (!one.pod || one.pod->pod.ended())) {
      memory.runs[index].over = one.attempt;
    }
    live[index] = std::move(one);
  }
  if (failure) co_return *failure;
  co_return Unit{};
}

Task<Status> JobController::look_at_run(const CachedJob& job, const JobMemory& memory,
                                        SteadyTime by, LiveRun& live) {
  auto get = client_.get(kube::object_path("/api/v1", "pods", job.namespace_, live.pod_name),
                         kube::live_look(by, loop_.now()));
  const Result<JsonDocument> answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  if (answer) {
    live.pod = decode_pod(*answer);
    const AttemptMemory* const known = memory.find_attempt(live.attempt);
    const bool was_the_jobs =
        live.pod && (live.pod->uid == live.pod_uid ||
                     (live.pod_known && known && live.pod->uid == known->pod_uid));
    if (live.pod && !live.pod->names(job.uid) && !was_the_jobs) live.pod.reset();
  }
  if (live.pod && !live.pod->pod.node_name.empty()) {
    auto task = nodes_.confirm(live.pod->pod.node_name, by);
    const Status confirmed = co_await task;
    if (!confirmed) co_return confirmed.error();
  }
  if (live.lease_name.empty()) co_return Unit{};
  auto task = heartbeats_.confirm(job.namespace_, live.lease_name, job.uid, by);
  const Result<HeartbeatPtr> lease = co_await task;
  if (!lease) co_return lease.error();
  live.lease = *lease;
  co_return Unit{};
}

Task<Status> JobController::look_at_job(const CachedJob& job, JobMemory& memory, SteadyTime by) {
  kube::CallOptions options = kube::live_look(by, loop_.now());
  options.answer_with_metadata = true;
  auto get = client_.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                           job.namespace_, job.name),
                         options);
  const Result<JsonDocument> current = co_await get;
  if (!current) co_return current.error();
  kube::Object meta;
  if (kube::decode_meta(*current, meta) && meta.uid == job.uid && meta.version == job.version) {
    co_return Unit{};
  }
  if (meta.uid == job.uid) memory.job_version = std::max(memory.job_version, meta.version);
  co_return make_error(ErrorCode::kConflict, "the job has changed since it was cached");
}

}  // namespace holdfast::controller
