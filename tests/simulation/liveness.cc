#include "tests/simulation/liveness_job.h"

#include <algorithm>

#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "reconciler/job/decide.h"
#include "reconciler/job/edges.h"
#include "reconciler/job/job_clock.h"
#include "reconciler/job/opening.h"
#include "reconciler/names.h"
#include "reconciler/refusals.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/replica.h"
#include "tests/support/json_document.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules
using std::chrono::milliseconds;
using std::chrono::seconds;

// A creation that was refused is tried again after this long at most.
constexpr Duration kRefusalRetry = seconds(30);

// As the operator paces the writes of a large status.
constexpr std::size_t kBytesPerSecond = std::size_t{128} * 1024;

// What users give their jobs and pods.
constexpr Duration kLongestWindow = seconds(60);
constexpr Duration kLongestGrace = seconds(30);
// A member's lease and a retry period, and the round trips that they take.
constexpr Duration kTakeOver = seconds(17) + milliseconds(200);

// It has ended and was released: it stays for its logs.
bool is_at_rest(const PodView& pod) { return pod.ended() && !pod.has_finalizer; }

}  // namespace

void Liveness::watch(bool on) {
  on_ = on;
  on_since_ = scheduler_.now();
  troubles_.clear();
}

Duration Liveness::own(Duration window) const { return window / slowest_ppm_ * 1'000'000; }

Duration Liveness::taken_over() const { return replica_changed_ + own(kTakeOver); }

// What it sleeps too long for this time, by that clock.
Duration Liveness::late(Duration window) const { return own(window) - window; }

Duration Liveness::instant(std::optional<Time> wall) const {
  return wall ? scheduler_.now() - (gateway_.wall_clock() - *wall) : Duration::zero();
}

// A verdict may be given one window more: other nodes fell silent with this one, or after it; or
// half the window is so short that nodes which renew every 10 s look silent for that long, as they
// do below 24 s on a clock that is a tenth too fast.
bool Liveness::breaker_may_hold(const Cluster::Node& judged, Duration lost_after) const {
  constexpr Duration kShortWindow = seconds(24);
  if (lost_after < kShortWindow && cluster_.nodes().size() > 3) return true;
  // What a replica sees of a renewal may come this much later.
  return silent_nodes(judged.renewed - own(lost_after) - seconds(12)) > 1;
}

// Of those that have renewed since then.
int Liveness::silent_nodes(Duration since) const {
  int silent = 0;
  for (const Cluster::Node& node : cluster_.nodes()) {
    if (!node.exists || node.renewed < since) continue;
    if (!node.usable() || scheduler_.now() - node.renewed > seconds(12)) ++silent;
  }
  return silent;
}

void Liveness::note(const std::string& key, const std::string& trouble, Duration bound,
                    std::optional<Duration> since, const char* rule) {
  Trouble& entry = troubles_[key + " " + trouble];
  if (entry.since == Duration::zero()) {
    entry.since = std::max(since.value_or(scheduler_.now()), on_since_);
  }
  if (since) entry.since = std::max(*since, on_since_);
  entry.bound = bound + kReconcile + kLook;
  if (often_killed_) entry.bound = 2 * entry.bound + own(kTakeOver);
  entry.seen = true;
  const Duration lasted = scheduler_.now() - std::max(entry.since, taken_over());
  double& slowest = slowest_[trouble];
  slowest = std::max(slowest, to_seconds(lasted) / to_seconds(entry.bound));
  if (lasted > entry.bound) {
    ledger_.complain(std::string(rule) + ": " + key + " has been in trouble (" + trouble +
                     ") for " + human_duration(lasted) + ", its bound is " +
                     human_duration(entry.bound));
  }
}

void Liveness::holds(const Job& job, const std::string& trouble, Duration bound,
                     std::optional<Duration> since) {
  note(job.key + "#" + std::to_string(job.job.status.attempt), trouble, bound, since);
}

void Liveness::holds(const RunOfJob& one, const std::string& trouble, Duration bound,
                     std::optional<Duration> since) {
  note(one.job.key + "#" + std::to_string(one.run.attempt), trouble, bound, since);
}

