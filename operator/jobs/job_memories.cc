#include "operator/jobs/job_memories.h"

#include <algorithm>
#include <utility>

#include "operator/jobs/pod_index.h"

namespace holdfast::jobs {
namespace {

// An intent that was sent may still be applied, or may not show yet.
bool has_open_intent(const JobMemory& memory, const reconciler::Status& status) {
  return std::any_of(memory.attempts.begin(), memory.attempts.end(), [&](const auto& entry) {
    const std::int64_t number = entry.first;
    const AttemptMemory& attempt = entry.second;
    if (attempt.intent_stamps.empty() || attempt.pod_existed) return false;
    if (number > status.attempt) return !is_terminal(status.phase);
    return std::any_of(status.runs.begin(), status.runs.end(),
                       [&](const auto& run) { return run.open() && run.attempt == number; });
  });
}

bool has_unseen_pod(const JobMemory& memory, std::uint64_t shown) {
  return std::any_of(memory.attempts.begin(), memory.attempts.end(), [&](const auto& entry) {
    return entry.second.requests.created_version > shown;
  });
}

}  // namespace

JobMemories::JobMemories(Loop& loop, const JobCaches& caches, controller::OwnWrites::Wake wake,
                         std::function<void(const Ptr& memory)> dropped)
    : loop_(loop),
      caches_(caches),
      dropped_(std::move(dropped)),
      own_writes_(
          loop,
          [this](const std::string& key) {
            const Ptr memory = find(key);
            return !memory || !lags(namespace_of(key), *memory);
          },
          std::move(wake)) {}

void JobMemories::release_shards() {
  for (auto& [key, memory] : memories_) {
    for (auto& [number, attempt] : memory->attempts) attempt.creation.reset();
  }
}

JobMemories::Ptr JobMemories::remember(const codecs::CachedJob& job) {
  Ptr& memory = memories_[job.key()];
  if (!memory || memory->uid != job.uid) {
    if (memory) dropped_(memory);
    memory = std::make_shared<JobMemory>();
    memory->uid = job.uid;
  }
  return memory;
}

JobMemories::Ptr JobMemories::find(const std::string& key) const {
  const auto found = memories_.find(key);
  return found == memories_.end() ? nullptr : found->second;
}

JobMemories::Ptr JobMemories::find(const codecs::CachedJob& job) const {
  const Ptr memory = find(job.key());
  return memory && memory->uid == job.uid ? memory : nullptr;
}

void JobMemories::forget(const std::string& key) {
  const Ptr memory = find(key);
  if (!memory || lags(namespace_of(key), *memory)) return;
  const codecs::JobPtr job = caches_.job(key);
  const bool is_same = job && job->uid == memory->uid;
  const bool is_intent = is_same && has_open_intent(*memory, job->job.status);
  const bool awaits_pod =
      is_same && has_unseen_pod(*memory, caches_.pods()->version(namespace_of(key)));
  if (is_intent || awaits_pod || memory->creating()) return;
  drop(key);
}

void JobMemories::drop(const std::string& key) {
  const auto found = memories_.find(key);
  if (found == memories_.end()) return;
  dropped_(found->second);
  memories_.erase(found);
}

cache::Informer* JobMemories::behind(const std::string& ns, const JobMemory& memory) const {
  cache::Informer& jobs = *caches_.jobs();
  cache::Informer& pods = *caches_.pods();
  cache::Informer& leases = caches_.heartbeats().leases();
  if (memory.own.job > jobs.version(ns)) return &jobs;
  if (memory.own.pod > pods.version(ns)) return &pods;
  return memory.own.lease > leases.version(ns) ? &leases : nullptr;
}

Duration JobMemories::held(const std::string& key, JobMemory& memory) {
  const std::string ns = namespace_of(key);
  cache::Informer* const waits_for = behind(ns, memory);
  if (waits_for) own_writes_.wake_when_shown(key);
  return memory.own.wait.left(waits_for, ns, {{"job", key}, {"seen", "our own write"}},
                              loop_.now());
}

Task<void> JobMemories::own_writes_shown(std::string ns, Ptr memory) {
  return own_writes_.shown(
      [this, ns = std::move(ns), memory = std::move(memory)] { return !lags(ns, *memory); });
}

void JobMemories::time_travelled() {
  for (auto& [key, memory] : memories_) {
    memory->own.forget();
    memory->leaving.left.reset();
    // The pods that this process has created may be gone with the time.
    for (auto& [number, attempt] : memory->attempts) attempt.requests.created_version = 0;
  }
}

}  // namespace holdfast::jobs
