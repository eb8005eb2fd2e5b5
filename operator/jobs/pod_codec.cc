#include "operator/jobs/pod_codec.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "core/agent_protocol.h"
#include "core/json_time.h"
#include "core/utf8.h"
#include "operator/jobs/agent_injection.h"
#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

using reconciler::ContainerView;
using reconciler::PodPhase;
using reconciler::PodView;
using reconciler::seconds;

// batch/v1's label and annotation of the pods of an Indexed job.
constexpr const char* kIndexKey = "batch.kubernetes.io/job-completion-index";
constexpr const char* kIndexVariable = "JOB_COMPLETION_INDEX";
constexpr std::size_t kTextLimit = 512;  // what a cached pod keeps of a text
constexpr std::size_t kLogBytes = 2048;  // of a container, that the kubelet takes for its message
constexpr const char* kMessagePolicy = "terminationMessagePolicy";
constexpr const char* kStageVariable = "HOLDFAST_STAGE";
constexpr const char* kResultVariable = "HOLDFAST_RESULT_";

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

// A kubelet would replace "$(NAME)" in a value. It leaves "$$" as "$".
std::string as_value(const std::string& text) {
  std::string value;
  for (const char c : text) value += c == '$' ? "$$" : std::string(1, c);
  return value;
}

std::string result_variable(std::string stage) {
  for (char& c : stage)
    c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return kResultVariable + stage;
}

void add_stage(const reconciler::Status& status, Json& variables) {
  if (status.stages.empty()) return;
  variables.push_back({{"name", kStageVariable}, {"value", status.stages[status.stage].name}});
  for (std::size_t place = 0; place < status.stage; ++place) {
    const reconciler::StageStatus& stage = status.stages[place];
    if (stage.result.empty()) continue;
    variables.push_back({{"name", result_variable(stage.name)}, {"value", as_value(stage.result)}});
  }
}

Json attempt_environment(const reconciler::Job& job, const reconciler::CreatePod& pod) {
  Json variables =
      Json::array({{{"name", "HOLDFAST_JOB_NAME"}, {"value", job.name}},
                   {{"name", "HOLDFAST_JOB_UID"}, {"value", job.uid}},
                   {{"name", "HOLDFAST_ATTEMPT"}, {"value", std::to_string(pod.attempt)}}});
  if (job.spec.indexed) {
    variables.push_back({{"name", kIndexVariable}, {"value", std::to_string(pod.run)}});
  }
  add_stage(job.status, variables);
  return variables;
}

bool sets(const Json& environment, const std::string& name) {
  return std::any_of(environment.begin(), environment.end(),
                     [&](const Json& variable) { return string_at(variable, "name") == name; });
}

// Ours replace the template's variables of the same names. Only its index stays, as in batch/v1.
void add_environment(Json& spec, const char* list, const Json& ours) {
  if (!at(spec, list).is_array()) return;
  for (Json& container : spec[list]) {
    if (!container.is_object()) continue;  // the API server will report the error
    const Json& given = at(container, "env");
    Json environment = Json::array();
    for (const Json& variable : ours) {
      if (string_at(variable, "name") == kIndexVariable && sets(given, kIndexVariable)) continue;
      environment.push_back(variable);
    }
    const Json added = environment;
    for (const Json& variable : given) {
      if (!sets(added, string_at(variable, "name"))) environment.push_back(variable);
    }
    container["env"] = std::move(environment);
  }
}