void Liveness::forget_what_passed() {
  for (auto trouble = troubles_.begin(); trouble != troubles_.end();) {
    if (trouble->second.seen) {
      trouble->second.seen = false;
      ++trouble;
    } else {
      trouble = troubles_.erase(trouble);
    }
  }
}

void Liveness::read_the_truth() {
  const auto read = [this](const char* resource, auto& known, auto decode) {
    std::remove_reference_t<decltype(known)> now;
    gateway_.server().for_each(resource, [&](const Json& json) {
      const std::string uid = uid_of(json);
      const std::string version = string_at(at(json, "metadata"), "resourceVersion");
      const auto before = known.find(uid);
      if (before != known.end() && before->second.first == version) {
        now.insert(known.extract(before));
      } else {
        now.emplace(uid, std::pair(version, decode(json)));
      }
    });
    known.swap(now);
  };
  read("pods", pods_, [](const Json& json) {
    return std::static_pointer_cast<const codecs::CachedPod>(codecs::decode_pod(document(json)));
  });
  read("durablejobs", jobs_, [](const Json& json) {
    return std::static_pointer_cast<const codecs::CachedJob>(codecs::decode_job(document(json)));
  });
}

void Liveness::look(const std::vector<Replica*>& replicas) {
  for (const std::string& silent : network_.silent_for_too_long()) {
    ledger_.complain("L7: a silent watch is not replaced: " + silent);
  }
  if (!on_ || gateway_.in_trouble()) return;
  // Nobody is there to take anything over.
  if (replicas.empty() && !often_killed_) replica_changed();
  read_the_truth();
  read_workers();
  std::map<std::string, std::vector<PodView>> pods;  // by owner
  for (const auto& [uid, pod] : pods_) {
    if (!is_at_rest(pod.second->pod)) pods[pod.second->owner_uid].push_back(pod.second->pod);
  }
  for (const auto& [uid, cached] : jobs_) {
    const auto owned = pods.find(uid);
    const reconciler::Job& known = cached.second->job;
    const bool at_rest = is_terminal(known.status.phase) && !known.spec.ttl_after_finished &&
                         (known.status.settled || !known.fixed_shard.empty());
    if (at_rest && owned == pods.end()) continue;
    Job job{cached.second->key(), known, {}};
    if (owned != pods.end()) job.pods = owned->second;
    job.current.resize(known.status.runs.size());
    for (const PodView& pod : job.pods) {
      const Run* const run = known.status.run_of_pod(pod.name);
      if (!run) continue;
      const bool is_its =
          run->pod_uid.empty() ? pod.intent == run->start_time : pod.uid == run->pod_uid;
      if (is_its) job.current[static_cast<std::size_t>(run - known.status.runs.data())] = &pod;
    }
    look_at_job(job);
  }
  look_at_orphans();
  look_at_batch_jobs();
  look_at_others();
  look_at_queues();
  look_at_shards(replicas);
  for (Replica* const replica : replicas) {
    if (replica->oldest_overdue() > own(kServerTime + kLook)) {
      // It was reported in the server's time, and is kept by the replica's clock.
      note("replica " + std::to_string(replica->index()), "a told deadline has passed",
           kReconcile + late(kLongestWindow), std::nullopt);
    }
  }
  forget_what_passed();
}

