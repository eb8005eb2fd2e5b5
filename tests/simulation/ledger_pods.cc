// The ledger's rules on pods: who makes them, under which names, from what, and who touches them.
#include <algorithm>
#include <charconv>

#include "reconciler/job/edges.h"
#include "reconciler/names.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules

constexpr const char* kIndexAnnotation = "batch.kubernetes.io/job-completion-index";

}  // namespace

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
    const std::string label = string_at(at(at(pod, "metadata"), "labels"), kAttemptLabel);
    std::from_chars(label.data(), label.data() + label.size(), book.attempt);
    book.made = by_replica(applied);
    book.of_pool = workers_.serves(pod);
    if (book.of_pool && book.made) check_pool_size(pod);
    pods_[uid_of(pod)] = book;
    pods_by_name_.emplace(book.name, uid_of(pod));
    if (by_replica(applied)) pod_created(pod);
    return;
  }
  const auto found = pods_.find(uid_of(*applied.before));
  if (found == pods_.end()) return;
  if (!applied.after) {
    found->second.removed = scheduler_.now();
  } else {
    if (found->second.of_pool) worker_pod_written(*applied.after);
    const PodPhase phase = pod_phase(*applied.after);
    if (is_final(phase) && !is_final(found->second.phase)) found->second.ended = scheduler_.now();
    if (found->second.phase == reconciler::PodPhase::kRunning) found->second.ran_until = wall();
    found->second.phase = phase;
    found->second.gated = !at(at(*applied.after, "spec"), "schedulingGates").empty();
    const bool bound = !string_at(at(*applied.after, "spec"), "nodeName").empty();
    if (bound && found->second.bound_at == Time{}) found->second.bound_at = wall();
  }
  if (!by_replica(applied)) return;
  if (found->second.of_pool) check_worker_deleted(*applied.before);
  pod_touched(*applied.before, applied.after);
}

// A pod that is being created belongs to the job: the job does not end before it, and does not move
// on to another stage.
void Ledger::check_not_over(const Json& job, const Json& pod) {
  const Json& status = at(job, "status");
  const auto phase = parse_phase(string_at(status, "phase"));
  if (phase && is_terminal(*phase)) {
    complain("S6 OnePod: a pod is created after the end of its job: " + key_of(pod));
  }
  const std::string stage = string_at(at(at(pod, "metadata"), "labels"), kStageLabel);
  const std::string current = string_at(status, "stage");
  if (!stage.empty() && !current.empty() && stage != current) {
    complain("S20 StageOnce: a pod of stage " + stage + " is created in stage " + current + ": " +
             key_of(pod));
  }
}

// A job or a stage is over once none of its pods runs. A pod that was asked to stop and does not
// end is given up, and so is the pod of a lost attempt.
void Ledger::check_all_stopped(const StatusWrite& write) {
  const bool ends = is_terminal(write.next.phase) && !is_terminal(write.old.phase);
  if (!write.by_replica || (!ends && !write.moves)) return;
  for (const auto& [uid, pod] : pods_) {
    if (pod.owner_uid != write.uid || !pod.made || is_final(pod.phase)) continue;
    const Json* const object = gateway_.server().find("pods", pod.namespace_, pod.name);
    if (!object || uid_of(*object) != uid || may_be_left(write, pod, *object)) continue;
    complain("a job or a stage is over, and its pod runs: " + key_of(*object));
  }
}

