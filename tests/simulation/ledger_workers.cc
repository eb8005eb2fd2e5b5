// The ledger's rules on warm workers: the places of attempts, what counts of a worker's answers,
// the words of the two Leases, and the sizes of pools.
#include <algorithm>

#include "operator/pools/worker_leases.h"
#include "reconciler/pool/pool.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules
using std::chrono::seconds;

// A replica may not have seen a pool's new limit yet.
constexpr seconds kEditTolerance{20};
// A watch may be behind for so long.
constexpr seconds kStale{60};

std::string holder_of(const Json& lease) { return string_at(at(lease, "spec"), "holderIdentity"); }

std::string annotation_of(const Json& lease, const char* name) {
  return string_at(at(at(lease, "metadata"), "annotations"), name);
}

WorkerReport report_of(const Json& lease) {
  const auto report = decode_report(annotation_of(lease, kWorkerAnnotation));
  return report.ok() ? *report : WorkerReport();
}

Work work_of(const Json& lease) {
  const auto work = decode_work(annotation_of(lease, kWorkAnnotation));
  return work.ok() ? *work : Work();
}

template <class Entries>
const typename Entries::value_type* find(const Entries& entries, const AttemptId& id) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.id == id; });
  return found == entries.end() ? nullptr : &*found;
}

bool is_answered(const WorkerReport& report, const AttemptId& id) {
  const Answer* const answer = find(report.answers, id);
  return answer && answer->kind != AnswerKind::kRunning;
}

}  // namespace

// ---- Places.

// S22: an attempt has one place, and never gets another.
void Ledger::check_places(const StatusWrite& write) {
  if (write.moves) return;
  for (const Run& was : write.old.runs) {
    for (const Run& now : write.next.runs) {
      if (now.index != was.index || now.attempt != was.attempt) continue;
      if (was.at_worker() && now.worker_uid != was.worker_uid) {
        complain("S22 OnePlace: an attempt gets another worker: " +
                 named(write.name, was.index, was.attempt));
      }
    }
  }
}

void Ledger::attempt_placed(const StatusWrite& write, const Run& run) {
  const std::string what = named(write.name, run.index, run.attempt);
  if (!run.at_worker()) return complain("S22 OnePlace: an attempt without a worker: " + what);
  const std::string ns = string_at(at(write.after, "metadata"), "namespace");
  const Json* place = nullptr;
  gateway_.server().for_each("leases", [&](const Json& lease) {
    if (uid_of(lease) == run.worker_uid) place = &lease;
  });
  // It may have gone while the write was under way.
  if (!place) return;
  const Json& meta = at(*place, "metadata");
  if (string_at(meta, "namespace") != ns || !string_at(meta, "name").starts_with(kWorkerPrefix)) {
    complain("S13 Tenancy: the place is no worker of the job's namespace: " + what);
  }
  const Json& owners = at(meta, "ownerReferences");
  if (owners.empty() || string_at(owners[0], "name") != write.next_spec.pool->name) {
    complain("S13 Tenancy: the place is a worker of another pool than " +
             write.next_spec.pool->name + ": " + what + owners.dump());
  }
}

bool Ledger::succeeded_at_worker(const StatusWrite& write, const Run& run) const {
  const WarmWorkers::Truth* const truth = workers_.truth({write.uid, run.index, run.attempt});
  return truth && truth->exit_code == 0 && truth->worker_uid == run.worker_uid;
}

