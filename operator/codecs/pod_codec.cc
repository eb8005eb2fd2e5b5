#include "operator/codecs/pod_codec.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/agent_protocol.h"
#include "core/json_time.h"
#include "core/utf8.h"
#include "reconciler/names.h"

namespace holdfast::codecs {
namespace {

using reconciler::ContainerView;
using reconciler::PodPhase;
using reconciler::PodView;
using reconciler::seconds;

constexpr std::size_t kTextLimit = 512;  // what a cached pod keeps of a text
constexpr std::size_t kLogBytes = 2048;  // of a container, that the kubelet takes for its message

// Tenants write some of these texts, and all of them may reach a status, an Event or a log.
std::string text_at(const JsonView& json, const char* key) {
  return clean_text(string_at(json, key), kTextLimit);
}

PodPhase decode_phase(const std::string& text) {
  if (text == "Running") return PodPhase::kRunning;
  if (text == "Succeeded") return PodPhase::kSucceeded;
  if (text == "Failed") return PodPhase::kFailed;
  if (text == "Unknown") return PodPhase::kUnknown;
  return PodPhase::kPending;
}

// ---- What the kubelets' reasons mean. Nothing else compares these texts.

// The kubelet found no trace of the container, so it made this end up.
bool is_made_up(const std::string& reason, int exit_code) {
  return reason == "ContainerStatusUnknown" || (reason == "Unknown" && exit_code == 255);
}

bool is_out_of_memory(const std::string& reason) { return reason == "OOMKilled"; }

// The kubelet's reason for a pod, not for a container.
bool is_out_of_time(const std::string& reason) { return reason == "DeadlineExceeded"; }

bool is_step_of_a_start(const std::string& reason) {
  return reason == "ContainerCreating" || reason == "PodInitializing";
}

bool may_restart(const JsonView& container, const std::string& pod_policy) {
  if (!at(container, "restartPolicyRules").empty()) return true;
  return string_at(container, "restartPolicy", pod_policy) != "Never";
}

// What a container leaves that succeeds may be the result of its stage. What a failed one leaves
// may be the end of its log. Its last lines matter most, and only until its end is on record.
std::string decode_message(const JsonView& terminated, bool init, bool is_open) {
  std::string text = string_at(terminated, "message");
  const bool succeeded = int_at(terminated, "exitCode") == 0;
  if (succeeded) return clean_text(text, init ? kTextLimit : reconciler::kResultLimit);
  if (text.starts_with(kFencedMark)) return clean_text(text, kTextLimit);
  // The kubelet cuts a log to so many bytes, in the middle of a line.
  const std::size_t first_end = text.size() < kLogBytes ? std::string::npos : text.find('\n');
  if (first_end < text.size() - 1) text.erase(0, first_end + 1);
  return last_lines(text, is_open ? reconciler::kOutputLimit : kTextLimit);
}

// `is_open`: the pod's end is not on record.
ContainerView decode_container(const JsonView& json, bool init, bool is_open) {
  ContainerView view;
  view.name = string_at(json, "name");
  view.init = init;
  const JsonView state = at(json, "state");
  const JsonView last = at(at(json, "lastState"), "terminated");
  const JsonView running = at(state, "running");
  const JsonView terminated = at(state, "terminated");
  const JsonView waiting = at(state, "waiting");
  view.started = running.is_object() || terminated.is_object() || last.is_object();
  if (last.is_object()) view.started_at = time_at(last, "startedAt");
  if (!view.started_at && running.is_object()) view.started_at = time_at(running, "startedAt");
  if (terminated.is_object()) {
    view.terminated.emplace();
    view.terminated->exit_code = static_cast<int>(int_at(terminated, "exitCode"));
    view.terminated->reason = text_at(terminated, "reason");
    view.terminated->message = decode_message(terminated, init, is_open);
    view.terminated->was_seen = !is_made_up(view.terminated->reason, view.terminated->exit_code);
    view.terminated->out_of_memory = is_out_of_memory(view.terminated->reason);
    view.terminated->started = time_at(terminated, "startedAt");
    view.terminated->finished = time_at(terminated, "finishedAt");
    if (!view.started_at) view.started_at = view.terminated->started;
  }
  view.waiting_reason = text_at(waiting, "reason");
  view.waiting_message = text_at(waiting, "message");
  view.being_created = is_step_of_a_start(view.waiting_reason);
  return view;
}

// A webhook may have added its own container first (e.g. a mesh's proxy). With an agent, the worker
// is the agent's container.
std::string worker_name(const JsonView& containers) {
  if (!containers.is_array() || containers.empty()) return "";
  for (const JsonView container : containers) {
    const JsonView command = at(container, "command");
    if (command.is_array() && command.size() >= 2 && command[0] == kAgentProgram &&
        command[1] == "run") {
      return string_at(container, "name");
    }
  }
  return string_at(containers[0], "name");
}

void decode_containers(const JsonView& json, PodView& pod) {
  const JsonView status = at(json, "status");
  for (const JsonView container : at(status, "initContainerStatuses")) {
    pod.containers.push_back(decode_container(container, true, pod.has_finalizer));
  }
  for (const JsonView container : at(at(json, "spec"), "initContainers")) {
    if (string_at(container, "restartPolicy") != "Always") continue;
    const std::string name = string_at(container, "name");
    for (ContainerView& view : pod.containers) view.sidecar = view.sidecar || view.name == name;
  }
  const JsonView spec = at(json, "spec");
  const std::string worker = worker_name(at(spec, "containers"));
  for (const JsonView container : at(status, "containerStatuses")) {
    pod.containers.push_back(decode_container(container, false, pod.has_finalizer));
    pod.containers.back().worker = pod.containers.back().name == worker;
  }
  // "Always" is the default of a pod's restartPolicy.
  const std::string pod_policy = string_at(spec, "restartPolicy", "Always");
  for (const char* const list : {"initContainers", "containers"}) {
    for (const JsonView container : at(spec, list)) {
      if (!may_restart(container, pod_policy)) continue;
      const std::string name = string_at(container, "name");
      for (ContainerView& view : pod.containers) {
        view.may_restart = view.may_restart || view.name == name;
      }
    }
  }
}

// After its gates are removed, a pod keeps the API server's message on them until a scheduler
// reports.
void decode_scheduled(const JsonView& condition, bool bound, PodView& pod) {
  const std::string reason = text_at(condition, "reason");
  if (bound != !pod.node_name.empty()) return;
  if (!bound && reason == "SchedulingGated" && pod.gates.empty()) return;
  pod.placed = time_at(condition, "lastTransitionTime");
  if (bound) return;
  pod.unschedulable = text_at(condition, "message");
  if (pod.unschedulable.empty())
    pod.unschedulable = reason.empty() ? "it is not scheduled" : reason;
}

// The fields that matter only while the pod has no node.
void decode_scheduling(const JsonView& spec, PodView& pod) {
  if (!pod.node_name.empty()) return;
  pod.scheduler = string_at(spec, "schedulerName");
  for (const JsonView gate : at(spec, "schedulingGates")) {
    pod.gates += (pod.gates.empty() ? "" : ", ") + string_at(gate, "name", "?");
  }
  pod.gates = clean_text(pod.gates, kTextLimit);
}

void decode_conditions(const JsonView& status, PodView& pod) {
  for (const JsonView condition : at(status, "conditions")) {
    const std::string type = string_at(condition, "type");
    const std::string value = string_at(condition, "status");
    if (type == "DisruptionTarget" && value == "True") {
      pod.disruption_target = true;
      pod.disruption_reason = text_at(condition, "reason");
    }
    if (type == "Ready") pod.ready = value == "True";
    if (type == "PodScheduled") decode_scheduled(condition, value == "True", pod);
  }
}

// A user's policy may name any condition of a failed pod.
void keep_conditions(const JsonView& status, PodView& pod) {
  constexpr std::size_t kMostConditions = 32;
  for (const JsonView condition : at(status, "conditions")) {
    if (pod.conditions.size() == kMostConditions) return;
    pod.conditions.push_back({text_at(condition, "type"), text_at(condition, "status")});
  }
}

std::int64_t decode_attempt(const std::string& text) {
  std::int64_t attempt = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), attempt);
  return error == std::errc() && end == text.data() + text.size() && attempt > 0 ? attempt : 0;
}

