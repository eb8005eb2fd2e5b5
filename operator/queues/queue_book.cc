#include "operator/queues/queue_book.h"

#include <algorithm>
#include <cassert>

#include "core/invariant.h"

namespace holdfast::queues {

void QueueBook::put(const codecs::CachedJob& cached, OldPods pods, Time now) {
  const reconciler::Job& job = cached.job;
  const reconciler::Spec& spec = job.spec;
  // It starts nothing any more. Its phase stays Running while somebody's finalizer holds it, so a
  // deleted job has given its permit back, and every replica sees that.
  if (is_terminal(job.status.phase) || job.deleting) return erase(job.uid);
  const bool is_strict = spec.pod_replacement == reconciler::PodReplacementPolicy::kFailed;
  if (is_strict) {
    strict_.insert(job.uid);
  } else {
    strict_.erase(job.uid);
  }
  reconciler::QueuedJob queued;
  const bool says_queued = job.status.says_queued();
  // Whoever asks has seen that no old pod lives. It may exist, on a node that is gone.
  const bool asks = says_queued || asked_.count(job.uid) != 0;
  const bool has_pod = pods == OldPods::kUnknown || (pods == OldPods::kThere && !asks);
  queued.holds = holds_permit(job.status.phase) || (is_strict && has_pod);
  if (holds_permit(job.status.phase) || says_queued) asked_.erase(job.uid);
  const bool may_start =
      !spec.suspend && !spec.cancel && spec.parallelism > 0 && job.unknown.empty();
  queued.waits = (says_queued && may_start) || asked_.count(job.uid) != 0;
  const reconciler::QueuedJob* const before = line.find(job.uid);
  queued.since = before && before->waits ? before->since : now;
  if (says_queued) queued.since = job.status.waiting->since.value_or(queued.since);
  queued.uid = job.uid;
  queued.name = job.name;
  queued.key = job.queue->key;
  queued.priority = job.queue->priority;
  queued.created = job.created;
  queued.attempt = job.status.attempt;
  line.put(std::move(queued));
  assert(is_sound());
}

void QueueBook::erase(const std::string& uid) {
  asked_.erase(uid);
  strict_.erase(uid);
  line.erase(uid);
  assert(is_sound());
}

void QueueBook::ask(const codecs::CachedJob& job, bool wants, OldPods pods, SteadyTime at,
                    Time now) {
  const bool changes = wants
                           ? !job.job.status.says_queued() && asked_.try_emplace(job.uid, at).second
                           : asked_.erase(job.uid) > 0;
  if (changes) put(job, pods, now);
}

bool QueueBook::is_admitted(const std::string& uid, std::int64_t attempt) const {
  const auto found = admitted_.find(uid);
  return found != admitted_.end() && found->second == attempt;
}

Duration QueueBook::waited(const std::string& uid, SteadyTime now) const {
  const auto found = asked_.find(uid);
  return found == asked_.end() ? Duration::zero() : now - found->second;
}

void QueueBook::set_admissions(const reconciler::QueueStatus& status) {
  std::vector<reconciler::Admission> all = status.admitting;
  all.insert(all.end(), carried_.begin(), carried_.end());
  line.set_admissions(all);
  recorded_ = all;
  const auto before = std::exchange(admitted_, {});
  for (const reconciler::Admission& one : all) {
    std::int64_t& attempt = admitted_.try_emplace(one.uid, 0).first->second;
    attempt = std::max(attempt, one.attempt);
    const auto known = before.find(one.uid);
    if (known == before.end() || known->second != one.attempt) news_.push_back(one.uid);
  }
  assert(is_sound());
}

std::vector<std::string> QueueBook::take_admitted() {
  std::vector<std::string> names;
  for (const std::string& uid : std::exchange(news_, {})) {
    if (const reconciler::QueuedJob* const job = line.find(uid)) names.push_back(job->name);
  }
  return names;
}

QueueBook::Current QueueBook::current(const CachedQueue& queue) {
  if (queue.uid != uid_) {
    carried_ = std::exchange(recorded_, {});
    // Somebody has counted without them: their jobs wait like others.
    if (!queue.status.holder.empty()) carried_.clear();
    uid_ = queue.uid;
    seen_version_ = 0;
    own_.forget();
    tenure.lost();
  }
  if (own_.is_newer_than(queue.version)) return {&own_.state(), own_.version()};
  if (queue.version > seen_version_ && queue.version > own_.version()) {
    seen_version_ = queue.version;
    set_admissions(queue.status);
  }
  return {&queue.status, queue.version};
}

bool QueueBook::written(const CachedQueue& queue, reconciler::QueueStatus status,
                        std::uint64_t version, SteadyTime now) {
  if (queue.uid != uid_) return false;
  carried_.clear();
  own_.accepted(std::move(status), version);
  last_write = now;
  set_admissions(own_.state());
  return true;
}

void QueueBook::not_written(const CachedQueue& queue) { set_admissions(*current(queue).status); }

void QueueBook::time_travelled() {
  carried_.clear();
  set_admissions({});
  uid_.clear();
  seen_version_ = 0;
  own_.forget();
  tenure.lost();
}

void QueueBook::check() const {
  for (const auto& [uid, since] : asked_) {
    const reconciler::QueuedJob* const job = line.find(uid);
    invariant(job && job->waits, "a job that asked waits");
  }
  for (const std::string& uid : strict_) {
    invariant(line.find(uid), "the pods of a job that the queue does not have do not matter");
  }
  std::int64_t open = 0;
  for (const auto& [uid, attempt] : admitted_) {
    const reconciler::QueuedJob* const job = line.find(uid);
    if (job && job->attempt <= attempt) ++open;
  }
  invariant(line.used() >= open, "an admission that is on record takes a permit");
  for (const reconciler::Admission& one : recorded_) {
    const auto found = admitted_.find(one.uid);
    invariant(found != admitted_.end() && found->second >= one.attempt,
              "each admission on record is known");
  }
}

bool QueueBook::is_sound() const {
  if (asked_.size() + strict_.size() <= reconciler::Line::kCheckedJobs) check();
  return true;
}

void QueueBook::watch_lag(const CachedQueue* queue, Time now, SteadyTime steady) {
  const bool could = queue && reconciler::could_admit(queue->spec, queue->status.tokens, now, line);
  if (!could) {
    admissible_since_.reset();
  } else if (!admissible_since_) {
    admissible_since_ = steady;
  }
}

Duration QueueBook::lag(SteadyTime now) const {
  return admissible_since_ ? now - *admissible_since_ : Duration::zero();
}

}  // namespace holdfast::queues
