// Liveness of warm workers: an attempt on a worker that is silent, cut off or gone moves on within
// the bound of its class, an answer is recorded at once, and no run waits while a slot is free.
#include <algorithm>
#include <charconv>

#include "tests/simulation/liveness_job.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules
using std::chrono::seconds;

// What users give their pools.
constexpr Duration kLongestLease = seconds(20);
constexpr Duration kLongestPoolGrace = seconds(30);

std::int64_t slots_of(const Json& pod) {
  for (const Json& variable : at(at(at(pod, "spec"), "containers")[0], "env")) {
    if (string_at(variable, "name") != "HOLDFAST_SLOTS") continue;
    const std::string text = string_at(variable, "value");
    std::int64_t slots = 0;
    std::from_chars(text.data(), text.data() + text.size(), slots);
    return slots;
  }
  return 1;
}

}  // namespace

void Liveness::read_workers() {
  leased_.clear();
  gateway_.server().for_each("leases", [&](const Json& lease) {
    const std::string name = string_at(at(lease, "metadata"), "name");
    const std::string ns = string_at(at(lease, "metadata"), "namespace");
    if (!name.starts_with(kWorkerPrefix)) return;
    LeasedWorker worker;
    worker.pod_uid = name.substr(kWorkerPrefix.size());
    worker.namespace_ = ns;
    worker.holder = string_at(at(lease, "spec"), "holderIdentity");
    worker.duration = seconds(int_at(at(lease, "spec"), "leaseDurationSeconds"));
    worker.renewed = parse_time(string_at(at(lease, "spec"), "renewTime"));
    const Json& owners = at(at(lease, "metadata"), "ownerReferences");
    if (!owners.empty()) worker.pool = string_at(owners[0], "name");
    const Json& annotations = at(at(lease, "metadata"), "annotations");
    if (const auto report = decode_report(string_at(annotations, kWorkerAnnotation)); report.ok()) {
      worker.report = *report;
    }
    const Json* const work =
        gateway_.server().find("leases", ns, std::string(kWorkPrefix) + worker.pod_uid);
    if (work) {
      const auto words = string_at(at(at(*work, "metadata"), "annotations"), kWorkAnnotation);
      if (const auto read = decode_work(words); read.ok()) worker.work = *read;
    }
    leased_[uid_of(lease)] = std::move(worker);
  });
  // How many attempts each has: its entries, and the places on record.
  std::map<std::string, std::vector<AttemptId>> open;
  for (const auto& [uid, cached] : jobs_) {
    for (const Run& run : cached.second->job.status.runs) {
      if (run.open() && run.at_worker())
        open[run.worker_uid].push_back({uid, run.index, run.attempt});
    }
  }
  free_slots_.clear();
  gateway_.server().for_each("pods", [&](const Json& pod) {
    if (!workers_.serves(pod) || is_deleting(pod) || is_final(pod_phase(pod))) return;
    for (const auto& [lease_uid, worker] : leased_) {
      if (worker.pod_uid != uid_of(pod)) continue;
      const std::string holder = string_at(at(pod, "metadata"), "name") + "/" + worker.pod_uid;
      const bool speaks = worker.renewed && worker.holder == holder &&
                          scheduler_.now() - instant(worker.renewed) < worker.duration / 2;
      if (!speaks || worker.report.draining || !worker.work || worker.work->draining) return;
      std::vector<AttemptId> taken = open[lease_uid];
      for (const WorkEntry& entry : worker.work->entries) {
        if (std::find(taken.begin(), taken.end(), entry.id) == taken.end())
          taken.push_back(entry.id);
      }
      const auto left = slots_of(pod) - static_cast<std::int64_t>(taken.size());
      if (left > 0) free_slots_[worker.namespace_ + "/" + worker.pool] += left;
    }
  });
  forget_kept_slots();
}

// A worker may be kept free for a run that needs one of its own, or has such a run: then its other
// slots are for nobody.
void Liveness::forget_kept_slots() {
  for (const auto& [uid, cached] : jobs_) {
    const reconciler::Job& job = cached.second->job;
    const auto& runs = job.status.runs;
    const bool any_alone =
        std::any_of(runs.begin(), runs.end(), [](const Run& run) { return run.alone; });
    if (any_alone && job.spec.pool) free_slots_.erase(job.namespace_ + "/" + job.spec.pool->name);
  }
}

// No process of the attempt is at its place any more, as far as the operator can know.
bool Liveness::is_empty_place(const Job& job, const Run& run) const {
  if (!run.at_worker()) return true;
  const auto found = leased_.find(run.worker_uid);
  if (found == leased_.end()) return false;
  const LeasedWorker& worker = found->second;
  if (worker.holder.empty()) return true;
  const AttemptId id{job.job.uid, run.index, run.attempt};
  for (const Answer& answer : worker.report.answers) {
    if (answer.id == id) return answer.kind != AnswerKind::kRunning;
  }
  return worker.work && std::none_of(worker.work->entries.begin(), worker.work->entries.end(),
                                     [&](const WorkEntry& entry) { return entry.id == id; });
}