// A user who may write pods can put the job's UID next to another kind. The API server's policy on
// pods does not check other kinds. Such an owner is not the job.
void distrust_owner(const JsonView& meta, kube::Object& pod) {
  constexpr std::string_view kGroup = "holdfast.dev/";
  for (const JsonView owner : at(meta, "ownerReferences")) {
    const std::string kind = string_at(owner, "kind");
    if (kind == reconciler::kJobKind && string_at(owner, "apiVersion").starts_with(kGroup))
      continue;
    if (bool_at(owner, "controller")) pod.owner_uid = kind + "/" + string_at(owner, "uid");
  }
}

// The pod's own name is made from it and from the UID, and users cannot edit the name.
std::string job_in_name(const PodView& pod, const std::string& job_uid) {
  const std::size_t hash = pod.name.rfind('-');
  if (hash == std::string::npos || hash == 0) return "";
  const std::size_t number = pod.name.rfind('-', hash - 1);
  if (number == std::string::npos) return "";
  const std::string job_name = pod.name.substr(0, number);
  return reconciler::attempt_in_name(job_name, job_uid, pod.name) > 0 ? job_name : "";
}

std::string decode_job_name(const JsonView& meta, const CachedPod& pod) {
  for (const JsonView owner : at(meta, "ownerReferences")) {
    if (bool_at(owner, "controller") && string_at(owner, "kind") == reconciler::kJobKind) {
      return string_at(owner, "name");
    }
  }
  const std::string by_name = job_in_name(pod.pod, pod.pod.job_uid_label);
  return !by_name.empty() ? by_name : string_at(at(meta, "labels"), reconciler::kJobNameLabel);
}

}  // namespace