// S18, S2: only what the worker on record has said, in a version that counts.
void Ledger::worker_attempt_ended(const StatusWrite& write, JobBook& book,
                                  const HistoryEntry& entry, const Run& run) {
  const std::string what = named(write.name, entry.index, entry.attempt) + ", " +
                           to_string(entry.outcome) + " (" + entry.reason.text() + ")";
  const AttemptId id{write.uid, run.index, run.attempt};
  const WarmWorkers::Truth* const truth = workers_.truth(id);
  const bool by_kernel = entry.reason == Reason::kOOMKilled;
  const bool by_command =
      !by_kernel && (entry.outcome == Outcome::kSucceeded || entry.outcome == Outcome::kFailed ||
                     entry.outcome == Outcome::kDeferred);
  // An attempt with an entry is on its worker, also one that had not begun: no command that eats up
  // the memory at once would ever be blamed otherwise.
  if (by_kernel && workers_.killed_with(id) > 1) {
    complain("an attempt is blamed that did not run its worker out of memory alone: " + what);
  }
  const PolicyAction action = action_of(write.spec, entry.exit_code);
  const bool ignored = entry.outcome == Outcome::kFailed && action == PolicyAction::kIgnore;
  const Budget budget = ignored ? Budget::kNone : budget_of(entry.outcome);
  if (budget == Budget::kFailures) ++book.failures;
  if (budget == Budget::kDisruptions) ++book.disruptions;
  if (by_command && (!truth || !truth->exit_code)) {
    return complain("S2 FencedOutcome: an end that no command had: " + what);
  }
  if (by_command && truth->worker_uid != run.worker_uid) {
    return complain("S18 Author: the answer of another worker: " + what);
  }
  if (by_command && *truth->exit_code != entry.exit_code.value_or(0)) {
    complain("S2 FencedOutcome: another exit code than the command's: " + what);
  }
  const auto cut_off = cut_off_.find(run.worker_uid);
  if (by_command && cut_off != cut_off_.end()) {
    const Answer* const answer = find(cut_off->second.answers, id);
    if (!answer || answer->kind != AnswerKind::kEnded) {
      complain("S18 Author: a worker's answer counts after its cut-off: " + what);
    }
  }
  if (entry.outcome == Outcome::kHandedBack) workers_.handed_back(id);
  const Json* lease = nullptr;
  gateway_.server().for_each("leases", [&](const Json& one) {
    if (uid_of(one) == run.worker_uid) lease = &one;
  });
  // A worker that drains has stopped it, and says so.
  const bool stopped = entry.reason == Reason::kWorkerStopped && (!truth || !truth->alive);
  if (entry.outcome == Outcome::kLost && !stopped && lease && !holder_of(*lease).empty()) {
    complain("an attempt is lost on a worker that is not cut off: " + what);
  }
  if (entry.reason == Reason::kNoProgress) check_hung(write, entry, truth);
}

void Ledger::check_hung(const StatusWrite& write, const HistoryEntry& entry,
                        const WarmWorkers::Truth* truth) {
  const auto& pool = write.spec.pool;
  if (!truth || !pool || !pool->progress_deadline) return;
  const Duration decided = current_ ? current_->sent : scheduler_.now();
  const Duration deadline = *pool->progress_deadline / fastest_rate() * 1'000'000;
  // It is reported with a renewal.
  if (decided - truth->progressed + seconds(1) >= deadline || truth->exit_code) return;
  const WarmWorker* const worker = workers_.worker(truth->pod_uid);
  if (!worker || !worker->renewed_at() || decided - *worker->renewed_at() > seconds(1)) return;
  complain("an attempt is falsely called hung: " + named(write.name, entry.index, entry.attempt));
}

// ---- The two Leases.

void Ledger::worker_lease_written(const Applied& applied) {
  const Json& object = applied.after ? *applied.after : *applied.before;
  const std::string name = string_at(at(object, "metadata"), "name");
  if (name.starts_with(kWorkPrefix)) {
    ++checks_;
    const bool by_us = by_replica(applied);
    if (by_us && applied.before && applied.after) {
      work_lease_written(*applied.before, *applied.after);
    }
    // Nobody knows what its agent has read, until the agent finds out.
    const bool is_edited = !by_us && applied.before && applied.after &&
                           annotation_of(*applied.before, kWorkAnnotation) !=
                               annotation_of(*applied.after, kWorkAnnotation);
    if (is_edited) workers_.excuse(name.substr(kWorkPrefix.size()));
    return;
  }
  if (!name.starts_with(kWorkerPrefix) || !applied.before) return;
  ++checks_;
  const bool was_held = !holder_of(*applied.before).empty();
  if (!applied.after) {
    if (by_replica(applied) && was_held) {
      complain("a worker's Lease is deleted before the worker is cut off: " + key_of(object));
    }
    return;
  }
  if (at(at(object, "spec"), "renewTime").is_string()) {
    began_.emplace(name.substr(kWorkerPrefix.size()), scheduler_.now());
  }
  check_mark(*applied.before, *applied.after);
  // The operator revokes a Lease that somebody has changed, whatever its holder is: they may have
  // removed that, too. A revoked worker gets no work, so it is not back.
  const bool has_lost_its_label =
      string_at(at(at(*applied.before, "metadata"), "labels"), kWorkerPoolLabel).empty();
  const bool is_revoked = by_replica(applied) && has_lost_its_label &&
                          holder_of(*applied.after) == pools::kRevokedHolder;
  if (!was_held && !holder_of(*applied.after).empty() && !is_revoked) {
    complain("a worker that was cut off comes back: " + key_of(object));
  }
  if (!was_held || !holder_of(*applied.after).empty()) return;
  if (!by_replica(applied)) workers_.excuse(name.substr(kWorkerPrefix.size()));
  cut_off_.try_emplace(uid_of(object), report_of(*applied.before));
  workers_.is_cut_off(uid_of(object), name.substr(kWorkerPrefix.size()));
}

// A container that was restarted in place never serves: only its first process marks the Lease.
void Ledger::check_mark(const Json& before, const Json& after) {
  const std::string was = report_of(before).life;
  const std::string now = report_of(after).life;
  if (was.empty() || now.empty() || now == was) return;
  complain("S22 OnePlace: a second process of a worker's container serves: " + key_of(after));
}