// Its pool has no slot for it now.
bool Liveness::lacks_pool(const std::string& job_uid) const {
  const auto found = jobs_.find(job_uid);
  if (found == jobs_.end()) return false;
  const reconciler::Job& job = found->second.second->job;
  return job.spec.pool &&
         !gateway_.server().find("workerpools", job.namespace_, job.spec.pool->name);
}

bool Liveness::lacks_slot(const std::string& job_uid) const {
  const auto found = jobs_.find(job_uid);
  if (found == jobs_.end()) return false;
  const reconciler::Job& job = found->second.second->job;
  return job.spec.pool && free_slots_.count(job.namespace_ + "/" + job.spec.pool->name) == 0;
}

int Liveness::silent_workers() const {
  int silent = 0;
  for (const auto& [uid, worker] : leased_) {
    if (worker.holder.empty() || !worker.renewed) continue;
    silent += scheduler_.now() - instant(worker.renewed) > worker.duration / 2 ? 1 : 0;
  }
  return silent;
}

void Liveness::look_at_place(const RunOfJob& one) {
  const Spec& spec = one.job.job.spec;
  const Run& run = one.run;
  if (spec.suspend) holds(one, "suspend is not obeyed", Duration::zero());
  const auto found = leased_.find(run.worker_uid);
  if (found == leased_.end())
    return holds(one, "its worker's Lease is gone", own(2 * kLongestLease));
  const LeasedWorker& worker = found->second;
  if (worker.holder.empty()) return holds(one, "its worker is cut off", Duration::zero());
  // Others that fell silent with it may have been cut off already.
  std::optional<Time>& held = held_back_[run.worker_uid];
  if (silent_workers() > 1) held = worker.renewed;
  const Duration window = own(worker.duration) * (held && held == worker.renewed ? 2 : 1);
  const Duration renewed = std::max(instant(worker.renewed), Duration(1));
  if (worker.holder == "revoked") {
    // Its silence counts from its last renewal. One that never renewed counts from its revocation.
    return worker.renewed
               ? holds(one, "its worker is revoked", window, std::max(renewed, taken_over()))
               : holds(one, "its worker is revoked", 2 * window);
  }
  holds(one, "its worker is silent", window, std::max(renewed, taken_over()));
  const AttemptId id{one.job.job.uid, run.index, run.attempt};
  const auto answer = std::find_if(worker.report.answers.begin(), worker.report.answers.end(),
                                   [&](const Answer& each) { return each.id == id; });
  const bool is_reported = answer != worker.report.answers.end();
  if (is_reported && answer->kind != AnswerKind::kRunning) {
    return holds(one, "its answer is not recorded", Duration::zero());
  }
  const bool has_entry =
      worker.work && std::any_of(worker.work->entries.begin(), worker.work->entries.end(),
                                 [&](const WorkEntry& entry) { return entry.id == id; });
  if (!has_entry && worker.work) holds(one, "intent without entry", Duration::zero());
  if (!is_reported) {
    holds(one, "its worker does not begin it", own(spec.start_deadline) + kServerTime);
  }
  const WarmWorkers::Truth* const truth = workers_.truth(id);
  if (!truth || !is_reported) return;
  // The operator's clock begins with the intent.
  if (spec.attempt_deadline) {
    holds(one, "attempt too long", own(*spec.attempt_deadline) + kServerTime, truth->began);
  }
  if (spec.pool && spec.pool->progress_deadline && !truth->exit_code) {
    holds(one, "its command hangs", own(*spec.pool->progress_deadline) + worker.duration / 3,
          std::max(truth->progressed, taken_over()));
  }
}

// The alert that must never fire: a run waits, and a slot is free.
void Liveness::look_at_waiting(const Job& job) {
  const JobStatus& status = job.job.status;
  const Spec& spec = job.job.spec;
  const auto free = free_slots_.find(job.job.namespace_ + "/" + spec.pool->name);
  if (free == free_slots_.end()) return;
  // A pod of the stage before may live on a node that is lost.
  const bool old_lives = std::any_of(job.pods.begin(), job.pods.end(),
                                     [](const PodView& pod) { return !pod.ended(); });
  if (old_lives) return;
  // A large status is written less often.
  const Duration bound = kServerTime + late(spec.retry_backoff.max) +
                         seconds(job.job.stored_bytes / (std::size_t{128} * 1024) + 1);
  IndexSet begun = status.completed;
  begun.add(status.failed);
  bool waits = false;
  for (const Run& run : status.runs) {
    begun.add(run.index);
    if (run.open() || !is_empty_place(job, run)) continue;
    const Duration due = std::max(instant(run.next_attempt_time), Duration(1));
    if (due > scheduler_.now()) continue;
    waits = true;
  }
  waits = waits || (spec.many_runs() && spec.all_indexes().next(0, begun)) ||
          (!spec.many_runs() && status.runs.empty());
  if (waits) holds(job, "it waits while a slot is free", bound);
}

// False: nothing of the job is at a worker.
bool Liveness::stops_at_workers(const Job& job) {
  const auto& runs = job.job.status.runs;
  const bool any = std::any_of(runs.begin(), runs.end(),
                               [&](const Run& run) { return !is_empty_place(job, run); });
  if (any)
    holds(job, "stopping at a worker",
          own(3 * kLongestLease) + late(kLongestPoolGrace) + kLongestPoolGrace);
  return any;
}

}  // namespace holdfast::simulation
