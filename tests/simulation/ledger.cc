#include "tests/simulation/ledger.h"

#include <algorithm>
#include <utility>

#include "operator/codecs/job_codec.h"
#include "operator/membership/lease_codec.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/requests.h"
#include "tests/simulation/server/schema.h"
#include "tests/support/json_document.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules
using JobStatus = reconciler::Status;

constexpr const char* kMemberPrefix = "holdfast-member-";

std::uint64_t version_of(const Json& object) {
  return version_number(string_at(at(object, "metadata"), "resourceVersion"));
}

}  // namespace

void Ledger::complain(const std::string& what) {
  if (!violation_.empty()) return;
  violation_ = what;
  if (on_violation) on_violation();
}

bool Ledger::by_replica(const Applied& applied) const {
  return applied.request != nullptr && current_ != nullptr && current_->replica >= 0;
}

std::int64_t Ledger::rate() const {
  const auto found = current_ ? rates_.find(current_->replica) : rates_.end();
  return found == rates_.end() ? 1'000'000 : found->second;
}

std::int64_t Ledger::fastest_rate() const {
  std::int64_t fastest = 1'000'000;
  for (const auto& [replica, rate] : rates_) fastest = std::max(fastest, rate);
  return fastest;
}

std::optional<Duration> Ledger::last_read(const std::string& target) const {
  if (!current_) return std::nullopt;
  const auto found = reads_.find({{current_->replica, current_->life}, target});
  return found == reads_.end() ? std::nullopt : std::optional(found->second);
}

namespace {

// With the stage that the status names, and the status as it was written: the controller mends what
// does not fit. Nothing, of what is no job.
Job read_job(const Json& json) {
  const kube::ObjectPtr object = codecs::decode_job(document(json));
  if (!object) return {};
  Job job = static_cast<const codecs::CachedJob&>(*object).job;
  JobStatus written = codecs::decode_status(job.spec, document(at(json, "status")));
  written.stage = job.status.stage;
  written.stages = job.status.stages;
  job.status = std::move(written);
  return job;
}

}  // namespace

// ---- What a replica sends.

void Ledger::sent(const Delivery& delivery) {
  const ApiRequest& request = delivery.request;
  if (request.method == "GET" || request.target.find("/events") != std::string::npos) return;
  const Json body = Json::parse(request.body, nullptr, false);
  const Json& meta = at(body, "metadata");
  ++checks_;
  if (is_lease(request)) {
    if (request.method == "PUT" && string_at(meta, "uid").empty()) {
      complain("S7 Precondition: a Lease is written without its UID: " + request.target);
    }
    if (is_worker_lease(request, meta)) owner_acts(delivery, {namespace_in(request.target)});
    if (request.method == "POST" && string_at(meta, "name").starts_with(kMemberPrefix)) {
      members_[string_at(at(body, "spec"), "holderIdentity")] = {delivery.replica, delivery.life};
    }
    return;
  }
  owner_acts(delivery, shard_keys_of(request, body));
  rescue_.sent(delivery, body);
  if (request.method == "POST") return;
  if (request.method == "DELETE") {
    const Json& preconditions = at(body, "preconditions");
    // What decides on a worker's pod are its Leases. A worker that drains gets nothing any more,
    // whatever its pod's version.
    const auto pod = pods_.find(string_at(preconditions, "uid"));
    const bool is_worker = pod != pods_.end() && pod->second.of_pool;
    // What decides on another controller's pod is its status, which never changes back.
    if (rescue_.knows(string_at(preconditions, "uid"))) return;
    if (string_at(preconditions, "uid").empty() ||
        (string_at(preconditions, "resourceVersion").empty() && !is_worker)) {
      complain("S7 Precondition: a deletion without UID or version: " + request.target);
    }
  } else if (is_status_write(request)) {
    const std::string uid = string_at(meta, "uid");
    const std::uint64_t version = version_number(string_at(meta, "resourceVersion"));
    if (uid.empty() || version == 0) {
      complain("S7 Precondition: a status without UID or version: " + request.target);
    }
    const auto own = own_writes_.find({{delivery.replica, delivery.life}, uid});
    if (own != own_writes_.end() && version < own->second) {
      complain("S11 NoTimeTravel: replica " + std::to_string(delivery.replica) +
               " decided on version " + std::to_string(version) + " of " + request.target +
               " after it had written " + std::to_string(own->second));
    }
  } else if (is_pod(request) && string_at(meta, "uid").empty()) {
    complain("S7 Precondition: a change of a pod without its UID: " + request.target);
  }
}

