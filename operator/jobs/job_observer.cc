#include "operator/jobs/job_observer.h"

#include <utility>

#include "operator/jobs/pod_index.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"
#include "reconciler/shards.h"

namespace holdfast::jobs {

const LiveRun* JobObserver::Sight::read(const reconciler::Run& run) const {
  const auto found = live.find(run.index);
  return found == live.end() ? nullptr : &found->second;
}

observe::LookTimes JobObserver::look_times(const codecs::CachedJob& job, Time now) const {
  observe::LookTimes asked = deps_.nodes.look_times(job.namespace_);
  asked.wall = now;
  asked.heartbeats = deps_.caches.heartbeats().live_now(job.namespace_);
  return asked;
}

reconciler::JobView JobObserver::view(const codecs::CachedJob& job, JobMemory& memory,
                                      const LiveRuns& live, const observe::LookTimes& asked) {
  reconciler::JobView view;
  const bool with_settled = job.job.deleting && job.job.holds_outbox;
  const auto find = [&](const std::string& name) { return deps_.caches.pod(job.namespace_, name); };
  view.job = job.job;
  view.pods = pods_to_judge(job, indexed_pods(job, with_settled), find, live);
  observe_shard(job, view);
  view.runs.resize(job.job.status.runs.size());
  deps_.neighbours.show_slots(job, view);
  view.observed.confirmed = live.count(reconciler::kNoRun) != 0;
  view.observed.asked = asked.wall;
  const Sight sight{job, memory, live, asked, deps_.shards.moment_of(job), view};
  update_memory(sight);
  view.observed.highest_attempt = memory.highest_attempt;
  observe(sight);
  return view;
}

void JobObserver::observe_shard(const codecs::CachedJob& job, reconciler::JobView& view) const {
  view.selects_shards = !deps_.caches.jobs()->is_unselected();
  view.belongs_elsewhere = reconciler::belongs_elsewhere(job.job, deps_.membership.shards());
  view.shard_label =
      deps_.membership.shard_label(reconciler::shard_of_pods(job.job, deps_.membership.shards()));
}

std::vector<codecs::PodPtr> JobObserver::indexed_pods(const codecs::CachedJob& job,
                                                      bool with_settled) const {
  std::vector<codecs::PodPtr> pods = deps_.caches.pods().by_index(kByJob, job.key());
  if (!with_settled) return pods;
  for (codecs::PodPtr& pod : deps_.caches.pods().by_index(kByJob, settled(job.key()))) {
    pods.push_back(std::move(pod));
  }
  return pods;
}

void JobObserver::update_memory(const Sight& sight) const {
  const codecs::CachedJob& job = sight.job;
  JobMemory& memory = sight.memory;
  memory.keep_only(job.job.status, sight.moment.shown,
                   reconciler::podless_attempts(job.job.status, sight.moment.now),
                   sight.moment.steady);
  const bool has_template = job.texts && !job.texts->pod_template.empty();
  const bool is_running = job.job.status.phase == reconciler::Phase::kRunning;
  if (has_template || !is_running) memory.texts.fresh.reset();
  memory.report_ended_creations();
  if (std::exchange(memory.knows_highest, true)) return;
  learn_highest_attempt(job, indexed_pods(job, /*with_settled=*/true), memory);
}

void JobObserver::observe(const Sight& sight) {
  const codecs::CachedJob& job = sight.job;
  JobMemory& memory = sight.memory;
  reconciler::JobView& view = sight.view;
  reconciler::Observed& observed = view.observed;
  observed.nonce = deps_.random.next();
  observed.live_for = deps_.nodes.pods_live_for(job.namespace_, sight.asked);
  const Creations& turns = deps_.creations.turns();
  observed.may_create =
      turns.admits(job.key()) && !deps_.creations.hands_over(deps_.caches.shard_of(job));
  if (!observed.may_create) observed.turn_wait = turns.waits(job.key());
  deps_.neighbours.observe(job, observed);
  if (memory.last_write) observed.since_write = sight.moment.steady - *memory.last_write;
  OpenCreations creations = open_creations(job, memory, view.pods, sight.moment);
  deps_.caches.own_pods_lag(job, creations.overdue);
  observed.creations = std::move(creations.all);
  observed.deletions = memory.deletions.troubles;
  observed.takeover = deps_.membership.takeover();
  observe_pods(sight);
  if (is_stopping(job.job.status)) {
    observed.cancelling_for = deps_.silences.cancelling_for(job, sight.asked);
  }
  // Leases first: the UID of a run's pod may be known from its Lease alone.
  for (std::size_t position = 0; position < view.runs.size(); ++position) {
    const reconciler::Run& run = job.job.status.runs[position];
    observe_memory(job, run, sight.read(run) != nullptr, memory, view.runs[position].observed);
    observe_lease(sight, position);
  }
  const std::vector<const reconciler::PodView*> pods = reconciler::current_pods(view);
  for (std::size_t position = 0; position < view.runs.size(); ++position) {
    observe_pod(sight, position, pods[position]);
  }
  // Of a settled job any Lease leads back here (leads_back()).
  if (job.job.spec.heartbeat || !job.job.stages.empty() || job.job.status.settled) {
    observe_leases_over(sight);
  }
}

void JobObserver::observe_pods(const Sight& sight) {
  reconciler::Observed& observed = sight.view.observed;
  for (reconciler::PodView& pod : sight.view.pods) {
    if (pod.ended() || pod.slot) continue;
    if (pod.deletion && observed.live_for > Duration::zero()) {
      pod.going_for = deps_.silences.going_for(sight.job, pod, sight.asked);
    }
    if (pod.node_name.empty() || observed.nodes.count(pod.node_name) != 0) continue;
    observed.nodes[pod.node_name] =
        deps_.nodes.observe(pod.node_name, sight.job.job.spec.lost_after, sight.asked);
  }
}

// As just read, or as the cache has it.
codecs::PodPtr JobObserver::granted_pod_of(const codecs::CachedHeartbeat& lease,
                                           const LiveRun* read) const {
  const std::string& granted = lease.lease.granted;
  const std::string name = pod_name_of(granted);
  return granted_pod(granted, read && read->pod_name == name
                                  ? read->pod
                                  : deps_.caches.pod(lease.namespace_, name));
}

void JobObserver::observe_lease(const Sight& sight, std::size_t position) {
  const codecs::CachedJob& job = sight.job;
  if (!job.job.spec.heartbeat) return;
  const reconciler::Run& run = job.job.status.runs[position];
  reconciler::RunView& seen = sight.view.runs[position];
  observe::HeartbeatMonitor& heartbeats = deps_.caches.heartbeats();
  const LiveRun* const read = sight.read(run);
  const codecs::HeartbeatPtr lease =
      read ? read->lease
           : heartbeats.get(job.namespace_, codecs::lease_name(job.job, run.index), job.uid);
  auto& runs = sight.memory.runs;
  if (lease) {
    seen.lease = lease->lease;
    reconciler::LeaseObservation& observed = seen.observed.lease;
    observed = heartbeats.observe(*lease, job.job.spec.heartbeat->lease_duration, sight.asked);
    const codecs::PodPtr granted = granted_pod_of(*lease, read);
    if (granted && reconciler::worker_is_stopped(granted->pod)) {
      runs[run.index].stopped_holder = lease->lease.granted;
    }
    observed.lost_together = lost_holders_.lost_together(job, run, *lease);
    const auto known = runs.find(run.index);
    observed.granted_stopped =
        known != runs.end() && known->second.stopped_holder == lease->lease.granted;
  }
  seen.observed.lease_refusal = lease_refusal(sight.memory, run.index, sight.moment);
}

void JobObserver::observe_leases_over(const Sight& sight) {
  const codecs::CachedJob& job = sight.job;
  observe::HeartbeatMonitor& heartbeats = deps_.caches.heartbeats();
  for (const codecs::HeartbeatPtr& lease : heartbeats.of_job(job.namespace_, job.name)) {
    const auto run = run_of_lease_over(job, *lease);
    if (!run) continue;
    reconciler::LeaseOver over{*run, lease->lease, {}};
    const auto& heartbeat = job.job.spec.heartbeat;
    if (heartbeat) over.observed = heartbeats.observe(*lease, heartbeat->lease_duration);
    const codecs::PodPtr granted = granted_pod_of(*lease, nullptr);
    over.observed.granted_stopped = granted && reconciler::worker_is_stopped(granted->pod);
    sight.view.leases_over.push_back(std::move(over));
  }
}

void JobObserver::observe_pod(const Sight& sight, std::size_t position,
                              const reconciler::PodView* pod) {
  const codecs::CachedJob& job = sight.job;
  const reconciler::Run& run = job.job.status.runs[position];
  if (!run.open()) return;
  AttemptMemory& attempt = sight.memory.attempts[run.attempt];
  reconciler::RunObserved& observed = sight.view.runs[position].observed;
  if (!pod) return observe_no_pod(run, attempt, sight.moment, observed);
  attempt.bare_since.reset();
  attempt.pod.see(*pod, sight.moment.now);
  if (pod->owner_uid == job.uid) {
    deps_.executor.pod_exists(job.namespace_, run.attempt, pod->uid, sight.memory);
  }
  observed.pod = attempt.pod.of(*pod);
  if (pod->slot) return;
  if (pod->stands_still() || !pod->started()) {
    observed.still_for = deps_.silences.still_for(job.namespace_, *pod, sight.asked);
  }
}

}  // namespace holdfast::jobs