// What the stored record says. A worker Lease that was made again is another worker's.
bool Ledger::is_over(const std::string& namespace_, const WorkEntry& entry,
                     const std::string& lease_uid) const {
  const Json* const job = gateway_.server().find("durablejobs", namespace_, entry.job_name);
  if (!job || uid_of(*job) != entry.id.job_uid || is_deleting(*job)) return true;
  for (const Json& run : at(at(*job, "status"), "runs")) {
    if (int_at(run, "index") != entry.id.run) continue;
    if (!lease_uid.empty() && string_at(run, "workerUID") != lease_uid) return true;
    return int_at(run, "attempt") != entry.id.attempt || run.contains("nextAttemptTime");
  }
  return true;
}

void Ledger::work_lease_written(const Json& before, const Json& after) {
  const Work was = work_of(before);
  const Work now = work_of(after);
  const std::string what = key_of(after);
  if (now.seq != was.seq + 1) complain("the seq of a work Lease does not rise by one: " + what);
  if (was.draining && !now.draining) complain("a worker stops draining: " + what);
  check_entries(after, was, now);
}

void Ledger::check_entries(const Json& lease, const Work& was, const Work& now) {
  const std::string ns = string_at(at(lease, "metadata"), "namespace");
  const std::string name = string_at(at(lease, "metadata"), "name");
  const std::string pod_uid = name.substr(kWorkPrefix.size());
  const Json* const worker =
      gateway_.server().find("leases", ns, std::string(kWorkerPrefix) + pod_uid);
  const std::string lease_uid = worker ? uid_of(*worker) : "";
  const auto what = [&](const WorkEntry& entry) {
    return name + ", " + named(entry.job_name, entry.id.run, entry.id.attempt);
  };
  for (const WorkEntry& entry : was.entries) {
    const WorkEntry* const next = find(now.entries, entry.id);
    if (next && entry.stop && !next->stop)
      complain("an entry goes from stop to run: " + what(entry));
    if (next && next->stop && !entry.stop && !is_over(ns, entry, lease_uid)) {
      complain("an attempt is told to stop whose end is not on record: " + what(entry));
    }
    if (next) continue;
    if (!is_over(ns, entry, lease_uid))
      complain("an entry leaves before its record moves on: " + what(entry));
    if (worker && !holder_of(*worker).empty() && !is_answered(report_of(*worker), entry.id)) {
      complain("an entry leaves without an answer: " + what(entry));
    }
  }
  for (const WorkEntry& entry : now.entries) {
    if (find(was.entries, entry.id)) continue;
    if (was.draining) complain("a worker that drains gets an entry: " + what(entry));
    const Json* const job = gateway_.server().find("durablejobs", ns, entry.job_name);
    if (!job || uid_of(*job) != entry.id.job_uid) continue;
    if (int_at(at(*job, "status"), "attempt") < entry.id.attempt) {
      complain("S8 Budget: an entry comes before its attempt is recorded: " + what(entry));
    }
    for (const Json& run : at(at(*job, "status"), "runs")) {
      if (int_at(run, "index") != entry.id.run || int_at(run, "attempt") != entry.id.attempt) {
        continue;
      }
      if (worker && string_at(run, "workerUID") != uid_of(*worker)) {
        complain("S22 OnePlace: another worker than the attempt's gets its entry: " + what(entry));
      }
    }
  }
}

// ---- Pools.

void Ledger::see_pooled(const Applied& applied) {
  const Json& job = applied.after ? *applied.after : *applied.before;
  const Json& spec = at(job, "spec");
  bool is_pooled = spec.contains("workerPool");
  for (const Json& stage : at(spec, "stages")) is_pooled |= stage.contains("workerPool");
  if (!is_pooled) return;
  pooled_jobs_[uid_of(job)] = {string_at(at(job, "metadata"), "namespace"), !applied.after};
}

void Ledger::pool_written(const Json& pool) {
  const std::int64_t most = int_at(at(pool, "spec"), "maxWorkers");
  PoolSize& size = pool_sizes_[uid_of(pool)];
  const Duration deadline = seconds(int_at(at(pool, "spec"), "startDeadlineSeconds", 600));
  size.start_deadline =
      size.start_deadline > Duration::zero() ? std::min(size.start_deadline, deadline) : deadline;
  if (most == size.most) return;
  size = {most, size.most, scheduler_.now(), size.start_deadline};
}

bool Ledger::may_lack_pool(const std::string& namespace_, const std::string& pool) const {
  return once_missing_.count(namespace_ + "/" + pool) > 0 ||
         !gateway_.server().find("workerpools", namespace_, pool);
}

