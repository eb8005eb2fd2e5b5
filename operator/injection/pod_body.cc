#include "operator/injection/pod_body.h"

#include <algorithm>
#include <cctype>

#include "core/json_time.h"
#include "operator/injection/agent_container.h"
#include "operator/injection/agent_injection.h"
#include "reconciler/names.h"

namespace holdfast::injection {
namespace {

// batch/v1's label and annotation of the pods of an Indexed job.
constexpr const char* kIndexKey = "batch.kubernetes.io/job-completion-index";
constexpr const char* kIndexVariable = "JOB_COMPLETION_INDEX";
constexpr const char* kMessagePolicy = "terminationMessagePolicy";
constexpr const char* kStageVariable = "HOLDFAST_STAGE";
constexpr const char* kResultVariable = "HOLDFAST_RESULT_";
constexpr std::size_t kMostHostname = 63;  // of a DNS label
// Kueue lets a pod into a group only if its affinity is that of the pod that it replaces.
constexpr const char* kPodGroupLabel = "kueue.x-k8s.io/pod-group-name";
constexpr std::int64_t kMostWeight = 100;  // of a preference, in Kubernetes' API
constexpr std::int64_t kMostTerms = 10;

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
  for (std::size_t position = 0; position < status.stage; ++position) {
    const reconciler::StageStatus& stage = status.stages[position];
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

// Ours replace the template's variables of the same names. Only its index stays, as in batch/v1.
void add_environment(Json& spec, const char* list, const Json& ours) {
  if (!at(spec, list).is_array()) return;
  for (Json& container : spec[list]) {
    if (!container.is_object()) continue;  // the API server will report the error
    const Json& given = at(container, "env");
    Json environment = Json::array();
    for (const Json& variable : ours) {
      if (string_at(variable, "name") == kIndexVariable && sets_variable(given, kIndexVariable))
        continue;
      environment.push_back(variable);
    }
    const Json added = environment;
    for (const Json& variable : given) {
      if (!sets_variable(added, string_at(variable, "name"))) environment.push_back(variable);
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

// A field of the pod; null or missing: made. Null: it is something else, which the API server will
// report.
Json* made(Json* in, const char* name, const Json& empty) {
  if (!in) return nullptr;
  Json& field = (*in)[name];
  if (field.is_null()) field = empty;
  return field.type() == empty.type() ? &field : nullptr;
}

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
    const Result<> injected = inject_agent(job, pod, agent_image, spec);
    if (!injected) return injected.error();
  }
  const Json environment = attempt_environment(job, pod);
  add_environment(spec, "initContainers", environment);
  add_environment(spec, "containers", environment);
  keep_last_words(spec, "initContainers");
  keep_last_words(spec, "containers");
  prefer_other_nodes(pod.avoid, at(given, "labels"), spec);
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"metadata", std::move(meta)},
                     {"spec", std::move(spec)}};
  return body.dump();
}

void prefer_other_nodes(const std::vector<std::string>& avoid, const Json& labels, Json& spec) {
  if (avoid.empty() || labels.contains(kPodGroupLabel)) return;
  Json* const affinity = made(&spec, "affinity", Json::object());
  Json* const of_nodes = made(affinity, "nodeAffinity", Json::object());
  Json* const wishes =
      made(of_nodes, "preferredDuringSchedulingIgnoredDuringExecution", Json::array());
  if (!wishes) return;
  std::int64_t weight = 1;
  for (const Json& wish : *wishes) {
    weight += 2 * std::clamp<std::int64_t>(int_at(wish, "weight"), 0, kMostWeight);
  }
  Json others = Json::array();
  for (const std::string& node : avoid) {
    others.push_back(
        {{"key", "metadata.name"}, {"operator", "NotIn"}, {"values", Json::array({node})}});
  }
  // One that weighs more than the API allows is several.
  for (weight = std::min(weight, kMostTerms * kMostWeight); weight > 0; weight -= kMostWeight) {
    wishes->push_back(
        {{"weight", std::min(weight, kMostWeight)}, {"preference", {{"matchFields", others}}}});
  }
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

}  // namespace holdfast::injection
