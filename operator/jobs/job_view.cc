// The view of one job: the caches, this process's memory, and what was read live.
#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "operator/jobs/job_controller.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/heartbeat.h"
#include "reconciler/run/slot.h"

namespace holdfast::controller {
namespace {

// After this time the watch lags that does not show a pod that we have created.
constexpr std::chrono::seconds kOwnPodTimeout{5};

const reconciler::PoolView kNoPool{.no_pool = true, .offers = {}, .empty = {}, .wait = {}};

}  // namespace

// The pods that need a decision, and those of open runs.
std::vector<reconciler::PodView> JobController::pods_of(const CachedJob& job,
                                                        const Live& live) const {
  std::unordered_set<std::string_view> looked;
  for (const auto& [index, run] : live) looked.insert(run.pod_name);
  std::vector<reconciler::PodView> pods;
  std::unordered_set<std::string> taken;
  const auto add = [&](const CachedPod& pod) {
    if (!pod.names(job.uid) || looked.count(pod.name) != 0) return;
    if (taken.insert(pod.name).second) pods.push_back(pod.pod);
  };
  for (const PodPtr& pod : pods_.by_index(kByJob, job.key())) add(*pod);
  if (job.job.deleting && job.job.holds_outbox) {
    for (const auto& pod : pods_.by_index(kByJob, settled(job.key()))) add(*pod);
  }
  for (const reconciler::Run& run : job.job.status.runs) {
    if (!run.open() || taken.count(run.pod_name) != 0) continue;
    const PodPtr pod = pods_.get(job.namespace_ + "/" + run.pod_name);
    if (pod && job_key(*pod) == job.key()) add(*pod);
  }
  for (const auto& [index, run] : live) {
    if (run.pod) pods.push_back(run.pod->pod);
  }
  // An index has no fixed order, and decisions must not depend on it.
  std::sort(pods.begin(), pods.end(), [](const auto& a, const auto& b) {
    return a.attempt != b.attempt ? a.attempt < b.attempt : a.name < b.name;
  });
  return pods;
}

namespace {

void remember_highest_of(const std::vector<PodPtr>& pods, const CachedJob& job, JobMemory& memory) {
  for (const PodPtr& pod : pods) {
    if (pod->owner_uid != job.uid) continue;
    memory.remember_highest(job.job.status,
                            reconciler::attempt_in_name(job.name, job.uid, pod->name));
  }
}

}  // namespace

void JobController::learn_highest_attempt(const CachedJob& job, JobMemory& memory) const {
  if (std::exchange(memory.knows_highest, true)) return;
  remember_highest_of(pods_.by_index(kByJob, job.key()), job, memory);
  remember_highest_of(pods_.by_index(kByJob, settled(job.key())), job, memory);
}

reconciler::JobView JobController::view(const CachedJob& job, JobMemory& memory, const Live& live) {
  reconciler::JobView view;
  view.job = job.job;
  view.pods = pods_of(job, live);
  view.shard_label = membership_.shard_label(shard_of(job));
  view.runs.resize(job.job.status.runs.size());
  show_slots(job, view);
  view.observed.looked = !live.empty();
  view.observed.confirmed = live.count(reconciler::kNoRun) != 0;
  memory.keep_only(job.job.status, pods_->version(job.namespace_),
                   reconciler::podless_attempts(job.job.status, now()), loop_.now());
  const bool has_template = job.texts && !job.texts->pod_template.empty();
  const bool is_running = job.job.status.phase == reconciler::Phase::kRunning;
  if (has_template || !is_running) memory.fresh_texts.reset();
  memory.tell_ended_creations();
  learn_highest_attempt(job, memory);
  view.observed.highest_attempt = memory.highest_attempt;
  observe(job, memory, live, view);
  return view;
}

// The place of each attempt on a worker, as a pod. That of an attempt that is over stays in the
// view until nothing of it runs there.
void JobController::show_slots(const CachedJob& job, reconciler::JobView& view) const {
  if (!places_) return;
  for (std::size_t place = 0; place < view.runs.size(); ++place) {
    const reconciler::Run& run = job.job.status.runs[place];
    if (!run.at_worker()) continue;
    view.runs[place].slot = places_->at(job, run);
    const reconciler::SlotView& slot = *view.runs[place].slot;
    if (!run.open() && slot.left) continue;
    view.pods.push_back(reconciler::slot_as_pod(job.job, run, slot));
  }
}

void JobController::observe(const CachedJob& job, JobMemory& memory, const Live& live,
                            reconciler::JobView& view) {
  const SteadyTime steady = loop_.now();
  reconciler::Observed& observed = view.observed;
  observed.nonce = random_.next();
  observed.live_for = nodes_.pods_live_for(job.namespace_);
  observed.may_create = creations_.admits(job.key()) && !hands_over(shard_of(job));
  if (!observed.may_create) observed.turn_wait = creations_.waits(job.key());
  if (job.job.queue) observed.permit = permits_.of(job);
  if (job.job.spec.pool) observed.pool = places_ ? places_->of(job) : kNoPool;
  const bool tells = !job.job.notify.empty() || !job.job.status.outbox.empty();
  if (tells && courier_) observed.notify = courier_->of(job);
  if (memory.last_write) observed.since_write = steady - *memory.last_write;
  observed.creations = open_creations(job, memory, view.pods);
  observed.deletions = memory.deletions;
  observed.takeover = membership_.takeover();
  for (reconciler::PodView& pod : view.pods) {
    if (pod.ended() || pod.slot) continue;
    if (pod.deletion && observed.live_for > Duration::zero()) {
      pod.going_for = silences_.going_for(job, pod);
    }
    if (pod.node_name.empty() || observed.nodes.count(pod.node_name) != 0) continue;
    observed.nodes[pod.node_name] = nodes_.observe(pod.node_name, job.job.spec.lost_after);
  }
  if (is_stopping(job.job.status)) {
    observed.cancelling_for = silences_.cancelling_for(job);
  }
  // Leases first: the UID of a run's pod may be known from its Lease alone.
  for (std::size_t place = 0; place < view.runs.size(); ++place) {
    observe_memory(job, memory, live, view, place);
    observe_lease(job, memory, live, view, place);
  }
  const std::vector<const reconciler::PodView*> pods = reconciler::current_pods(view);
  for (std::size_t place = 0; place < view.runs.size(); ++place) {
    observe_pod(job, memory, view, place, pods[place]);
  }
  if (job.job.spec.heartbeat || !job.job.stages.empty()) observe_leases_over(job, view);
}

void JobController::observe_memory(const CachedJob& job, JobMemory& memory, const Live& live,
                                   reconciler::JobView& view, std::size_t place) {
  const reconciler::Run& run = job.job.status.runs[place];
  reconciler::RunObserved& observed = view.runs[place].observed;
  // The Leases of its worker say what is known of it.
  observed.confirmed = run.at_worker() || live.count(run.index) != 0;
  if (!run.open() || job.job.deleting) {
    const auto known = memory.runs.find(run.index);
    const bool is_over = known != memory.runs.end() && known->second.over == run.attempt;
    observed.confirmed = observed.confirmed || is_over;
  }
  if (!run.open()) return;
  AttemptMemory& attempt = memory.attempts[run.attempt];
  observed.own_intent = attempt.has_intent(run.start_time);
  observed.took_over = attempt.inherited;
  observed.lease_asked = attempt.lease_asked;
  observed.pod_existed = attempt.pod_existed;
  observed.pod_uid = attempt.pod_uid;
  observed.strangers = attempt.strangers;
}

// The requests that may still be applied, as far as this process knows of them. Of an attempt that
// it did not record alone, another process may have sent some, until this one took the shard over.
std::vector<reconciler::OpenCreation> JobController::open_creations(
    const CachedJob& job, JobMemory& memory, const std::vector<reconciler::PodView>& pods) {
  // One that is being deleted is soon gone, and leaves its name free.
  std::unordered_set<std::string_view> there;
  for (const reconciler::PodView& pod : pods) {
    if (pod.owner_uid == job.uid && !pod.deletion) there.insert(pod.name);
  }
  std::map<std::int64_t, reconciler::OpenCreation> open;
  for (auto& [number, attempt] : memory.attempts) {
    const bool is_there = there.count(reconciler::pod_name(job.name, job.uid, number)) != 0;
    if (auto one = open_creation(job, number, attempt, is_there)) {
      open.emplace(number, std::move(*one));
    }
  }
  const auto gained = gained_at_.find(shard_of(job));
  const Duration held =
      gained == gained_at_.end() ? Duration::zero() : loop_.now() - gained->second;
  for (const auto& one : reconciler::podless_attempts(job.job.status, now())) {
    const AttemptMemory* const known = memory.find_attempt(one.attempt);
    const bool is_known =
        known && (known->is_all_ours() || known->pod_existed || known->comes_no_more);
    if (is_known || there.count(one.pod_name) != 0 || open.count(one.attempt) != 0) continue;
    Duration left = reconciler::kCreationLimit - held;
    if (one.closed) left = std::min(left, *one.closed + reconciler::kCreationLimit - now());
    open[one.attempt] = {one.attempt, one.pod_name, false, true, left};
  }
  std::vector<reconciler::OpenCreation> all;
  all.reserve(open.size());
  for (auto& [number, one] : open) all.push_back(std::move(one));
  return all;
}

// Of this process's own requests. A pod that was created is expected until the watch shows it: it
// is not gone.
std::optional<reconciler::OpenCreation> JobController::open_creation(const CachedJob& job,
                                                                     std::int64_t number,
                                                                     AttemptMemory& attempt,
                                                                     bool is_there) {
  const SteadyTime steady = loop_.now();
  const bool is_unseen = attempt.created_version > pods_->version(job.namespace_);
  // While the pod is there, no other of its name can be made.
  const bool is_others = attempt.others_may_create(steady);
  const bool is_own = attempt.unanswered_until > steady && !attempt.pod_was_the_unanswered();
  const bool is_unanswered = !is_there && (is_own || is_others);
  const bool may_come = (is_unseen || is_unanswered) && !attempt.comes_no_more;
  if (!attempt.creating() && !may_come) return std::nullopt;
  if (is_unseen && steady - attempt.lag_told >= kOwnPodTimeout &&
      steady - attempt.created_at >= kOwnPodTimeout) {
    attempt.lag_told = steady;
    pods_->watch_lags(job.namespace_, {{"job", job.key()}, {"seen", "our own pod"}});
  }
  reconciler::OpenCreation one;
  one.attempt = number;
  one.pod_name = reconciler::pod_name(job.name, job.uid, number);
  one.expected = attempt.creating() || is_unseen;
  const bool waits = attempt.creation && attempt.creation->ticket;
  // Of two requests, nobody knows which one made the pod that was seen.
  const bool is_only_one = attempt.unanswered_until <= steady;
  const bool is_seen = attempt.pod_existed && !is_unseen && is_only_one;
  one.asked = is_unanswered || (!waits && !is_seen);
  SteadyTime until = attempt.unanswered_until;
  if (is_others) until = std::max(until, attempt.others_until);
  if (is_unseen) until = attempt.created_at + kOwnPodTimeout;
  if (attempt.creating()) {
    until = std::max(until, attempt.asked_at.value_or(steady) + reconciler::kCreationLimit);
  }
  one.left = until - steady;
  return one;
}

// The pod that was granted the Lease last: as just read, or as the cache has it.
PodPtr JobController::granted_pod(const std::string& namespace_, const std::string& granted,
                                  const LiveRun* live) const {
  const std::string name = granted.substr(0, granted.find('/'));
  const auto pod = live && live->pod_name == name ? live->pod : pods_.get(namespace_ + "/" + name);
  return pod && reconciler::holder_identity(pod->pod) == granted ? pod : nullptr;
}

void JobController::observe_lease(const CachedJob& job, JobMemory& memory, const Live& live,
                                  reconciler::JobView& view, std::size_t place) {
  if (!job.job.spec.heartbeat) return;
  const reconciler::Run& run = job.job.status.runs[place];
  reconciler::RunView& seen = view.runs[place];
  const auto looked = live.find(run.index);
  const LiveRun* const fresh = looked == live.end() ? nullptr : &looked->second;
  const HeartbeatPtr lease =
      fresh ? fresh->lease
            : heartbeats_.get(job.namespace_, lease_name(job.job, run.index), job.uid);
  if (lease) {
    seen.lease = lease->lease;
    reconciler::LeaseObservation& observed = seen.observed.lease;
    observed = heartbeats_.observe(*lease, job.job.spec.heartbeat->lease_duration);
    const auto granted = granted_pod(job.namespace_, lease->lease.granted, fresh);
    if (granted && reconciler::worker_is_stopped(granted->pod)) {
      memory.runs[run.index].stopped_holder = lease->lease.granted;
    }
    observed.lost_together = lost_holders_.lost_together(job, run, *lease);
    const auto known = memory.runs.find(run.index);
    observed.granted_stopped =
        known != memory.runs.end() && known->second.stopped_holder == lease->lease.granted;
  }
  const auto known = memory.runs.find(run.index);
  if (known == memory.runs.end() || known->second.lease_refusal.empty()) return;
  seen.observed.lease_refusal = reconciler::LeaseRefusal{
      known->second.lease_refusal,
      std::max(Duration::zero(), known->second.lease_retry_at - loop_.now())};
}

void JobController::observe_leases_over(const CachedJob& job, reconciler::JobView& view) {
  for (const HeartbeatPtr& lease : heartbeats_.of_job(job.namespace_, job.name)) {
    if (lease->owner_uid != job.uid) continue;
    auto run = run_in_lease_name(job.uid, lease->name);
    const reconciler::Spec& spec = job.job.spec;
    if (!run && lease->name == reconciler::heartbeat_lease_name(job.uid)) {
      const bool is_used = spec.heartbeat && !spec.many_runs();
      // The last stage's stays, as that of a job without stages.
      if (is_used || is_terminal(job.job.status.phase)) continue;
      run = reconciler::kSingleLease;
    }
    if (!run) continue;
    const auto& runs = job.job.status.runs;
    const bool begun = spec.has_run_leases() &&
                       std::any_of(runs.begin(), runs.end(),
                                   [&](const reconciler::Run& one) { return one.index == *run; });
    if (begun) continue;
    reconciler::LeaseOver over{*run, lease->lease, {}};
    if (spec.heartbeat) over.observed = heartbeats_.observe(*lease, spec.heartbeat->lease_duration);
    const auto granted = granted_pod(job.namespace_, lease->lease.granted, nullptr);
    over.observed.granted_stopped = granted && reconciler::worker_is_stopped(granted->pod);
    view.leases_over.push_back(std::move(over));
  }
}

void JobController::observe_pod(const CachedJob& job, JobMemory& memory, reconciler::JobView& view,
                                std::size_t place, const reconciler::PodView* pod) {
  const reconciler::Run& run = job.job.status.runs[place];
  if (!run.open()) return;
  const SteadyTime steady = loop_.now();
  AttemptMemory& attempt = memory.attempts[run.attempt];
  reconciler::RunObserved& observed = view.runs[place].observed;
  if (pod) {
    attempt.bare_since.reset();
    attempt.pod.see(*pod, now());
    if (pod->owner_uid == job.uid)
      executor_.pod_exists(job.namespace_, run.attempt, pod->uid, memory);
    observed.pod = attempt.pod.of(*pod);
    if (pod->slot) return;
    if (pod->stands_still() || !pod->started()) {
      observed.still_for = silences_.still_for(job.namespace_, *pod);
    }
    return;
  }
  if (!attempt.bare_since) attempt.bare_since = steady;
  observed.no_pod_for = steady - *attempt.bare_since;
  // The replica that recorded an inherited attempt had its time while others held the shard.
  if (observed.took_over && run.start_time) {
    observed.no_pod_for = std::max(observed.no_pod_for, now() - *run.start_time);
  }
  observed.refusal = attempt.refusals.last(steady);
}

}  // namespace holdfast::controller