void Liveness::look_at_job(const Job& job) {
  const JobStatus& status = job.job.status;
  const Spec& spec = job.job.spec;
  look_at_pods(job);
  if (job.job.deleting) return;
  const reconciler::JobView view{job.job, job.pods, {}, {}, {}};
  const std::vector<const reconciler::PodView*> pods = reconciler::current_pods(view);
  const auto deadline =
      active_deadline(Context{view, view.job, view.job.spec, gateway_.wall_clock(), pods});
  const bool stopping = recorded_end(status) && !is_terminal(status.phase);
  if (stopping) return look_at_stopping(job, "the job's end is known, and its pods are gone");
  if (!is_terminal(status.phase) && status.phase != Phase::kCancelling) {
    if (deadline) {
      // The job's, or that of a stage after the first.
      const seconds longest = std::max(spec.active_deadline.value_or(seconds(0)),
                                       spec.stage_deadline.value_or(seconds(0)));
      holds(job, "out of time", kServerTime + late(longest),
            std::max(instant(deadline), Duration(1)));
    }
    if (spec.cancel) holds(job, "cancel is not obeyed", Duration::zero());
  }
  switch (status.phase) {
    case Phase::kNone:
      holds(job, "not looked at",
            job.job.has_pool ? own(kPoolNotice)
            : job.job.queue  ? kQueueNotice
                             : Duration::zero());
      break;
    case Phase::kRunning:
      for (std::size_t place = 0; place < status.runs.size(); ++place) {
        const Run& run = status.runs[place];
        if (run.open()) look_at_running({job, run, job.current[place]});
      }
      look_at_opening(job);
      break;
    case Phase::kPending:
    case Phase::kBackoff:
      if (spec.suspend) holds(job, "suspend is not obeyed", Duration::zero());
      if (job.job.queue && job.job.unknown.empty()) {
        look_at_asking(job);
      } else {
        look_at_opening(job);
      }
      break;
    case Phase::kSuspended:
      if (!spec.suspend) {
        holds(job, "resume is not obeyed", job.job.queue ? kQueueNotice : Duration::zero());
      }
      break;
    case Phase::kCancelling:
      look_at_stopping(job, "cancelling, and its pods are gone");
      break;
    default:
      // That of a batch/v1 Job waits for it: look_at_batch_jobs().
      if (!status.settled && status.outbox.empty() && !job.job.holds_outbox &&
          job.job.fixed_shard.empty()) {
        holds(job, "it is not settled", kSettled);
      }
      if (!spec.ttl_after_finished) break;
      // It stays until its events are delivered.
      if (!status.outbox.empty()) {
        undelivered_[job.key] = scheduler_.now();
      } else {
        const Duration found = status.settled ? kWalked : Duration::zero();
        holds(job, "its time to live is over", kServerTime + late(*spec.ttl_after_finished) + found,
              std::max({instant(*status.completion_time + *spec.ttl_after_finished), Duration(1),
                        undelivered_[job.key]}));
      }
  }
}

// Runs that wait for their next attempt, and indexes that have not begun.
void Liveness::look_at_opening(const Job& job) {
  const JobStatus& status = job.job.status;
  const Spec& spec = job.job.spec;
  if (spec.suspend || spec.cancel || job.open_runs() >= spec.parallelism) return;
  if (!job.job.unknown.empty()) return;
  if (spec.pool) return look_at_waiting(job);
  if (job.intents_without_pod() >= static_cast<std::ptrdiff_t>(kIntentsAtOnce)) return;
  // A large status is written less often.
  const Duration paced = seconds(job.job.stored_bytes / kBytesPerSecond + 1);
  // With that policy the old pod may have ended only now: since when it is seen here.
  const bool waits_for_old = spec.pod_replacement == PodReplacementPolicy::kFailed;
  const bool none_lives =
      std::all_of(job.pods.begin(), job.pods.end(), [](const PodView& pod) { return pod.ended(); });
  IndexSet begun = status.completed;
  begun.add(status.failed);
  for (std::size_t place = 0; place < status.runs.size(); ++place) {
    const Run& run = status.runs[place];
    begun.add(run.index);
    if (run.open()) continue;
    const PodView* const old = job.current[place];
    const bool old_lives = spec.many_runs() ? old && !old->ended() : !none_lives;
    if (waits_for_old && old_lives) continue;
    const auto& reported = status.waiting;
    if (waits_for_old && reported && reported->reason == Reason::kPodCreationUnanswered) {
      holds(job, "a pod may still be created", own(kCreationLimit));
      continue;
    }
    const Duration due = std::max(instant(run.next_attempt_time), Duration(1));
    if (due > scheduler_.now()) continue;
    const Duration bound = kServerTime + late(spec.retry_backoff.max);
    if (spec.many_runs()) {
      holds(job, "its back-off is over", bound + paced);
    } else {
      holds(job, "its back-off is over", bound, waits_for_old ? std::nullopt : std::optional(due));
    }
  }
  // It may have to wait for a pod of the stage before.
  const bool strange_lives =
      status.stage > 0 && std::any_of(job.pods.begin(), job.pods.end(), [&](const PodView& pod) {
        return !pod.ended() && !status.run_of_pod(pod.name);
      });
  if (waits_for_old && strange_lives) return;
  if (spec.many_runs() && spec.all_indexes().next(0, begun)) {
    holds(job, "a run does not open", paced);
  }
}

