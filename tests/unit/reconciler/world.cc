#include "tests/unit/reconciler/world.h"

#include <algorithm>

#include "reconciler/names.h"
#include "tests/unit/reconciler/random_job.h"

namespace holdfast::reconciler::testing {
World::World(Rng& rng)
    : rng_(rng),
      now_(*parse_time("2026-03-01T12:00:00Z")),
      start_(now_),
      job_(random_job(rng, now_)),
      ledger_(job_),
      workers_(rng, version_, ledger_, job_.spec.pool ? 1 + rng.below(3) : 0) {
  policy_always_failed_ = job_.spec.pod_replacement == PodReplacementPolicy::kFailed;
  template_invalid_ = rng.percent(3);
  refuse_percent_ = rng.percent(30) ? 60 : 0;
  const int count = 1 + rng.below(4);
  for (int i = 0; i < count; ++i) {
    nodes_.push_back(WorldNode{"node-" + std::to_string(i), true, true, 1, now_});
  }
  // What an earlier job of the same name left, and a stranger with our label and one of our names.
  PodView old;
  old.name = pod_name(job_.name, "old-uid", 1);
  old.uid = "old";
  old.owner_uid = "old-uid";
  old.job_uid_label = rng.percent(50) ? job_.uid : "old-uid";
  old.has_finalizer = true;
  old.phase = PodPhase::kSucceeded;
  pods_.push_back(old);
  if (rng.percent(10)) {
    old.name = pod_name(job_.name, job_.uid, 1 + rng.below(2));
    old.uid = "stranger";
    old.owner_uid = "strange-uid";
    pods_.push_back(old);
  }
  pods_changed();
  job_changed();
}

long World::seconds_since_start() const {
  return static_cast<long>(std::chrono::floor<seconds>(now_ - start_).count());
}

std::uint64_t World::job_changed() {
  job_.version = ++version_;
  job_log_.push_back(job_exists_ ? std::make_shared<const Job>(job_) : nullptr);
  return version_;
}

void World::pods_changed() {
  const bool same = pods_at_ == version_ && !pods_log_.empty();
  if (same && pods_log_.back()->size() == pods_.size()) return;
  pods_at_ = version_;
  pods_log_.push_back(std::make_shared<const std::vector<PodView>>(pods_));
}

PodView* World::pod_named(const std::string& name) {
  for (PodView& pod : pods_) {
    if (pod.name == name) return &pod;
  }
  return nullptr;
}

const PodView* World::find_pod(const std::string& name) const {
  return const_cast<World*>(this)->pod_named(name);
}

Answer World::put_status(std::uint64_t version, const Status& status, bool fresh) {
  if (!job_exists_) return Answer::kGone;
  if (version != job_.version) return Answer::kConflict;
  ledger_.status_written({job_.status, status, job_.spec, pods_, nodes_, now_, fresh,
                          policy_always_failed_, admitted_, workers_.pool_was_missing()});
  workers_.status_written(job_, status);
  job_.status = status;
  // As the API stores them.
  for (Condition& condition : job_.status.conditions) {
    condition.last_transition_time = std::chrono::floor<seconds>(condition.last_transition_time);
  }
  job_changed();
  return Answer::kOk;
}

Answer World::create_pod(const CreatePod& write) {
  if (!job_exists_) return Answer::kRefused;
  if (const PodView* const there = pod_named(write.name)) {
    const bool adopted = there->owner_uid == job_.uid && there->intent == write.intent;
    return adopted ? Answer::kExists : Answer::kExistsForeign;
  }
  if (template_invalid_) return Answer::kInvalid;
  if (rng_.percent(refuse_percent_)) return Answer::kRefused;
  PodView pod;
  pod.name = write.name;
  pod.uid = write.name + "-" + std::to_string(version_);
  pod.version = ++version_;
  pod.owner_uid = job_.uid;
  pod.job_uid_label = job_.uid;
  pod.attempt = write.attempt;
  pod.intent = write.intent;
  pod.created = std::chrono::floor<seconds>(now_);
  pod.has_finalizer = true;
  pod.containers.resize(1);
  pod.containers[0].name = "main";
  if (!calm_ && rng_.percent(20)) {
    pod.gates = "example.com/quota";
    pod.placed = pod.created;
  }
  note("pod " + pod.name + " is created");
  ledger_.pod_created(job_, write, pod);
  pods_.push_back(pod);
  pods_changed();
  return Answer::kOk;
}

void World::ask_to_go(PodView& pod) {
  if (pod.deletion) return;
  pod.version = ++version_;
  pod.deletion_grace = pod.node_name.empty() || pod.ended() ? seconds(0) : seconds(30);
  pod.deletion = std::chrono::floor<seconds>(now_) + pod.deletion_grace;
}

Answer World::delete_pod(const DeletePod& write) {
  PodView* const pod = pod_named(write.name);
  if (!pod) return Answer::kGone;
  if (pod->uid != write.uid || pod->version != write.version) return Answer::kConflict;
  ledger_.pod_touched("deletes", job_, *pod);
  ask_to_go(*pod);
  collect();
  return Answer::kOk;
}

Answer World::release_pod(const ReleasePod& write) {
  PodView* const pod = pod_named(write.name);
  if (!pod || pod->uid != write.uid) return Answer::kGone;
  if (!pod->has_finalizer) return Answer::kOk;
  if (job_exists_) ledger_.pod_touched("releases", job_, *pod);
  pod->version = ++version_;
  pod->has_finalizer = false;
  collect();
  return Answer::kOk;
}

Answer World::relabel_pod(const RelabelPod& write) {
  PodView* const pod = pod_named(write.name);
  if (!pod || pod->uid != write.uid) return Answer::kGone;
  if (pod->job_uid_label == job_.uid) return Answer::kOk;
  pod->version = ++version_;
  pod->job_uid_label = job_.uid;
  pod->attempt = write.attempt;
  pods_changed();
  return Answer::kOk;
}

Answer World::delete_job(std::uint64_t version) {
  if (!job_exists_) return Answer::kGone;
  if (version != job_.version) return Answer::kConflict;
  const auto& ttl = job_.spec.ttl_after_finished;
  if (!is_terminal(job_.status.phase) || !ttl || now_ < *job_.status.completion_time + *ttl) {
    ledger_.complain("S5: the job is deleted before its time");
  }
  job_exists_ = false;
  job_changed();
  return Answer::kOk;
}

void World::collect() {
  const auto gone = [this](const PodView& pod) {
    if (pod.owner_uid != job_.uid && !pod.owner_uid.empty()) return false;
    return pod.deletion && !pod.has_finalizer && (pod.node_name.empty() || pod.ended());
  };
  if (tracing()) {
    for (const PodView& pod : pods_) {
      if (gone(pod)) note("pod " + pod.name + " is gone");
    }
  }
  std::erase_if(pods_, gone);
  pods_changed();
  if (!job_exists_ || !job_.deleting) return;
  for (const PodView& pod : pods_) {
    if (pod.owner_uid == job_.uid) return;
  }
  job_exists_ = false;
  job_changed();
}

}  // namespace holdfast::reconciler::testing