bool Ledger::may_be_left(const StatusWrite& write, const PodBook& pod, const Json& object) const {
  if (undeletable_.count(pod_target(pod.namespace_, pod.name)) > 0) return true;
  if (excused_.count(pod.namespace_ + "/" + pod.name) > 0) return true;
  // Of the last ten attempts, history says which were lost.
  const auto& history = write.next.history;
  const auto entry = std::find_if(history.begin(), history.end(),
                                  [&](const auto& one) { return one.attempt == pod.attempt; });
  if (entry == history.end() || entry->outcome == Outcome::kLost) return true;
  const std::string node = string_at(at(object, "spec"), "nodeName");
  const Cluster::Node* const host = cluster_.node(node);
  if (host && (!host->exists || host->lost_since != Duration::zero())) return true;
  if (!is_deleting(object)) return false;
  if (node.empty()) return true;
  const auto since = parse_time(string_at(at(object, "metadata"), "deletionTimestamp"));
  const Duration window = Duration(write.spec.lost_after) / fastest_rate() * 1'000'000;
  return since && wall() - *since + kClockTolerance >= window;
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
  // A second copy of a request is no creation of the operator's. A user may delete the job at any
  // moment.
  if (current_->copy == 0 && !of_the_future && !is_deleting(*owner)) check_not_over(*owner, pod);
  JobBook& book = jobs_[made.owner_uid];
  const auto its = book.attempts.find(made.attempt);
  const Json& index = at(at(at(pod, "metadata"), "annotations"), kIndexAnnotation);
  if (its != book.attempts.end() && index.is_string() &&
      index != std::to_string(its->second.index)) {
    complain("S6 OnePod: a pod that has another index than its run: " + what);
  }
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

// What docs/heartbeat.md lists as added to the pod of a job with a heartbeat.
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

// The wish for other nodes than these, as docs/bounds.md has it. What is left the template must say.
// No template of the simulator has an affinity.
void take_wish_out(const std::set<std::string>& lost_on, Json& spec) {
  const Json::json_pointer list(
      "/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution");
  const Json::json_pointer nodes("/0/preference/matchFields");
  if (!spec.contains(list) || !spec[list].contains(nodes)) return;
  Json fields = Json::array();
  for (const Json& field : spec[list][nodes]) {
    const Json& node = at(field, "values");
    if (node.size() != 1 || !lost_on.contains(node[0].get<std::string>())) return;
    fields.push_back({{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", node}});
  }
  Json alone;
  alone[list] = {{{"weight", 1}, {"preference", {{"matchFields", fields}}}}};
  if (spec["affinity"] == alone["affinity"]) spec.erase("affinity");
}

}  // namespace

// S13: nothing that the template does not say, but our environment, where a container's last words
// come from, and a wish for other nodes than those of its lost attempts.
void Ledger::pod_template_kept(const Json& job, const Json& body) {
  Json asked = at(body, "spec");
  const std::string stage = string_at(at(at(body, "metadata"), "labels"), reconciler::kStageLabel);
  Json what = at(job, "spec");
  for (const Json& one : at(at(job, "spec"), "stages")) {
    if (string_at(one, "name") == stage) what = one;
  }
  Json given = at(at(what, "template"), "spec");
  const auto strip = [](Json& spec) {
    spec.erase("restartPolicy");
    spec.erase("hostname");
    for (const char* list : {"containers", "initContainers"}) {
      if (!spec.contains(list)) continue;
      for (Json& container : spec[list]) {
        Json kept = Json::array();
        for (const Json& variable : at(container, "env")) {
          const std::string name = string_at(variable, "name");
          const bool ours = name.starts_with("HOLDFAST_") || name == "JOB_COMPLETION_INDEX";
          if (!ours) kept.push_back(variable);
        }
        container.erase("env");
        if (!kept.empty()) container["env"] = kept;
        container.emplace("terminationMessagePolicy", "FallbackToLogsOnError");
      }
    }
  };
  if (!at(what, "heartbeat").is_null()) take_agent_out(asked);
  take_wish_out(lost_on_[uid_of(job)], asked);
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
  const std::string name = string_at(at(before, "metadata"), "name");
  const auto book = pods_.find(uid_of(before));
  if (book == pods_.end() || !book->second.made) return;
  if (restored_at_ >= Duration::zero() && current_->sent <= restored_at_) return;
  gateway_.server().for_each("durablejobs", [&](const Json& job) {
    const Json& status = at(job, "status");
    if (uid_of(job) != owner || is_deleting(job) || string_at(status, "phase") != "Running") return;
    for (const Json& run : at(status, "runs")) {
      if (string_at(run, "podName") != name || run.contains("nextAttemptTime")) continue;
      if (string_at(run, "podUID", uid_of(before)) != uid_of(before)) continue;
      complain("S2 FencedOutcome: " + what + (stopped ? " is stopped" : " is released") +
               " before the end of its attempt is recorded");
    }
  });
}

}  // namespace holdfast::simulation