void Liveness::look_at_stopping(const Job& job, const char* gone) {
  const Spec& spec = job.job.spec;
  Duration last{0};
  bool alive = false;
  for (const PodView& pod : job.pods) {
    if (pod.ended() || (pod.node_name.empty() && pod.deletion)) continue;
    alive = true;
    if (pod.deletion) last = std::max(last, instant(pod.deletion));
  }
  alive = stops_at_workers(job) || alive;
  // A pod that is being created belongs to the job: what keeps it now is no pod that is seen.
  const auto& waiting = job.job.status.waiting;
  if (waiting && waiting->reason == Reason::kPodCreationUnanswered) {
    return holds(job, "a pod may still be created", own(kCreationLimit));
  }
  if (!alive) holds(job, gone, Duration::zero());
  // A pod of an attempt that ended long ago is watched from then on.
  const JobStatus& status = job.job.status;
  const std::string what =
      job.key + "#" + std::to_string(status.attempt) + "/" + std::to_string(status.stage);
  const Duration known = stopping_.try_emplace(what, scheduler_.now()).first->second;
  if (alive && last > Duration::zero()) {
    holds(job, "cancelling with a dead worker",
          own(spec.lost_after) + late(kLongestGrace) + kServerTime, std::max(last, known));
  }
}

void Liveness::look_at_running(const RunOfJob& one) {
  const JobStatus& status = one.job.job.status;
  const Spec& spec = one.job.job.spec;
  const PodView* const pod = one.pod;
  if (one.run.at_worker()) return look_at_place(one);
  if (!pod) {
    // Whoever has just started knows nothing of a pod that was: it waits for another's creation.
    const bool refused = status.waiting && (status.waiting->reason == Reason::kPodCreationRefused ||
                                            status.waiting->reason == Reason::kPodTemplateRefused ||
                                            status.waiting->reason == Reason::kPodNameTaken);
    const bool is_refused = refused || !one.run.refused.empty();
    if (is_refused && !one.job.job.unknown.empty()) return;
    holds(one, "intent without pod", is_refused ? kRefusalRetry : own(kTakeOver));
    return;
  }
  if (pod->ended()) return holds(one, "its pod has ended", Duration::zero());
  if (spec.suspend) holds(one, "suspend is not obeyed", Duration::zero());
  const Duration window = own(spec.lost_after);
  if (pod->deletion && pod->node_name.empty()) {
    holds(one, "its pod was deleted before it was bound", Duration::zero());
  } else if (pod->deletion) {
    holds(one, "pod stuck terminating", window + late(kLongestGrace) + kServerTime,
          instant(pod->deletion));
  } else if (!pod->started()) {
    look_at_start(one, *pod);
  } else if (pod->stands_still()) {
    holds(one, "its next container does not start", own(spec.start_deadline));
  }
  look_at_heartbeat(one, *pod);
  const auto truth = cluster_.truth(pod->uid);
  if (spec.attempt_deadline && pod->started() && truth && truth->started != Time{}) {
    // With a heartbeat it counts from the grant, and soon after that comes the first renewal.
    const bool begun = !spec.heartbeat || !truth->renewals.empty();
    const Duration since = instant(truth->started);
    if (begun) {
      holds(one, "attempt too long", own(*spec.attempt_deadline) + kServerTime,
            spec.heartbeat ? std::max(since, truth->renewals.front()) : since);
    }
  }
  const Cluster::Node* const node = cluster_.node(pod->node_name);
  if (!node) return;
  // Whoever takes a job over watches the whole window anew.
  const Duration bound_at = instant(pod->placed ? pod->placed : pod->created) + seconds(1);
  Duration silent_since = std::max({node->renewed, taken_over(), bound_at});
  if (spec.heartbeat && truth && !truth->renewals.empty()) {
    // As long as the agent proves that it lives, its node may be silent.
    const Duration proven =
        std::max(truth->renewals.back(), taken_over()) + own(spec.heartbeat->lease_duration);
    silent_since = std::max(silent_since, proven - window);
  }
  if (!node->exists) {
    holds(one, "node object gone", window, std::max({node->lost_since, taken_over(), bound_at}));
  } else if (!node->usable()) {
    holds(one, "node silent", breaker_may_hold(*node, spec.lost_after) ? 2 * window : window,
          silent_since);
  }
}