namespace {

// The plan that replaces it deletes it.
bool cannot_start(const Json& pod) {
  for (const char* const list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& container : at(at(pod, "status"), list)) {
      const std::string reason = string_at(at(at(container, "state"), "waiting"), "reason");
      if (!reason.empty() && reason != "ContainerCreating" && reason != "PodInitializing") {
        return true;
      }
    }
  }
  return false;
}

bool lacks_label(const Json* lease) {
  return lease && !at(at(at(*lease, "metadata"), "labels"), kWorkerPoolLabel).is_string();
}

std::string hash_of(const Json& pod) {
  return string_at(at(at(pod, "metadata"), "labels"), kWorkerHashLabel);
}

}  // namespace

void Ledger::worker_pod_written(const Json& pod) {
  const std::string uid = uid_of(pod);
  const auto known = could_not_start_.find(uid);
  if (cannot_start(pod)) {
    could_not_start_[uid] = Duration::max() / 2;
  } else if (known != could_not_start_.end()) {
    known->second = std::min(known->second, scheduler_.now());
  }
}

// It has not begun by its deadline, as far as a clock that is a tenth too fast shows. Its successor
// is made first.
bool Ledger::is_past_start(const Json& pod) const {
  const auto created = parse_time(string_at(at(pod, "metadata"), "creationTimestamp"));
  const auto pool = pool_sizes_.find(controller_uid(pod));
  return created && pool != pool_sizes_.end() &&
         gateway_.wall_clock() - *created >= pool->second.start_deadline * 9 / 10;
}

// It serves, or will. One that has not begun yet goes if its template is another one than `hash`;
// a stale watch does not show that it has begun.
bool Ledger::gets_attempts(const Json& pod, const std::string& hash) const {
  const PodPhase phase = pod_phase(pod);
  if (is_deleting(pod) || is_final(phase) || cannot_start(pod)) return false;
  const auto failed = could_not_start_.find(uid_of(pod));
  if (failed != could_not_start_.end() && scheduler_.now() < failed->second + kStale) return false;
  const std::string ns = string_at(at(pod, "metadata"), "namespace");
  const std::string uid = uid_of(pod);
  const auto lease = [&](std::string_view prefix) {
    return gateway_.server().find("leases", ns, std::string(prefix) + uid);
  };
  const Json* const worker = lease(kWorkerPrefix);
  const Json* const work = lease(kWorkPrefix);
  if (lacks_label(worker) || lacks_label(work)) return false;
  const std::string name = string_at(at(pod, "metadata"), "name");
  if (worker && holder_of(*worker) != name + "/" + uid) return false;
  if (worker && report_of(*worker).draining) return false;
  const auto began = began_.find(uid);
  if (began == began_.end() && is_past_start(pod)) return false;
  const bool is_known = began != began_.end() && scheduler_.now() >= began->second + kStale;
  if (!is_known && hash_of(pod) != hash) return false;
  return !work || !work_of(*work).draining;
}

void Ledger::check_pool_size(const Json& pod) {
  // What was long under way was decided on another pool.
  if (!current_ || scheduler_.now() - current_->sent > seconds(1)) return;
  const std::string owner = controller_uid(pod);
  const auto size = pool_sizes_.find(owner);
  if (size == pool_sizes_.end()) return;
  std::int64_t count = 0;
  gateway_.server().for_each("pods", [&](const Json& one) {
    if (controller_uid(one) == owner && gets_attempts(one, hash_of(pod))) ++count;
  });
  const PoolSize& limit = size->second;
  const bool is_new = scheduler_.now() - limit.changed < kEditTolerance;
  const std::int64_t most = is_new ? std::max(limit.most, limit.before) : limit.most;
  if (count <= most) return;
  complain("a pool of at most " + std::to_string(most) + " workers has " + std::to_string(count) +
           ": " + key_of(pod));
}

// A worker's pod goes once the worker has drained, or is cut off.
void Ledger::check_worker_deleted(const Json& pod) {
  if (is_deleting(pod)) return;
  const std::string ns = string_at(at(pod, "metadata"), "namespace");
  const std::string uid = uid_of(pod);
  const Json* const worker = gateway_.server().find("leases", ns, std::string(kWorkerPrefix) + uid);
  const Json* const work = gateway_.server().find("leases", ns, std::string(kWorkPrefix) + uid);
  if (!worker || !work || is_final(pod_phase(pod))) return;
  // One that is revoked, or whose Leases somebody has changed, goes with all that it has.
  if (holder_of(*worker).find('/') == std::string::npos || lacks_label(worker) ||
      lacks_label(work)) {
    return;
  }
  if (work_of(*work).entries.empty()) return;
  complain("a worker's pod is deleted while the worker has entries: " + key_of(pod));
}

}  // namespace holdfast::simulation
