#include "tests/simulation/ledger.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "operator/jobs/job_codec.h"
#include "operator/membership/lease_codec.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "reconciler/staleness.h"
#include "tests/support/json_document.h"
#include "tests/support/run_of.h"
#include "tests/unit/reconciler/rules.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules
using JobStatus = reconciler::Status;
using std::chrono::seconds;

// No template here is wrong: only a refusal that stands for so long, in the server's time, is
// final.
constexpr seconds kFinalRefusal{100};

// As the replicas are configured.
constexpr seconds kRenewDeadline{10};
constexpr const char* kMemberPrefix = "holdfast-member-";
// From a live look at a node to the write of the verdict, at the most: its answer, two more reads.
constexpr seconds kLookTime{2};
// A replica that still acts on what a restore has undone finds out within this.
constexpr seconds kRestoreTolerance{60};

std::uint64_t number(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint64_t version_of(const Json& object) {
  return number(string_at(at(object, "metadata"), "resourceVersion"));
}

bool is_deleting(const Json& object) {
  return at(at(object, "metadata"), "deletionTimestamp").is_string();
}

std::string controller_uid(const Json& object) {
  for (const Json& owner : at(at(object, "metadata"), "ownerReferences")) {
    if (bool_at(owner, "controller")) return string_at(owner, "uid");
  }
  return "";
}

PodPhase pod_phase(const Json& pod) {
  const std::string phase = string_at(at(pod, "status"), "phase");
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  return phase == "Running" ? PodPhase::kRunning : PodPhase::kPending;
}

bool is_final(PodPhase phase) {
  return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed;
}

bool is_status_write(const ApiRequest& request) {
  return request.method == "PUT" && request.target.find("/durablejobs/") != std::string::npos &&
         request.target.ends_with("/status");
}

bool is_lease(const ApiRequest& request) {
  return request.target.find("/leases") != std::string::npos;
}

bool is_pod(const ApiRequest& request) {
  return request.target.find("/pods/") != std::string::npos;
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
    if (request.method == "POST" && string_at(meta, "name").starts_with(kMemberPrefix)) {
      members_[string_at(at(body, "spec"), "holderIdentity")] = {delivery.replica, delivery.life};
    }
    return;
  }
  owner_acts(delivery, job_uid_of(request, body));
  if (request.method == "POST") return;
  if (request.method == "DELETE") {
    const Json& preconditions = at(body, "preconditions");
    if (string_at(preconditions, "uid").empty() ||
        string_at(preconditions, "resourceVersion").empty()) {
      complain("S7 Precondition: a deletion without UID or version: " + request.target);
    }
  } else if (is_status_write(request)) {
    const std::string uid = string_at(meta, "uid");
    const std::uint64_t version = number(string_at(meta, "resourceVersion"));
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

std::string Ledger::job_uid_of(const ApiRequest& request, const Json& body) const {
  if (request.method == "POST") return controller_uid(body);
  if (!is_pod(request)) {
    const std::string uid = string_at(at(body, "metadata"), "uid");
    return uid.empty() ? string_at(at(body, "preconditions"), "uid") : uid;
  }
  const std::string pod = request.method == "DELETE" ? string_at(at(body, "preconditions"), "uid")
                                                     : string_at(at(body, "metadata"), "uid");
  const auto found = pods_.find(pod);
  return found == pods_.end() ? "" : found->second.owner_uid;
}

std::optional<Ledger::Life> Ledger::life_of(const std::string& member) const {
  const auto found = members_.find(member);
  return found == members_.end() ? std::nullopt : std::optional(found->second);
}

// S14, and S15 in truth: whoever sends a write for a job is the one whom its shard's Lease names.
void Ledger::owner_acts(const Delivery& delivery, const std::string& job_uid) {
  const Life life{delivery.replica, delivery.life};
  const std::string who = "replica " + std::to_string(delivery.replica) + " sends " +
                          delivery.request.method + " " + delivery.request.target;
  const auto renewal = renewals_.find(life);
  const auto rate = rates_.find(delivery.replica);
  const std::int64_t ppm = rate == rates_.end() ? 1'000'000 : rate->second;
  const Duration age = renewal == renewals_.end()
                           ? Duration::max()
                           : (scheduler_.now() - renewal->second) / 1'000'000 * ppm;
  if (age > kRenewDeadline) complain("S14 SelfFence: " + who + " after its renew deadline");
  if (job_uid.empty()) return;
  if (restored_at_ >= Duration::zero() && scheduler_.now() - restored_at_ < kRestoreTolerance) {
    return;
  }
  const std::string shard = controller::shard_lease_name(reconciler::shard_of(job_uid, shards_));
  const Json* const lease = gateway_.server().find("leases", "holdfast-system", shard);
  const std::string holder = lease ? string_at(at(*lease, "spec"), "holderIdentity") : "";
  const auto owner = life_of(holder);
  if (!owner || *owner != life) {
    complain("S15 Exclusion: " + who + " while " + shard + " is held by '" + holder + "'");
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
  if (answer.status / 100 == 2 && is_lease(delivery.request) &&
      (delivery.request.method == "PUT" || delivery.request.method == "POST")) {
    const Json body = Json::parse(delivery.request.body, nullptr, false);
    if (string_at(at(body, "metadata"), "name").starts_with(kMemberPrefix)) {
      Duration& renewal = renewals_[{delivery.replica, delivery.life}];
      renewal = std::max(renewal, delivery.sent);
    }
  }
  if (answer.status != 200 || !is_status_write(delivery.request)) return;
  const Json body = Json::parse(answer.body, nullptr, false);
  std::uint64_t& own =
      own_writes_[{{delivery.replica, delivery.life}, string_at(at(body, "metadata"), "uid")}];
  own = std::max(own, version_of(body));
}

// ---- What the server takes.

void Ledger::applied(const Applied& applied) {
  if (by_replica(applied) && applied.resource != "leases") ++replica_writes_;
  if (applied.resource == "durablejobs") {
    job_written(applied);
  } else if (applied.resource == "pods") {
    pod_written(applied);
  } else if (applied.after && applied.resource == "leases") {
    const Json& meta = at(*applied.after, "metadata");
    if (string_at(meta, "namespace") == "kube-node-lease") {
      node_renewals_[string_at(meta, "name")].push_back(scheduler_.now());
    }
  }
}

void Ledger::job_written(const Applied& applied) {
  ++checks_;
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
  const Spec spec = controller::decode_spec(document(at(before, "spec")));
  status_written({before, after, controller::decode_status(spec, document(at(before, "status"))),
                  controller::decode_status(spec, document(at(after, "status"))), spec,
                  uid_of(after), string_at(at(after, "metadata"), "name"), by_replica(applied)});
}

void Ledger::job_removed(const Json& job, bool by_replica) {
  if (!by_replica || is_deleting(job)) return;
  const Spec spec = controller::decode_spec(document(at(job, "spec")));
  const JobStatus status = controller::decode_status(spec, document(at(job, "status")));
  const bool expired =
      spec.ttl_after_finished && status.completion_time &&
      *status.completion_time + *spec.ttl_after_finished <= wall() + kClockTolerance;
  if (!expired) complain("S5 NoLoss: " + key_of(job) + " is deleted before its time to live ends");
}

void Ledger::status_written(const StatusWrite& write) {
  JobBook& book = jobs_[write.uid];
  const std::string job = key_of(write.after) + " (" + to_string(write.old.phase) + " -> " +
                          to_string(write.next.phase) + ")";
  if (!write.by_replica) complain("a status is written by nobody of ours: " + job);
  check_shared_metadata(write);
  const std::string why = reconciler::testing::refused_by_api(write.old, write.next);
  if (!why.empty()) complain(why + ": " + job);
  if (write.old.phase == Phase::kCancelling && write.next.phase != Phase::kCancelling &&
      write.next.phase != Phase::kCancelled) {
    complain("S12 CancelSticks: " + job);
  }
  const bool ended = write.next.history != write.old.history;
  if (ended) {
    attempt_ended(write, book);
  } else if (write.next.phase != write.old.phase && write.old.phase == Phase::kRunning &&
             write.next.phase != Phase::kFailed) {
    complain("S2 FencedOutcome: an attempt ends that is not in history: " + job);
  }
  if (write.next.attempt != write.old.attempt) attempt_started(write);
  const Condition* const failed = write.next.condition("Failed");
  if (write.next.phase == Phase::kFailed && failed && failed->reason == "PodTemplateInvalid" &&
      gateway_.pods_broken_for() < kFinalRefusal) {
    complain("L2: a passing fault of a webhook has failed " + job);
  }
  if (write.next.failures != book.failures || write.next.disruptions != book.disruptions) {
    complain("S8 Budget: what is counted are not the ended attempts of " + job);
  }
  if (write.next.phase == Phase::kSucceeded && write.old.phase != Phase::kSucceeded &&
      (!ended || write.next.history.back().outcome != Outcome::kSucceeded)) {
    complain("S2 FencedOutcome: Succeeded without an attempt that did: " + job);
  }
}

void Ledger::attempt_ended(const StatusWrite& write, JobBook& book) {
  const HistoryEntry& entry = write.next.history.back();
  const std::string what = write.name + ", attempt " + std::to_string(entry.attempt) + ", " +
                           to_string(entry.outcome) + " (" + entry.reason.text() + ")";
  if (write.old.phase != Phase::kRunning || entry.attempt != write.old.attempt) {
    complain("S2 FencedOutcome: an outcome that is not the current attempt's: " + what);
  }
  if (!book.ended.insert(entry.attempt).second) complain("S8 Budget: it ends twice: " + what);
  const Budget budget = budget_of(entry.outcome);
  if (budget == Budget::kFailures) ++book.failures;
  if (budget == Budget::kDisruptions) ++book.disruptions;
  const PodBook* truth = nullptr;
  std::string pod_uid;
  for (const auto& [uid, pod] : pods_) {
    const bool is_its = pod.made && pod.owner_uid == write.uid && pod.name == entry.pod_name &&
                        (entry.pod_uid.empty() || entry.pod_uid == uid);
    if (!is_its || (truth && pod.created <= truth->created)) continue;
    truth = &pod;
    pod_uid = uid;
  }
  if (!entry.pod_uid.empty() && !truth) {
    complain("S18 Author: the end of a pod that the operator did not make: " + what);
  }
  if (entry.outcome == Outcome::kSucceeded && (!truth || truth->phase != PodPhase::kSucceeded)) {
    complain("S2 FencedOutcome: a success that its pod did not tell: " + what);
  }
  if (entry.outcome == Outcome::kFailed && (!truth || truth->phase != PodPhase::kFailed)) {
    complain("S2 FencedOutcome: a failure that its pod did not tell: " + what);
  }
  check_loss(write, entry);
  check_heartbeat(write, entry, pod_uid);
  if (truth && current_) check_times(write, entry, pod_uid, *truth);
  // A lapse, or a shard that goes and comes back, is no reason to give up what is one's own.
  if (entry.reason == Reason::kPodNeverCreated && !truth && restored_at_ < Duration::zero() &&
      book.recorder == Life(current_->replica, current_->life)) {
    complain("S8 Budget: a replica takes its own intent for left behind: " + what);
  }
  if (!truth || entry.outcome == Outcome::kSucceeded) return;
  const auto read =
      last_read(pod_target(string_at(at(write.after, "metadata"), "namespace"), entry.pod_name));
  const bool was_there = read && (truth->removed == Duration::zero() || *read < truth->removed);
  if (truth->phase == PodPhase::kSucceeded && was_there && *read > truth->ended &&
      entry.reason != Reason::kOwnerRemoved) {
    complain("S2 FencedOutcome: a success was read and is not counted: " + what);
  }
  if (entry.reason == Reason::kPodGone && !entry.pod_uid.empty() &&
      truth->removed == Duration::zero() && read && *read > truth->created) {
    complain("an attempt is lost as PodGone though its pod is there: " + what);
  }
}

// An attempt may be called lost only when, in truth, its node did not show life for the whole
// window, and could have for at least the first look of it (what came before may be an earlier
// life's).
void Ledger::check_loss(const StatusWrite& write, const HistoryEntry& entry) {
  if (entry.reason != Reason::kNodeSilent) return;
  const Cluster::Node* const node = cluster_.node(entry.node_name);
  if (!node) return complain("an attempt is lost on node " + entry.node_name + ", which never was");
  const auto window = Duration(write.spec.lost_after) / fastest_rate() * 1'000'000;
  // As of when it was decided: the request may have been under way for long.
  const Duration decided = current_ ? current_->sent : scheduler_.now();
  const std::vector<Duration>& renewals = node_renewals_[entry.node_name];
  // What the node renews after the live look, nobody knows: other reads and the way come after it.
  const auto next = std::upper_bound(renewals.begin(), renewals.end(), decided - kLookTime);
  const Duration renewed = next == renewals.begin() ? Duration::zero() : *std::prev(next);
  const Duration trouble_end = gateway_.last_trouble_end();
  const Duration first_look =
      std::min(window, Duration(reconciler::kFirstLook) / rate() * 1'000'000);
  if (decided < trouble_end) return;
  if (decided - renewed + seconds(1) < window || decided - trouble_end + seconds(1) < first_look) {
    complain("an attempt is falsely lost: " + entry.node_name + " renewed its Lease " +
             human_duration(decided - renewed) + " ago, the API server could not be written to " +
             "until " + human_duration(decided - trouble_end) + " ago, of " +
             human_duration(write.spec.lost_after) + ": " + write.name);
  }
}

// No agent is called silent that has renewed within its Lease's duration, and no worker hung that
// has made progress within its deadline.
void Ledger::check_heartbeat(const StatusWrite& write, const HistoryEntry& entry,
                             const std::string& pod_uid) {
  const auto truth = cluster_.truth(pod_uid);
  if (!truth || !write.spec.heartbeat) return;
  const Duration decided = current_ ? current_->sent : scheduler_.now();
  const auto own = [&](Duration window) {
    return window / fastest_rate() * 1'000'000 - seconds(1);
  };
  if (entry.reason == Reason::kHolderSilent) {
    const auto next =
        std::upper_bound(truth->renewals.begin(), truth->renewals.end(), decided - kLookTime);
    const Duration renewed = next == truth->renewals.begin() ? Duration::zero() : *std::prev(next);
    if (decided - renewed < own(write.spec.heartbeat->lease_duration)) {
      complain("an attempt is falsely lost: its agent renewed its Lease " +
               human_duration(decided - renewed) + " ago: " + write.name);
    }
  }
  if (entry.reason == Reason::kNoProgress &&
      (!truth->hangs_since ||
       decided - *truth->hangs_since < own(*write.spec.heartbeat->progress_deadline))) {
    complain("an attempt is falsely called hung: " + write.name);
  }
}

void Ledger::attempt_started(const StatusWrite& write) {
  const JobStatus& next = write.next;
  const std::string what = write.name + ", attempt " + std::to_string(next.attempt);
  if (next.attempt <= write.old.attempt) complain("S3 Fence: the attempt does not rise: " + what);
  if (next.phase != Phase::kRunning) complain("S3 Fence: it rises without an attempt: " + what);
  if (next.run().pod_name != pod_name(write.name, write.uid, next.attempt)) {
    complain("S6 OnePod: another name than the attempt's: " + what);
  }
  if (write.old.phase == Phase::kRunning && next.history == write.old.history) {
    complain("S8 Budget: an attempt is replaced uncounted: " + what);
  }
  if (next.failures > write.spec.backoff_limit || next.disruptions > write.spec.disruption_limit) {
    complain("S8 Budget: it starts on an overspent budget: " + what);
  }
  if (write.spec.cancel) complain("S12 CancelSticks: an attempt of a cancelled job: " + what);
  if (write.spec.suspend) complain("L1: an attempt of a suspended job starts: " + what);
  if (is_deleting(write.before)) complain("L5: an attempt of a job that is deleted: " + what);
  jobs_[write.uid].recorder = {current_->replica, current_->life};
  if (write.spec.pod_replacement != PodReplacementPolicy::kFailed) return;
  for (const auto& [uid, pod] : pods_) {
    if (pod.owner_uid != write.uid || pod.attempt >= next.attempt || is_final(pod.phase)) continue;
    const std::string key = pod.namespace_ + "/" + pod.name;
    const Json* const object = gateway_.server().find("pods", pod.namespace_, pod.name);
    if (!object || uid_of(*object) != uid || excused_.count(key) > 0) continue;
    const std::string node = string_at(at(*object, "spec"), "nodeName");
    if (node.empty() && is_deleting(*object)) continue;
    const Cluster::Node* const host = cluster_.node(node);
    if (host && (!host->exists || host->lost_since != Duration::zero())) continue;
    const auto read = last_read(pod_target(pod.namespace_, pod.name));
    if (read && *read > pod.created) {
      complain("podReplacementPolicy Failed: it starts beside " + pod.name + ": " + what);
    }
  }
}

// ---- Pods.

void Ledger::pod_written(const Applied& applied) {
  ++checks_;
  if (!applied.before) {
    const Json& pod = *applied.after;
    PodBook book;
    book.namespace_ = string_at(at(pod, "metadata"), "namespace");
    book.name = string_at(at(pod, "metadata"), "name");
    book.owner_uid = controller_uid(pod);
    book.created = scheduler_.now();
    book.created_at = wall();
    book.gated = !at(at(pod, "spec"), "schedulingGates").empty();
    book.attempt = static_cast<std::int64_t>(
        number(string_at(at(at(pod, "metadata"), "labels"), kAttemptLabel)));
    book.made = by_replica(applied);
    pods_[uid_of(pod)] = book;
    if (by_replica(applied)) pod_created(pod);
    return;
  }
  const auto found = pods_.find(uid_of(*applied.before));
  if (found == pods_.end()) return;
  if (!applied.after) {
    found->second.removed = scheduler_.now();
  } else {
    const PodPhase phase = pod_phase(*applied.after);
    if (is_final(phase) && !is_final(found->second.phase)) found->second.ended = scheduler_.now();
    found->second.phase = phase;
    found->second.gated = !at(at(*applied.after, "spec"), "schedulingGates").empty();
    const bool bound = !string_at(at(*applied.after, "spec"), "nodeName").empty();
    if (bound && found->second.bound_at == Time{}) found->second.bound_at = wall();
  }
  if (by_replica(applied)) pod_touched(*applied.before, applied.after);
}

void Ledger::pod_created(const Json& pod) {
  const PodBook& made = pods_.at(uid_of(pod));
  const std::string what = made.namespace_ + "/" + made.name;
  const Json* owner = nullptr;
  gateway_.server().for_each("durablejobs", [&](const Json& job) {
    if (uid_of(job) == made.owner_uid) owner = &job;
  });
  // Its job may be gone by the time that a late request arrives: the collector takes it.
  if (!owner) return;
  if (string_at(at(*owner, "metadata"), "namespace") != made.namespace_) {
    complain("S13 Tenancy: a pod outside of its job's namespace: " + what);
  }
  const std::string name = string_at(at(*owner, "metadata"), "name");
  if (made.name != pod_name(name, made.owner_uid, made.attempt)) {
    complain("S6 OnePod: a pod of another name than its attempt's: " + what);
  }
  const std::int64_t attempt = int_at(at(*owner, "status"), "attempt");
  const bool of_the_future = restored_at_ >= Duration::zero() && current_->sent <= restored_at_;
  if (attempt < made.attempt && !of_the_future) {
    complain("S8 Budget: a pod exists before its attempt is recorded: " + what);
  }
  JobBook& book = jobs_[made.owner_uid];
  std::string& last = book.last_pod[made.attempt];
  // A request that was under way when the first one went may bring it back; it is fenced.
  const auto earlier = pods_.find(last);
  if (earlier != pods_.end() && excused_.count(what) == 0 &&
      earlier->second.removed <= current_->sent && restored_at_ < Duration::zero()) {
    complain("S6 OnePod: a second pod of one attempt: " + what);
  }
  last = uid_of(pod);
  pod_template_kept(*owner, Json::parse(current_->request.body, nullptr, false));
}

namespace {

void take_ours_out(Json& object, const char* list) {
  if (!object.contains(list)) return;
  Json kept = Json::array();
  for (const Json& item : object[list]) {
    const std::string name = string_at(item, "name");
    if (name != "holdfast-agent" && name != "holdfast-credentials") kept.push_back(item);
  }
  if (kept.empty()) {
    object.erase(list);
  } else {
    object[list] = kept;
  }
}

// What docs/fencing.md lists as added to the pod of a job with a heartbeat.
void take_agent_out(Json& spec) {
  take_ours_out(spec, "volumes");
  take_ours_out(spec, "initContainers");
  if (at(spec, "containers").empty()) return;
  Json& worker = spec["containers"][0];
  take_ours_out(worker, "volumeMounts");
  Json& command = worker["command"];
  if (command.size() > 3 && command[0] == "/holdfast/agent" && command[2] == "--") {
    command.erase(command.begin(), command.begin() + 3);
  }
}

}  // namespace

// S13: nothing that the template does not say, but our environment.
void Ledger::pod_template_kept(const Json& job, const Json& body) {
  Json asked = at(body, "spec");
  Json given = at(at(at(job, "spec"), "template"), "spec");
  const auto strip = [](Json& spec) {
    spec.erase("restartPolicy");
    for (const char* list : {"containers", "initContainers"}) {
      if (!spec.contains(list)) continue;
      for (Json& container : spec[list]) {
        Json kept = Json::array();
        for (const Json& variable : at(container, "env")) {
          if (!string_at(variable, "name").starts_with("HOLDFAST_")) kept.push_back(variable);
        }
        container.erase("env");
        if (!kept.empty()) container["env"] = kept;
      }
    }
  };
  if (!at(at(job, "spec"), "heartbeat").is_null()) take_agent_out(asked);
  strip(asked);
  strip(given);
  if (asked != given) complain("S13 Tenancy: a pod that is not its template's: " + key_of(body));
}

void Ledger::pod_touched(const Json& before, const Json* after) {
  const std::string what = key_of(before);
  if (after && at(*after, "spec") != at(before, "spec")) {
    complain("S13 Tenancy: a pod's spec is changed: " + what);
  }
  if (after && at(at(*after, "metadata"), "ownerReferences") !=
                   at(at(before, "metadata"), "ownerReferences")) {
    complain("S6 OnePod: a pod's owner is changed: " + what);
  }
  const std::string owner = controller_uid(before);
  const bool stopped = !after || (is_deleting(*after) && !is_deleting(before));
  const bool released =
      after && at(at(*after, "metadata"), "finalizers") != at(at(before, "metadata"), "finalizers");
  if (!stopped && !released) return;
  gateway_.server().for_each("durablejobs", [&](const Json& job) {
    const Json& status = at(job, "status");
    if (uid_of(job) != owner || is_deleting(job) || string_at(status, "phase") != "Running" ||
        string_at(run_of(status), "podName") != string_at(at(before, "metadata"), "name")) {
      return;
    }
    const auto book = pods_.find(uid_of(before));
    const std::string known = string_at(run_of(status), "podUID", uid_of(before));
    if (book == pods_.end() || !book->second.made || known != uid_of(before)) return;
    if (restored_at_ >= Duration::zero() && current_->sent <= restored_at_) return;
    complain("S2 FencedOutcome: " + what + (stopped ? " is stopped" : " is released") +
             " before the end of its attempt is recorded");
  });
}

void Ledger::data_restored() {
  restored_at_ = scheduler_.now();
  own_writes_.clear();
  jobs_.clear();
  for (auto& [uid, pod] : pods_) {
    if (pod.removed == Duration::zero()) pod.removed = scheduler_.now();
  }
  gateway_.server().for_each("durablejobs", [&](const Json& job) {
    const JobStatus status = controller::decode_status(
        controller::decode_spec(document(at(job, "spec"))), document(at(job, "status")));
    JobBook& book = jobs_[uid_of(job)];
    book.failures = status.failures;
    book.disruptions = status.disruptions;
    for (const HistoryEntry& entry : status.history) book.ended.insert(entry.attempt);
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
