#include "operator/queues/old_pods_monitor.h"

#include <algorithm>
#include <utility>

#include "operator/jobs/pod_index.h"

namespace holdfast::queues {
namespace {

// It had an attempt, none runs, and another may follow.
bool rests(const reconciler::Status& status) {
  return status.attempt > 0 && !holds_permit(status.phase) && !is_terminal(status.phase);
}

}  // namespace

OldPods OldPodsMonitor::look(const codecs::CachedJob& job) {
  if (job.job.spec.pod_replacement != reconciler::PodReplacementPolicy::kFailed) {
    forget_rest(job);
    return OldPods::kNone;
  }
  // Another look follows once they are read. Of other replicas' jobs nothing has to be known.
  if (!deps_.watched_shards.read(deps_.membership.shard_of(job.namespace_), job.namespace_)) {
    forget_rest(job);
    return OldPods::kUnknown;
  }
  if (any_slot_is_taken(job)) {
    forget_rest(job);
    return OldPods::kThere;
  }
  const bool is_there = any_pod_lives(job);
  if (is_there || !rests(job.job.status)) {
    forget(job);
    return is_there ? OldPods::kThere : OldPods::kNone;
  }
  const SteadyTime steady = deps_.loop.now();
  if (coming_.may_come(job, deps_.clock.now(steady), steady)) return OldPods::kThere;
  return is_as_new(job) ? OldPods::kNone : OldPods::kUnknown;
}

// Of attempts that have ended. A job of a pool has no pods of its own.
bool OldPodsMonitor::any_slot_is_taken(const codecs::CachedJob& job) const {
  const auto& runs = job.job.status.runs;
  return std::any_of(runs.begin(), runs.end(), [&](const reconciler::Run& run) {
    return run.at_worker() && !run.open() && !deps_.has_left(job, run);
  });
}

bool OldPodsMonitor::any_pod_lives(const codecs::CachedJob& job) const {
  const auto pods = deps_.pods.by_index(jobs::kByJob, job.key());
  return std::any_of(pods.begin(), pods.end(), [&](const codecs::PodPtr& pod) {
    return pod->names(job.uid) && !pod->pod.ended();
  });
}

// A cache of pods that is older than the job may not show its last pod yet.
bool OldPodsMonitor::is_as_new(const codecs::CachedJob& job) {
  // Later writes of the job change nothing of its rest.
  const auto [rested, is_new] = rested_.try_emplace(job.uid, 0);
  if (is_new) rested->second = deps_.proof.now();
  cache::CacheCheck& pods = deps_.proof.pods();
  if (pods.shown(job.namespace_) >= rested->second) {
    unsure_[job.namespace_].since.erase(job.key());
    return true;
  }
  unsure_[job.namespace_].since.try_emplace(job.key(), deps_.loop.now());
  pods.begin(job.namespace_);
  return false;
}

void OldPodsMonitor::forget(const codecs::CachedJob& job) {
  coming_.forget(job);
  forget_rest(job);
}

void OldPodsMonitor::forget_rest(const codecs::CachedJob& job) {
  if (const auto unsure = unsure_.find(job.namespace_); unsure != unsure_.end()) {
    unsure->second.since.erase(job.key());
  }
  rested_.erase(job.uid);
}

void OldPodsMonitor::time_travelled() {
  rested_.clear();
  unsure_.clear();
  coming_.clear();
}

// Null: the cache has no such job, or it has no queue any more.
codecs::JobPtr OldPodsMonitor::queued(const std::string& key) const {
  codecs::JobPtr job = deps_.jobs.get(key);
  return job && job->job.queue ? job : nullptr;
}

std::vector<codecs::JobPtr> OldPodsMonitor::take_unsure() {
  std::vector<codecs::JobPtr> jobs;
  std::erase_if(unsure_, [](const auto& entry) { return entry.second.since.empty(); });
  for (auto& [ns, unsure] : unsure_) {
    // Each event comes here, and there may be thousands of jobs.
    const cache::Moment shown = deps_.proof.pods().shown(ns);
    if (std::exchange(unsure.looked_at, shown) == shown) continue;
    std::erase_if(unsure.since, [&](const auto& one) { return !queued(one.first); });
    for (const auto& [key, since] : unsure.since) jobs.push_back(queued(key));
  }
  return jobs;
}

bool OldPodsMonitor::is_unsure(const codecs::CachedJob& job) const {
  const auto unsure = unsure_.find(job.namespace_);
  return unsure != unsure_.end() && unsure->second.since.count(job.key()) != 0;
}

std::optional<Duration> OldPodsMonitor::renew(const std::string& ns) {
  std::optional<Duration> look;
  const auto unsure = unsure_.find(ns);
  if (unsure == unsure_.end()) return look;
  for (const auto& [key, since] : unsure->second.since) {
    const Duration left = since + kOtherEvents - deps_.loop.now();
    if (left <= Duration::zero()) deps_.proof.pods().compare(ns);
    const Duration next = left > Duration::zero() ? left : Duration(kNextLook);
    look = std::min(look.value_or(next), next);
  }
  return look;
}

OldPodsMonitor::Freed OldPodsMonitor::take_freed(const std::string& ns) {
  Freed freed;
  const ComingPods::Look look = coming_.look(ns, deps_.loop.now());
  freed.next = look.next;
  for (const std::string& key : look.over) {
    if (codecs::JobPtr job = queued(key)) freed.jobs.push_back(std::move(job));
  }
  return freed;
}

}  // namespace holdfast::queues
