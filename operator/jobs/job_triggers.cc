#include "operator/jobs/job_triggers.h"

#include <utility>
#include <vector>

#include "operator/jobs/pod_index.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"

namespace holdfast::jobs {

controller::Priority priority_of(const codecs::CachedJob& job) {
  const reconciler::Phase phase = job.job.status.phase;
  const bool starts = phase == reconciler::Phase::kNone || phase == reconciler::Phase::kPending ||
                      phase == reconciler::Phase::kBackoff;
  return starts && !job.job.spec.cancel ? controller::Priority::kStart
                                        : controller::Priority::kFresh;
}

JobTriggers::JobTriggers(Dependencies dependencies, Duration resync)
    : deps_(std::move(dependencies)), resync_(resync) {
  deps_.caches.jobs().on_change([this](const auto& change) { on_job(change); });
  deps_.caches.pods().on_change([this](const auto& change) { on_pod(change); });
  deps_.nodes.on_node_change([this](const std::string& node) { on_node(node); });
  deps_.caches.heartbeats().on_change(
      [this](const auto& before, const auto& after) { on_heartbeat(before, after); });
}

void JobTriggers::begin() {
  started_ = true;
  deps_.caches.pods().for_each([this](const codecs::PodPtr& pod) { look_at_node(*pod); });
}

void JobTriggers::resync_later() {
  resync_timer_ = deps_.loop.call_after(resync_, [this] {
    deps_.caches.jobs().for_each([this](const codecs::JobPtr& job) {
      deps_.queue.add(job->key(), controller::Priority::kLow);
    });
    deps_.caches.pods().for_each(
        [this](const codecs::PodPtr& pod) { look_at_job_of(*pod, controller::Priority::kLow); });
    resync_later();
  });
}

void JobTriggers::look_at_job_of(const codecs::CachedPod& pod, controller::Priority priority) {
  if (const std::string key = look_key(pod); !key.empty()) deps_.queue.add(key, priority);
}

void JobTriggers::on_job(const cache::View<codecs::CachedJob>::Change& change) {
  const codecs::CachedJob& job = change.latest();
  const controller::Priority priority =
      change.after ? priority_of(job) : controller::Priority::kFresh;
  deps_.queue.add(job.key(), change.initial ? controller::Priority::kLow : priority);
  if (change.after) {
    deps_.census.put(job.uid, deps_.caches.shard_of(job), job.namespace_, job.job.status);
    deps_.caches.heartbeats().look_again_at_all(job.namespace_, job.name);
    deps_.silences.see(job);
  } else {
    deps_.silences.gone(job);
    look_for_strays_of(job);
    deps_.census.erase(job.uid);
    deps_.caches.heartbeats().look_again_at_all(job.namespace_, job.name);
  }
}

// The job is gone. Its pods that the cache does not show may have our finalizer.
void JobTriggers::look_for_strays_of(const codecs::CachedJob& job) {
  if (!deps_.caches.holds_shard_of(job)) return;
  std::vector<std::string> pods;
  for (const reconciler::Run& run : job.job.status.runs) {
    if (!run.at_worker() && !run.pod_name.empty()) pods.push_back(run.pod_name);
  }
  deps_.strays.look_for(deps_.caches.shard_of(job), job.namespace_, std::move(pods));
}

void JobTriggers::on_pod(const cache::View<codecs::CachedPod>::Change& change) {
  const codecs::CachedPod& pod = change.latest();
  look_at_job_of(pod, change.initial ? controller::Priority::kLow : controller::Priority::kFresh);
  const codecs::JobPtr job = deps_.caches.job_of(pod);
  const reconciler::Run* const run = job ? job->job.status.run_of_pod(pod.name) : nullptr;
  if (run && job->job.spec.heartbeat) {
    deps_.caches.heartbeats().look_again(pod.namespace_, codecs::lease_name(job->job, run->index));
  }
  remember_pod(pod, change.after != nullptr);
  if (change.after) {
    deps_.silences.see(pod);
    if (started_) look_at_node(pod);
  } else {
    deps_.silences.gone(pod);
  }
  if (!change.before || !change.after) return;
  const codecs::CachedPod& before = *change.before;
  if (before.job_name != pod.job_name) look_at_job_of(before);
  if (!before.pod.ended() && pod.pod.ended()) look_for_fenced(pod, job);
}

void JobTriggers::look_for_fenced(const codecs::CachedPod& pod, const codecs::JobPtr& job) {
  if (!job || !deps_.caches.holds_shard_of(*job)) return;
  const reconciler::Run* const run = job->job.status.run_of_pod(pod.name);
  if (run && run->open()) return;
  deps_.telemetry.fenced_outcome(to_string(pod.pod.phase));
  deps_.log.info("a fenced pod ended; its outcome does not count",
                 {{"job", job->key()},
                  {"uid", job->uid},
                  {"attempt", std::to_string(pod.pod.attempt)},
                  {"pod", pod.name},
                  {"phase", to_string(pod.pod.phase)}});
}

// A reconcile may still wait for the answer to its creation. Whatever the answer says, an attempt
// whose pod has existed gets no second pod. The mark shows that the pod is the attempt's.
void JobTriggers::remember_pod(const codecs::CachedPod& pod, bool is_there) {
  const std::string key = job_key(pod);
  const JobMemories::Ptr memory = deps_.memories.find(key);
  if (!memory || memory->uid != pod.pod.owner_uid) return;
  const codecs::JobPtr cached = deps_.caches.job(key);
  const codecs::JobPtr job = cached && cached->uid == memory->uid ? cached : nullptr;
  const std::int64_t number = reconciler::attempt_in_name(pod.job_name, memory->uid, pod.name);
  if (job) memory->remember_highest(job->job.status, number);
  const reconciler::Run* const run = job ? job->job.status.run_of_pod(pod.name) : nullptr;
  const bool is_on_record = run && run->open() && run->start_time == pod.pod.intent;
  if (is_on_record) memory->attempts.try_emplace(number);
  AttemptMemory* const attempt = memory->find_attempt(number);
  if (attempt && is_there) attempt->pod.see(pod.pod, now());
  if (!pod.pod.intent || !attempt || !(is_on_record || attempt->has_intent(pod.pod.intent))) return;
  deps_.executor.pod_exists(pod.namespace_, number, pod.uid, *memory);
}

// Tracks the pod's node, so that any later holder of the job has seen its loss from the first
// moment.
void JobTriggers::look_at_node(const codecs::CachedPod& pod) {
  if (!pod.pod.node_name.empty() && !pod.pod.ended()) deps_.nodes.look(pod.pod.node_name);
}

void JobTriggers::on_node(const std::string& node) {
  for (const codecs::PodPtr& pod : deps_.caches.pods().by_index(kByNode, node))
    look_at_job_of(*pod);
}

// A renewal without new content needs no reconcile: the last one has set the next.
void JobTriggers::on_heartbeat(const codecs::HeartbeatPtr& before,
                               const codecs::HeartbeatPtr& after) {
  const codecs::CachedHeartbeat& lease = after ? *after : *before;
  const std::string key = lease.namespace_ + "/" + lease.job_name;
  if (before && after) {
    const auto& a = before->lease;
    const auto& b = after->lease;
    const codecs::JobPtr job = deps_.caches.job(key);
    const auto heartbeat = job ? job->job.spec.heartbeat : std::nullopt;
    const auto deadline = heartbeat ? heartbeat->progress_deadline : std::nullopt;
    const bool overdue = deadline && a.progress_age < *deadline && b.progress_age >= *deadline;
    const bool first_word = a.progress_message.empty() && !b.progress_message.empty();
    if (a.holder == b.holder && a.attempt == b.attempt && a.renewed == b.renewed &&
        a.ended == b.ended && !overdue && !first_word) {
      return;
    }
  }
  deps_.queue.add(key, controller::Priority::kFresh);
}

}  // namespace holdfast::jobs