// The kubelet then puts the end of a failed container's log into its termination message, if the
// container left none.
void keep_last_words(Json& spec, const char* list) {
  if (!at(spec, list).is_array()) return;
  for (Json& container : spec[list]) {
    if (!container.is_object() || container.contains(kMessagePolicy)) continue;
    container[kMessagePolicy] = "FallbackToLogsOnError";
  }
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

namespace {

constexpr std::size_t kMostHostname = 63;  // of a DNS label

}  // namespace

Result<std::string> pod_body(const reconciler::Job& job, const std::string& pod_template,
                             const reconciler::CreatePod& pod, const std::string& agent_image,
                             const std::string& shard_label) {
  Result<Json> parsed = parse_json(pod_template);
  if (!parsed) return parsed.error();
  const Json& given = at(*parsed, "metadata");
  Json labels = without_our_keys(at(given, "labels"));
  labels[reconciler::kJobNameLabel] = job.name;
  labels[reconciler::kJobUidLabel] = job.uid;
  labels[reconciler::kShardLabel] = shard_label;
  labels[reconciler::kAttemptLabel] = std::to_string(pod.attempt);
  if (!job.status.stages.empty()) {
    labels[reconciler::kStageLabel] = job.status.stages[job.status.stage].name;
  }
  Json finalizers = finalizers_of(given);
  finalizers.push_back(reconciler::kFinalizer);
  Json meta = {{"name", pod.name},
               {"namespace", job.namespace_},
               {"labels", std::move(labels)},
               {"finalizers", std::move(finalizers)},
               {"ownerReferences", Json::array({{{"apiVersion", reconciler::kJobApiVersion},
                                                 {"kind", reconciler::kJobKind},
                                                 {"name", job.name},
                                                 {"uid", job.uid},
                                                 {"controller", true}}})}};
  Json annotations = without_our_keys(at(given, "annotations"));
  if (pod.intent) annotations[reconciler::kIntentAnnotation] = format_time_nanos(*pod.intent);
  Json spec = at(*parsed, "spec");
  if (!spec.is_object()) return make_error(ErrorCode::kInvalid, "the pod template has no spec");
  spec["restartPolicy"] = "Never";
  if (job.spec.indexed) {
    const std::string index = std::to_string(pod.run);
    meta["labels"][kIndexKey] = index;
    annotations[kIndexKey] = index;
    const bool fits = job.hostname.size() + 1 + index.size() <= kMostHostname;
    const std::string& name = job.hostname.empty() || !fits ? job.name : job.hostname;
    if (string_at(spec, "hostname").empty()) spec["hostname"] = name + "-" + index;
  }
  if (!annotations.empty()) meta["annotations"] = std::move(annotations);
  if (job.spec.heartbeat) {
    const Status injected = inject_agent(job, pod, agent_image, spec);
    if (!injected) return injected.error();
  }
  const Json environment = attempt_environment(job, pod);
  add_environment(spec, "initContainers", environment);
  add_environment(spec, "containers", environment);
  keep_last_words(spec, "initContainers");
  keep_last_words(spec, "containers");
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"metadata", std::move(meta)},
                     {"spec", std::move(spec)}};
  return body.dump();
}

Json without_our_keys(const Json& map) {
  Json kept = Json::object();
  if (!map.is_object()) return kept;
  for (const auto& [key, value] : map.items()) {
    if (!key.starts_with(reconciler::kLabelPrefix)) kept[key] = value;
  }
  return kept;
}

Json finalizers_of(const Json& template_metadata) {
  Json kept = Json::array();
  for (const Json& one : at(template_metadata, "finalizers")) {
    if (!one.is_string()) continue;
    const bool is_ours = one.get_ref<const std::string&>().starts_with(reconciler::kLabelPrefix);
    const bool is_double = std::find(kept.begin(), kept.end(), one) != kept.end();
    if (!is_ours && !is_double) kept.push_back(one);
  }
  return kept;
}

std::string bare_template_body(const std::string& pod_body) {
  const Json pod = Json::parse(pod_body);
  const Json& meta = at(pod, "metadata");
  Json inner = {{"labels", at(meta, "labels")}};
  if (meta.contains("annotations")) inner["annotations"] = at(meta, "annotations");
  const Json body = {
      {"apiVersion", "v1"},
      {"kind", "PodTemplate"},
      {"metadata", {{"name", at(meta, "name")}, {"namespace", at(meta, "namespace")}}},
      {"template", {{"metadata", std::move(inner)}, {"spec", at(pod, "spec")}}}};
  return body.dump();
}

}  // namespace holdfast::controller
