#include "tests/simulation/permits.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "reconciler/names.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/server/schema.h"

namespace holdfast::simulation {
namespace {

using std::chrono::seconds;

// The server's time is known to a second, and the wall clock may step.
constexpr seconds kRateTolerance{4};
// What was written this long ago is in every cache that is up to date.
constexpr seconds kSeen{2};
constexpr std::size_t kAdmissionsKept = 2000;
// A replica that still acts on what a restore has undone finds out within this.
constexpr seconds kRestoreTolerance{60};

std::optional<std::int64_t> limit_in(const Json& spec, const char* field) {
  if (!at(spec, field).is_number_integer()) return std::nullopt;
  return int_at(spec, field);
}

std::vector<Permits::Admission> admissions_in(const Json& status) {
  std::vector<Permits::Admission> all;
  for (const Json& entry : at(status, "admitting")) {
    all.emplace_back(string_at(entry, "uid"), int_at(entry, "attempt"));
  }
  return all;
}

bool has(const std::vector<Permits::Admission>& all, const Permits::Admission& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

// The policy of the job's current stage.
const Json& current_stage(const Json& job) {
  const Json& spec = at(job, "spec");
  const std::string name = string_at(at(job, "status"), "stage");
  for (const Json& stage : at(spec, "stages")) {
    if (!name.empty() && string_at(stage, "name") == name) return stage;
  }
  return spec;
}

bool goes_first(const Permits::Job& a, const Permits::Job& b) {
  return std::tie(b.priority, a.created, a.uid) < std::tie(a.priority, b.created, b.uid);
}

bool is_above(std::int64_t count, const std::optional<std::int64_t>& limit) {
  return limit && count > *limit;
}

std::string of(std::int64_t count, const std::optional<std::int64_t>& limit) {
  return std::to_string(count) + " of " + std::to_string(limit.value_or(0));
}

}  // namespace

void Permits::complain(const std::string& what) const {
  const bool excused =
      restored_at_ >= Duration::zero() && scheduler_.now() - restored_at_ < kRestoreTolerance;
  if (!excused) complain_("S19 Permits: " + what);
}

// ---- Who holds a permit.

bool Permits::runs(const Job& job) { return job.phase == "Running" || job.phase == "Cancelling"; }

void Permits::read(const Json& json, Job& job) {
  const Json& spec = at(json, "spec");
  const Json& status = at(json, "status");
  job.priority = int_at(at(spec, "queue"), "priority");
  job.phase = string_at(status, "phase");
  job.attempt = int_at(status, "attempt");
  job.waits_for = string_at(at(status, "waiting"), "reason");
  const bool ended = job.phase == "Succeeded" || job.phase == "Failed" || job.phase == "Cancelled";
  job.over = ended || is_deleting(json);
  const Json& stage = current_stage(json);
  // A cancelled job still cleans up, and then it does not stop in the middle.
  const bool cancelled = bool_at(spec, "cancel");
  const bool cleans_up = cancelled && string_at(stage, "when") == "Always";
  job.stands = (cancelled && !cleans_up) || (bool_at(spec, "suspend") && !cleans_up) ||
               int_at(stage, "parallelism", 1) == 0;
  // An attempt on a warm worker waits for the old pod of the stage before.
  const bool is_strict =
      string_at(stage, "podReplacementPolicy") == "Failed" || stage.contains("workerPool");
  job.outlasts = !ended && is_strict;
  const Json& runs_on_record = at(status, "runs");
  job.may_have_slots =
      std::any_of(runs_on_record.begin(), runs_on_record.end(), [](const Json& run) {
        return run.contains("workerName") && run.contains("nextAttemptTime");
      });
}

bool Permits::lives(const Job& job, const std::string& pod_uid, const std::string& pod_name) const {
  const Json* const pod = gateway_.server().find("pods", job.namespace_, pod_name);
  if (!pod || uid_of(*pod) != pod_uid) return false;
  const std::string node = string_at(at(*pod, "spec"), "nodeName");
  if (node.empty()) return !is_deleting(*pod);
  const Cluster::Node* const host = cluster_.node(node);
  return !host || (host->exists && host->lost_since == Duration::zero());
}

bool Permits::holds(const Job& job) const {
  if (job.over) return false;
  if (runs(job)) return true;
  return job.outlasts && std::any_of(job.pods.begin(), job.pods.end(), [&](const auto& pod) {
           return lives(job, pod.first, pod.second);
         });
}

bool Permits::is_open(const Admission& admission) const {
  const auto job = jobs_.find(admission.first);
  return job != jobs_.end() && !job->second.over && job->second.attempt == admission.second;
}

bool Permits::is_admitted(const Job& job) const {
  const auto queue = queues_.find(job.queue);
  const Admission admission{job.uid, job.attempt};
  return queue != queues_.end() && has(queue->second.admitting, admission) && is_open(admission);
}

// `key`: null for all.
std::int64_t Permits::given(const Queue& queue, const std::string& name,
                            const std::string* key) const {
  std::int64_t count = 0;
  for (const auto& [uid, job] : jobs_) {
    if (job.queue != name || (key && job.key != *key)) continue;
    const Admission admission{uid, job.attempt};
    const bool admitted =
        (has(queue.admitting, admission) || queue.left_over.count(admission)) && is_open(admission);
    if (job.given || admitted) ++count;
  }
  return count;
}

std::int64_t Permits::used_at_most(const std::string& queue, const std::string* key) const {
  return std::count_if(jobs_.begin(), jobs_.end(), [&](const auto& one) {
    const Job& job = one.second;
    if (job.queue != queue || (key && job.key != *key)) return false;
    return runs(job) || job.may_outlast() || is_admitted(job);
  });
}

std::map<std::string, std::vector<const Permits::Job*>> Permits::lines() const {
  std::map<std::string, std::vector<const Job*>> lines;
  for (const auto& [uid, job] : jobs_) lines[job.queue].push_back(&job);
  for (auto& [name, line] : lines) {
    std::sort(line.begin(), line.end(),
              [](const Job* a, const Job* b) { return goes_first(*a, *b); });
  }
  return lines;
}

const Permits::Job* Permits::job(const std::string& uid) const {
  const auto found = jobs_.find(uid);
  return found == jobs_.end() ? nullptr : &found->second;
}

bool Permits::was_admitted(const std::string& job_uid, std::int64_t attempt) const {
  return admitted_.count({job_uid, attempt}) > 0;
}

std::vector<std::string> Permits::shard_keys(const std::string& job_uid) const {
  const auto found = namespaces_.find(job_uid);
  if (found == namespaces_.end()) return {job_uid};
  if (jobs_.count(job_uid) > 0) return {found->second};
  return {found->second, job_uid};
}

// ---- Queues.

void Permits::queue_written(const Applied& applied, const Delivery* by) {
  const std::string name = key_of(applied.after ? *applied.after : *applied.before);
  Queue& queue = queues_[name];
  if (!applied.after) {
    for (const Admission& admission : queue.admitting) {
      if (is_open(admission)) queue.left_over.insert(admission);
    }
    const std::string holder = string_at(queue.status, "holderIdentity");
    if (!holder.empty()) queue.left_by = holder;
    queue.uid.clear();
    queue.admitting.clear();
    queue.status = queue.spec = Json::object();
    queue.changed = scheduler_.now();
    return;
  }
  const Json& spec = at(*applied.after, "spec");
  if (!applied.before || spec != queue.spec) {
    queue.changed = scheduler_.now();
    if (!applied.before || at(spec, "rate") != at(queue.spec, "rate")) queue.admissions.clear();
  }
  queue.uid = uid_of(*applied.after);
  queue.spec = spec;
  const Json before = queue.status;
  queue.status =
      at(*applied.after, "status").is_object() ? at(*applied.after, "status") : Json::object();
  const bool by_newer = applied.request && applied.request->user == kNewerUser;
  if (queue.status != before && !by_newer) status_written(name, before, queue.status, by);
}

void Permits::status_written(const std::string& name, const Json& before, const Json& after,
                             const Delivery* by) {
  if (!by) return complain("a status is written by nobody of ours: " + name);
  Queue& queue = queues_[name];
  const std::vector<Admission> was = admissions_in(before);
  const std::vector<Admission> now = admissions_in(after);
  queue.admitting = now;
  std::set<std::string> jobs;
  for (const Admission& admission : now) {
    if (!jobs.insert(admission.first).second) complain("a job is admitted twice: " + name);
  }
  for (const Admission& admission : was) {
    if (!has(now, admission) && is_open(admission)) {
      complain("an admission of " + name + " is forgotten: " + jobs_.at(admission.first).name);
    }
  }
  const std::string holder = string_at(after, "holderIdentity");
  std::vector<Admission> fresh;
  for (const Admission& admission : now) {
    if (!has(was, admission) && queue.left_over.count(admission) == 0) fresh.push_back(admission);
  }
  left_over(name, queue, holder, now);
  if (fresh.empty()) return;
  if (holder.empty() || holder != string_at(before, "holderIdentity")) {
    // It may carry what an earlier queue of the name had.
    const bool gives = std::any_of(fresh.begin(), fresh.end(), [&](const Admission& admission) {
      return is_open(admission) || admitted_.count(admission) == 0;
    });
    if (gives) complain("a claim of " + name + " admits jobs");
    return;
  }
  admitted(name, queue, fresh, *by);
}

// The first write of a new queue of the name. Its owner knows the admissions of the old one, if it
// is of the same tenure.
void Permits::left_over(const std::string& name, Queue& queue, const std::string& holder,
                        const std::vector<Admission>& now) {
  for (const Admission& admission : queue.left_over) {
    if (has(now, admission) || !is_open(admission)) continue;
    if (holder == queue.left_by) {
      complain("an admission of the queue that " + name +
               " was before is forgotten: " + jobs_.at(admission.first).name);
    }
    excused_.insert(admission);
  }
  queue.left_over.clear();
}

void Permits::admitted(const std::string& name, Queue& queue, const std::vector<Admission>& fresh,
                       const Delivery& by) {
  for (const Admission& admission : fresh) {
    admitted_.insert(admission);
    const auto job = jobs_.find(admission.first);
    if (job == jobs_.end()) continue;  // it was deleted meanwhile
    if (job->second.queue != name) complain(name + " admits a job of another: " + job->second.name);
    if (admission.second > job->second.attempt) {
      complain(name + " admits an attempt of the future: " + job->second.name);
    }
  }
  if (bool_at(queue.spec, "hold")) complain(name + " is held, and admits jobs");
  for (const Admission& admission : fresh) check_limits(name, queue, admission);
  check_rate(name, queue, fresh.size(), by.sent);
  for (const Admission& admission : fresh) {
    if (checks_order_ && is_open(admission)) check_rank(name, queue, jobs_.at(admission.first));
  }
}

void Permits::check_limits(const std::string& name, const Queue& queue,
                           const Admission& admission) {
  if (!is_open(admission)) return;
  const auto all = limit_in(queue.spec, "concurrency");
  const std::int64_t used = given(queue, name, nullptr);
  if (is_above(used, all)) complain(name + " gives " + of(used, all) + " permits");
  const std::string& key = jobs_.at(admission.first).key;
  const auto of_key = limit_in(queue.spec, "concurrencyPerKey");
  const std::int64_t used_of_key = given(queue, name, &key);
  if (is_above(used_of_key, of_key)) {
    complain(name + " gives " + of(used_of_key, of_key) + " permits of key '" + key + "'");
  }
}

// In no window more than the bucket can have: all that it holds, and what comes meanwhile.
void Permits::check_rate(const std::string& name, Queue& queue, std::size_t count,
                         Duration decided) {
  const Json& rate = at(queue.spec, "rate");
  if (!rate.is_object()) return;
  queue.admissions.insert(queue.admissions.end(), count, decided);
  while (queue.admissions.size() > kAdmissionsKept) queue.admissions.pop_front();
  const double jobs = static_cast<double>(int_at(rate, "jobs"));
  const double period = static_cast<double>(int_at(rate, "periodSeconds"));
  for (std::size_t i = 0; i < queue.admissions.size(); ++i) {
    const Duration window = decided - queue.admissions[i] + kRateTolerance;
    const auto seen = static_cast<double>(queue.admissions.size() - i);
    if (seen <= jobs + jobs * to_seconds(window) / period) continue;
    return complain(name + " admits " + std::to_string(queue.admissions.size() - i) +
                    " jobs within " + human_duration(decided - queue.admissions[i]) +
                    ", its rate is " + rate.dump());
  }
}

// Of those that everybody can see since long enough, none of a higher rank is left out, unless its
// key is full.
void Permits::check_rank(const std::string& name, const Queue& queue, const Job& first) {
  const Duration now = scheduler_.now();
  if (now - queue.changed < kSeen) return;
  const auto of_key = limit_in(queue.spec, "concurrencyPerKey");
  for (const auto& entry : jobs_) {
    const Job& job = entry.second;
    if (job.queue != name || !goes_first(job, first) || job.waits_for != "Queued") continue;
    if (job.over || job.stands || is_admitted(job) || now - job.changed < kSeen) continue;
    const bool key_moves = std::any_of(jobs_.begin(), jobs_.end(), [&](const auto& other) {
      return other.second.queue == name && other.second.key == job.key &&
             now - other.second.changed < kSeen;
    });
    if (of_key && (key_moves || used_at_most(name, &job.key) >= *of_key)) continue;
    return complain(name + " admits " + first.name + " before " + job.name);
  }
}

// ---- Jobs and their pods.

void Permits::job_written(const Applied& applied) {
  if (!applied.after) {
    jobs_.erase(uid_of(*applied.before));
    return;
  }
  const Permits::Job* const known = job(uid_of(*applied.after));
  const Job was = known ? *known : Job();
  Job* const now = see(*applied.after);
  if (!now) return;
  const bool starts = now->phase == "Running" && now->attempt > was.attempt;
  if (starts && !runs(was) && !was.given) check_intent(*now, was.attempt);
  settle(*now);
}

// Null: it has no queue.
Permits::Job* Permits::see(const Json& json) {
  const Json& ref = at(at(json, "spec"), "queue");
  if (!ref.is_object()) return nullptr;
  Job& job = jobs_[uid_of(json)];
  const Json& meta = at(json, "metadata");
  job.uid = uid_of(json);
  job.name = string_at(meta, "name");
  job.namespace_ = string_at(meta, "namespace");
  job.queue = job.namespace_ + "/" + string_at(ref, "name");
  job.key = string_at(ref, "key");
  job.created = string_at(meta, "creationTimestamp");
  job.changed = scheduler_.now();
  namespaces_[job.uid] = job.namespace_;
  read(json, job);
  return &job;
}

void Permits::check_intent(Job& job, std::int64_t attempt) {
  const Admission admission{job.uid, attempt};
  if (admitted_.count(admission) == 0) {
    return complain("an attempt starts without an admission: " + job.name + ", attempt " +
                    std::to_string(job.attempt));
  }
  if (excused_.count(admission) == 0) job.given = true;
}

void Permits::settle(Job& job) {
  if (job.given && !holds(job)) job.given = false;
}

void Permits::pod_written(const Applied& applied, bool by_replica) {
  const Json& pod = applied.after ? *applied.after : *applied.before;
  if (!applied.before && by_replica) owners_[uid_of(pod)] = controller_uid(pod);
  Job* const job = applied.after ? see_pod(pod) : owner_of(pod);
  if (!job) return;
  if (!applied.after) job->pods.erase(uid_of(pod));
  job->changed = scheduler_.now();
  settle(*job);
}

// Null: it is no pod that a replica made for a job with a queue.
Permits::Job* Permits::owner_of(const Json& pod) {
  const auto owner = owners_.find(uid_of(pod));
  const auto job = owner == owners_.end() ? jobs_.end() : jobs_.find(owner->second);
  return job == jobs_.end() ? nullptr : &job->second;
}

Permits::Job* Permits::see_pod(const Json& pod) {
  Job* const job = owner_of(pod);
  if (!job) return nullptr;
  const Json& labels = at(at(pod, "metadata"), "labels");
  const bool seen =
      at(labels, reconciler::kJobUidLabel).is_string() && controller_uid(pod) == job->uid;
  if (seen && !is_final(pod_phase(pod))) {
    job->pods[uid_of(pod)] = string_at(at(pod, "metadata"), "name");
  } else {
    job->pods.erase(uid_of(pod));
  }
  return job;
}

// What was given before is not counted: a replica may act on what is undone, until it finds out.
void Permits::data_restored() {
  restored_at_ = scheduler_.now();
  queues_.clear();
  jobs_.clear();
  gateway_.server().for_each("jobqueues", [this](const Json& json) {
    Queue& queue = queues_[key_of(json)];
    queue.uid = uid_of(json);
    queue.spec = at(json, "spec");
    queue.changed = scheduler_.now();
    if (at(json, "status").is_object()) queue.status = at(json, "status");
    queue.admitting = admissions_in(queue.status);
    for (const Admission& admission : queue.admitting) excused_.insert(admission);
  });
  gateway_.server().for_each("durablejobs", [this](const Json& json) { see(json); });
  gateway_.server().for_each("pods", [this](const Json& pod) { see_pod(pod); });
}

}  // namespace holdfast::simulation