void Ledger::arrives(const Delivery& delivery) {
  current_ = &delivery;
  version_before_ = gateway_.server().version();
  if (delivery.replica >= 0 && delivery.request.method == "GET" && is_pod(delivery.request)) {
    reads_[{{delivery.replica, delivery.life}, delivery.request.target}] = scheduler_.now();
  }
}

void Ledger::handled(const Delivery& delivery, const ApiAnswer&) {
  if (delivery.replica >= 0 && delivery.request.method != "GET") second_copy(delivery);
  rescue_.handled(delivery);
  current_ = nullptr;
}

// S9: nothing happened between the two deliveries, so the second may change nothing.
void Ledger::second_copy(const Delivery& delivery) {
  if (!delivery.twice) return;
  const auto first = first_copies_.find(delivery.number);
  if (first == first_copies_.end()) {
    first_copies_[delivery.number] = gateway_.server().version();
    return;
  }
  ++checks_;
  if (first->second == version_before_ && gateway_.server().version() != version_before_) {
    complain("S9 Idempotence: a second delivery changes something: " + delivery.request.method +
             " " + delivery.request.target);
  }
  first_copies_.erase(first);
}

void Ledger::answered(const Delivery& delivery, const ApiAnswer& answer) {
  rescue_.answered(delivery, answer.status);
  if (answer.status / 100 == 2 && is_lease(delivery.request) &&
      (delivery.request.method == "PUT" || delivery.request.method == "POST")) {
    const Json body = Json::parse(delivery.request.body, nullptr, false);
    if (string_at(at(body, "metadata"), "name").starts_with(kMemberPrefix)) {
      Duration& renewal = renewals_[{delivery.replica, delivery.life}];
      renewal = std::max(renewal, delivery.sent);
    }
  }
  const bool forbids = answer.status == 403 || answer.status == 422;
  if (delivery.request.method == "DELETE" && forbids) undeletable_.insert(delivery.request.target);
  if (answer.status != 200 || !is_status_write(delivery.request)) return;
  const Json body = Json::parse(answer.body, nullptr, false);
  std::uint64_t& own =
      own_writes_[{{delivery.replica, delivery.life}, string_at(at(body, "metadata"), "uid")}];
  own = std::max(own, version_of(body));
}

// ---- What the server takes.

void Ledger::applied(const Applied& applied) {
  if (by_replica(applied) && applied.resource != "leases") ++replica_writes_;
  if (by_replica(applied)) check_written_back(applied);
  if (applied.resource == "durablejobs") {
    permits_.job_written(applied);
    lane_.durable_job_written(applied);
    job_written(applied);
  } else if (applied.resource == "jobs") {
    ++checks_;
    lane_.job_written(applied);
  } else if (applied.resource == "jobqueues") {
    ++checks_;
    permits_.queue_written(applied, by_replica(applied) ? current_ : nullptr);
  } else if (applied.resource == "pods") {
    permits_.pod_written(applied, by_replica(applied));
    rescue_.pod_written(applied, by_replica(applied));
    pod_written(applied);
  } else if (applied.resource == "workerpools") {
    if (applied.after) pool_written(*applied.after);
    // Those of the start are there before any job.
    const bool is_late = !applied.before && scheduler_.now() > Duration::zero();
    if (!applied.after || is_late) {
      once_missing_.insert(key_of(applied.after ? *applied.after : *applied.before));
    }
  } else if (applied.resource == "leases") {
    worker_lease_written(applied);
    if (!applied.after) return;
    const Json& meta = at(*applied.after, "metadata");
    if (string_at(meta, "namespace") == "kube-node-lease") {
      node_renewals_[string_at(meta, "name")].push_back(scheduler_.now());
      rescue_.node_renewed(string_at(meta, "name"));
    }
  }
}