// Agents that have not renewed for half their Lease's duration.
int Liveness::silent_holders() const {
  int silent = 0;
  for (const auto& [uid, cached] : jobs_) {
    const reconciler::Job& job = cached.second->job;
    if (!job.spec.heartbeat) continue;
    for (const Run& run : job.status.runs) {
      const auto truth = cluster_.truth(run.pod_uid);
      if (!truth || truth->renewals.empty()) continue;
      const Duration age = scheduler_.now() - truth->renewals.back();
      silent += age > job.spec.heartbeat->lease_duration / 2 ? 1 : 0;
    }
  }
  return silent;
}

void Liveness::look_at_heartbeat(const RunOfJob& one, const PodView& pod) {
  const reconciler::Job& job = one.job.job;
  const auto truth = cluster_.truth(pod.uid);
  if (!job.spec.heartbeat || !pod.started() || pod.deletion || !truth) return;
  const Heartbeat& heartbeat = *job.spec.heartbeat;
  const Duration duration = own(heartbeat.lease_duration);
  const auto index = job.spec.many_runs() ? std::optional(one.run.index) : std::nullopt;
  const Json* const lease = gateway_.server().find(
      "leases", job.namespace_, reconciler::heartbeat_lease_name(job.uid, index));
  const bool holds_it =
      lease && string_at(at(*lease, "spec"), "holderIdentity") == reconciler::holder_identity(pod);
  if (!holds_it) {
    // The last holder may be of an earlier stage, with a longer Lease.
    Duration longest = duration;
    for (std::size_t place = 0; place < job.status.stage; ++place) {
      const auto& earlier = job.stages[place].spec.heartbeat;
      if (earlier) longest = std::max(longest, own(earlier->lease_duration));
    }
    holds(one, "its Lease is not granted", longest);
  } else if (truth->renewals.empty()) {
    holds(one, "its agent never renews", own(job.spec.start_deadline) + kServerTime);
  } else {
    // Where a replica sees few agents, the nodes decide.
    const bool may_wait = silent_holders() > 1 || silent_nodes(Duration::zero()) > 1;
    holds(one, "its agent is silent", may_wait ? 2 * duration : duration,
          std::max(truth->renewals.back(), taken_over()));
  }
  if (truth->hangs_since && truth->speaks && heartbeat.progress_deadline) {
    holds(one, "its worker hangs", own(*heartbeat.progress_deadline), truth->hangs_since);
  }
}

// A pod that no node has waits without limit. One that no scheduler speaks of is reported to a
// person.
void Liveness::look_at_start(const RunOfJob& one, const PodView& pod) {
  const Spec& spec = one.job.job.spec;
  const Duration deadline = own(spec.start_deadline) + kServerTime;
  if (pod.placement() == Placement::kBound) {
    holds(one, "pod never starts", deadline, instant(pod.placed ? pod.placed : pod.created));
    return;
  }
  if (spec.schedule_deadline) {
    holds(one, "pod is never scheduled", own(*spec.schedule_deadline) + kServerTime,
          instant(pod.created));
  }
  const Condition* const stalled = one.job.job.status.condition("Stalled");
  if (pod.placement() == Placement::kUnseen && !(stalled && stalled->status)) {
    holds(one, "no scheduler, and nobody is told", deadline);
  }
}

