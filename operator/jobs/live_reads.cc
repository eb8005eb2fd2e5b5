#include "operator/jobs/live_reads.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "core/pause.h"
#include "core/side_by_side.h"
#include "operator/jobs/channels.h"
#include "operator/jobs/job_facts.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"

namespace holdfast::jobs {
namespace {

// The limit of all live reads of a verdict, because a shard's hand-over waits for them.
constexpr std::chrono::seconds kLiveLook{30};
// Of a look at several runs no read begins later than this, and none lasts longer than
// kLookAtSeveral. The next look reads the others, so that slow reads hold up no verdict that is
// confirmed.
constexpr std::chrono::seconds kBeginLooks{5};

}  // namespace

Task<Result<>> LiveReads::confirm(const codecs::CachedJob& job,
                                  const reconciler::Decision& decision, JobMemory& memory,
                                  LiveRuns& live) {
  const auto wait = asked_to_wait(memory.looks_not_before, deps_.loop.now());
  if (wait) co_return *wait;
  auto task = look(job, decision, memory, live);
  const Result<> done = co_await task;
  if (!done) heed(done.error(), deps_.loop.now(), memory.looks_not_before);
  co_return done;
}

LiveRuns LiveReads::choose(const codecs::CachedJob& job, const reconciler::Decision& decision,
                           JobMemory& memory) {
  LiveRuns chosen;
  if (!decision.confirm_runs.empty() || decision.confirm_creations.empty()) {
    chosen = runs_to_read(job, decision.confirm_runs, memory,
                          deps_.caches.pods()->version(job.namespace_), deps_.loop.now());
  }
  const OpenCreations open = open_creations(job, memory, {}, deps_.shards.moment_of(job));
  deps_.caches.own_pods_lag(job, open.overdue);
  std::set<std::int64_t> can_come;
  for (const auto& one : open.all) {
    if (one.left > Duration::zero()) can_come.insert(one.attempt);
  }
  add_creations_to_read(job, decision.confirm_creations, can_come, memory, chosen);
  for (auto& [index, one] : chosen) one.pod_known = pod_is_known(one, memory);
  return chosen;
}

Task<Result<>> LiveReads::look(const codecs::CachedJob& job, const reconciler::Decision& decision,
                               JobMemory& memory, LiveRuns& live) {
  const SteadyTime begin_by = deps_.loop.now() + kBeginLooks;
  // Other runs may lose their pods while this look at one of them lasts.
  const bool has_others = decision.confirm_runs.size() > 1 || job.job.spec.many_runs();
  const SteadyTime by = deps_.loop.now() + (has_others ? kLookAtSeveral : kLiveLook);
  LiveRuns runs = choose(job, decision, memory);
  std::optional<Error> failure;
  auto reads = read_runs(job, {begin_by, by}, memory, runs, failure);
  const Result<> any = co_await reads;
  if (!any) co_return any;
  // Last, because a pod can have come and gone unseen only if the job has changed since.
  auto task = read_job(job, memory, std::max(by, deps_.loop.now() + kBeginLooks));
  const Result<> same = co_await task;
  if (!same) co_return same;
  for (auto& [index, one] : runs) {
    if (!one.read) continue;
    const codecs::PodPtr cached = deps_.caches.pod(job.namespace_, one.pod_name);
    if (!record_read(index, one, cached, job, memory)) {
      failure = make_error(ErrorCode::kConflict, "the pod was created since it was looked for");
      continue;
    }
    live[index] = std::move(one);
  }
  if (failure) co_return *failure;
  co_return Unit{};
}

Task<Result<>> LiveReads::read_runs(const codecs::CachedJob& job, Limits limits, JobMemory& memory,
                                    LiveRuns& runs, std::optional<Error>& failure) {
  std::vector<std::function<Task<void>()>> looks;
  for (auto& [index, one] : runs) {
    looks.emplace_back([this, &job, &memory, limits, &run = one, &failure]() -> Task<void> {
      if (deps_.loop.now() > limits.begin_by) co_return;
      auto task = read_run(job, memory, limits.by, run);
      const Result<> done = co_await task;
      run.read = done.ok();
      if (done) co_return;
      failure = done.error();
      AttemptMemory* const known = memory.find_attempt(run.attempt);
      if (known) known->look_failed = deps_.loop.now();
    });
  }
  const Channels channels(deps_.channels, job.job.namespace_, looks.size());
  auto together = side_by_side(deps_.loop, channels.count(), std::move(looks));
  co_await together;
  const bool none =
      std::none_of(runs.begin(), runs.end(), [](const auto& entry) { return entry.second.read; });
  if (none && failure) co_return *failure;
  co_return Unit{};
}

Task<Result<>> LiveReads::read_run(const codecs::CachedJob& job, const JobMemory& memory,
                                   SteadyTime by, LiveRun& run) {
  auto get = deps_.client.get(pod_path(job.namespace_, run.pod_name),
                              kube::live_look(by, deps_.loop.now()));
  const Result<JsonDocument> answer = co_await get;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  if (answer) {
    run.pod = codecs::decode_pod(*answer);
    if (run.pod && !is_of_attempt(*run.pod, job, run, memory)) run.pod.reset();
  }
  if (run.pod && !run.pod->pod.node_name.empty()) {
    auto task = deps_.nodes.confirm(run.pod->pod.node_name, by);
    const Result<> confirmed = co_await task;
    if (!confirmed) co_return confirmed.error();
  }
  if (run.lease_name.empty()) co_return Unit{};
  auto task = deps_.caches.heartbeats().confirm(job.namespace_, run.lease_name, job.uid, by);
  const Result<codecs::HeartbeatPtr> lease = co_await task;
  if (!lease) co_return lease.error();
  run.lease = *lease;
  co_return Unit{};
}

Task<Result<>> LiveReads::read_job(const codecs::CachedJob& job, JobMemory& memory, SteadyTime by) {
  kube::CallOptions options = kube::live_look(by, deps_.loop.now());
  options.answer_with_metadata = true;
  auto get = deps_.client.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                                job.namespace_, job.name),
                              options);
  const Result<JsonDocument> current = co_await get;
  if (!current) co_return current.error();
  kube::Object meta;
  if (kube::decode_meta(*current, meta) && meta.uid == job.uid && meta.version == job.version) {
    co_return Unit{};
  }
  if (meta.uid == job.uid) memory.own.job = std::max(memory.own.job, meta.version);
  co_return make_error(ErrorCode::kConflict, "the job has changed since it was cached");
}

}  // namespace holdfast::jobs