void Ledger::job_written(const Applied& applied) {
  ++checks_;
  see_pooled(applied);
  if (!applied.before) {
    if (!at(*applied.after, "status").empty() &&
        int_at(at(*applied.after, "status"), "attempt") != 0) {
      complain("S10 Isolation: a new job begins at another attempt than 0");
    }
    jobs_[uid_of(*applied.after)] = {};
    return;
  }
  if (!applied.after) {
    job_removed(*applied.before, by_replica(applied));
    jobs_.erase(uid_of(*applied.before));
    return;
  }
  const Json& before = *applied.before;
  const Json& after = *applied.after;
  if (is_deleting(after) && !is_deleting(before)) job_removed(before, by_replica(applied));
  if (at(before, "status") == at(after, "status")) return;
  // What it writes says nothing to this version.
  if (applied.request && applied.request->user == kNewerUser) return;
  workers_.job_written(before, after);
  const Job was = read_job(before);
  const Job now = read_job(after);
  status_written({before, after, was.status, now.status, was.spec, now.spec, now.stages, now.cancel,
                  was.status.stage != now.status.stage, uid_of(after),
                  string_at(at(after, "metadata"), "name"), by_replica(applied), now.notify});
}

void Ledger::job_removed(const Json& job, bool by_replica) {
  if (!by_replica || is_deleting(job) || lane_.is_stray(job)) return;
  const Job read = read_job(job);
  const auto& ended = read.status.completion_time;
  const auto& kept_for = read.spec.ttl_after_finished;
  const bool expired = kept_for && ended && *ended + *kept_for <= wall() + kClockTolerance;
  if (!read.status.outbox.empty()) {
    complain("S23 Told: " + key_of(job) + " is deleted before its targets were told");
  }
  if (!expired) complain("S5 NoLoss: " + key_of(job) + " is deleted before its time to live ends");
}

void Ledger::data_restored() {
  restored_at_ = scheduler_.now();
  own_writes_.clear();
  permits_.data_restored();
  rescue_.data_restored();
  jobs_.clear();
  cut_off_.clear();
  gateway_.server().for_each("workerpools", [&](const Json& pool) { pool_written(pool); });
  for (auto& [uid, pod] : pods_) {
    if (pod.removed == Duration::zero()) pod.removed = scheduler_.now();
  }
  gateway_.server().for_each("durablejobs", [&](const Json& job) {
    const JobStatus status = read_job(job).status;
    JobBook& book = jobs_[uid_of(job)];
    book.failures = status.failures;
    book.disruptions = status.disruptions;
    for (const HistoryEntry& entry : status.history) book.ended.insert(entry.attempt);
    for (const Run& run : status.runs) {
      book.attempts[run.attempt].index = run.index;
      book.attempts[run.attempt].stage = status.stage;
    }
    for (const bool succeeded : {true, false}) {
      const IndexSet& over = succeeded ? status.completed : status.failed;
      for (auto index = over.next(0, {}); index; index = over.next(*index + 1, {})) {
        book.over[*index] = succeeded;
      }
    }
  });
  gateway_.server().for_each("pods", [&](const Json& pod) {
    const auto found = pods_.find(uid_of(pod));
    if (found == pods_.end()) return;
    found->second.removed = Duration::zero();
    found->second.phase = pod_phase(pod);
    if (!is_final(found->second.phase)) found->second.ended = Duration::zero();
  });
}

}  // namespace holdfast::simulation