PodPtr decode_pod(const JsonView& json) {
  auto cached = std::make_shared<CachedPod>();
  if (!kube::decode_meta(json, *cached)) return nullptr;
  const JsonView meta = at(json, "metadata");
  const JsonView labels = at(meta, "labels");
  const JsonView status = at(json, "status");
  PodView& pod = cached->pod;
  pod.name = cached->name;
  pod.uid = cached->uid;
  pod.version = cached->version;
  distrust_owner(meta, *cached);
  pod.owner_uid = cached->owner_uid;
  pod.job_uid_label = string_at(labels, reconciler::kJobUidLabel);
  pod.shard_label = string_at(labels, reconciler::kShardLabel);
  pod.attempt = decode_attempt(string_at(labels, reconciler::kAttemptLabel));
  pod.intent = time_at(at(meta, "annotations"), reconciler::kIntentAnnotation);
  pod.node_name = string_at(at(json, "spec"), "nodeName");
  decode_scheduling(at(json, "spec"), pod);
  pod.phase = decode_phase(string_at(status, "phase"));
  pod.reason = text_at(status, "reason");
  pod.message = text_at(status, "message");
  pod.out_of_time = is_out_of_time(pod.reason);
  pod.created = time_at(meta, "creationTimestamp").value_or(Time{});
  pod.grace = seconds_at(at(json, "spec"), "terminationGracePeriodSeconds").value_or(pod.grace);
  pod.deletion = time_at(meta, "deletionTimestamp");
  pod.deletion_grace = seconds_at(meta, "deletionGracePeriodSeconds").value_or(seconds(0));
  for (const JsonView finalizer : at(meta, "finalizers")) {
    if (finalizer == reconciler::kFinalizer) pod.has_finalizer = true;
  }
  decode_conditions(status, pod);
  if (pod.phase == PodPhase::kFailed) keep_conditions(status, pod);
  decode_containers(json, pod);
  cached->job_name = decode_job_name(meta, *cached);
  return cached;
}

}  // namespace holdfast::codecs