void Liveness::look_at_pods(const Job& job) {
  const JobStatus& status = job.job.status;
  for (const PodView& pod : job.pods) {
    const Run* const run = status.run_of_pod(pod.name);
    if (status.phase == Phase::kRunning && run && run->open() && !job.job.deleting) continue;
    // What the watch does not select is not seen: release-pods finds it.
    if (pod.job_uid_label.empty()) continue;
    // The name of an attempt that may be another replica's.
    const std::int64_t attempt = reconciler::attempt_in_name(job.job.name, job.job.uid, pod.name);
    if (attempt > status.attempt && !is_terminal(status.phase)) continue;
    const std::string key = job.key + " pod " + pod.name;
    if (pod.has_finalizer) note(key, "is not released", Duration::zero(), std::nullopt);
    if (!pod.ended() && !pod.deletion && !job.job.deleting) {
      note(key, "is not stopped", Duration::zero(), std::nullopt);
    }
  }
}

// L3: no shard stays with a member that is dead, as long as another one lives.
void Liveness::look_at_shards(const std::vector<Replica*>& replicas) {
  if (replicas.empty()) return;
  gateway_.server().for_each("leases", [&](const Json& lease) {
    const std::string name = string_at(at(lease, "metadata"), "name");
    if (name.rfind("holdfast-shard-", 0) != 0) return;
    const std::string holder = string_at(at(lease, "spec"), "holderIdentity");
    const auto life = ledger_.life_of(holder);
    const bool alive = std::any_of(replicas.begin(), replicas.end(), [&](Replica* replica) {
      return life && replica->index() == life->first && replica->life() == life->second;
    });
    if (alive) return;
    note(name + " of " + holder, "its holder is dead", Duration::zero(), std::nullopt, "L3");
  });
}

// Pods whose job is gone.
void Liveness::look_at_orphans() {
  for (const auto& [uid, pod] : pods_) {
    const PodView& view = pod.second->pod;
    if (!view.has_finalizer || view.job_uid_label.empty()) continue;
    if (jobs_.count(view.owner_uid) > 0) continue;
    note(pod.second->key(), "its job is gone", Duration::zero(), std::nullopt);
  }
}

std::string Liveness::unsettled() const {
  std::string found;
  gateway_.server().for_each("durablejobs", [&](const Json& json) {
    const kube::ObjectPtr object = codecs::decode_job(document(json));
    if (!object) return;
    const reconciler::Job& job = static_cast<const codecs::CachedJob&>(*object).job;
    const JobStatus& status = job.status;
    const bool stays = !at(at(json, "spec"), "ttlSecondsAfterFinished").is_number();
    // The walk brings it, and then the status says that it was seen.
    const bool is_edited = job.generation != status.observed_generation;
    if (is_terminal(status.phase) && !is_deleting(json) && stays && status.outbox.empty() &&
        !is_edited) {
      return;
    }
    found = key_of(json) + " is " + (is_deleting(json) ? "deleting" : to_string(status.phase));
    if (is_terminal(status.phase) && is_edited) found += ", and its edit was not seen";
    if (!status.outbox.empty()) found += ", and has targets that were not told";
    if (status.waiting)
      found += ": " + status.waiting->reason.text() + ": " + status.waiting->message;
  });
  return found.empty() ? unsettled_batch_jobs() : found;
}

std::string Liveness::untidy() const {
  std::string found;
  gateway_.server().for_each("pods", [&](const Json& json) {
    const auto pod = codecs::decode_pod(document(json));
    const auto& view = static_cast<const codecs::CachedPod&>(*pod).pod;
    if (view.job_uid_label.empty() || view.owner_uid.empty()) return;
    if (view.has_finalizer) found = key_of(json) + " keeps our finalizer";
    if (!view.ended()) found = key_of(json) + " still runs";
  });
  return found.empty() ? untidy_queues() : found;
}

}  // namespace holdfast::simulation
