#include "operator/pools/worker_pod.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <system_error>
#include <utility>

#include "core/agent_protocol.h"
#include "operator/codecs/pod_codec.h"
#include "operator/injection/agent_container.h"
#include "operator/injection/pod_body.h"
#include "reconciler/names.h"

namespace holdfast::pools {
namespace {

constexpr injection::AgentUser kPoolUser{"the pool", ""};
constexpr const char* kSlotsVariable = "HOLDFAST_SLOTS";
constexpr const char* kDurationVariable = "HOLDFAST_LEASE_DURATION_SECONDS";
constexpr std::int64_t kDefaultGraceSeconds = 30;  // Kubernetes' own

Json settings(const WorkerPool& pool, const std::string& pod_name, const Json& spec) {
  const std::int64_t grace = int_at(spec, "terminationGracePeriodSeconds", kDefaultGraceSeconds);
  return Json::array(
      {injection::variable("HOLDFAST_WORKER_POOL", pool.name),
       injection::variable("HOLDFAST_LEASE_NAMESPACE", pool.namespace_),
       injection::variable("HOLDFAST_POD_NAME", pod_name), injection::pod_uid_variable(),
       injection::variable(kDurationVariable, std::to_string(pool.spec.lease_duration.count())),
       injection::variable(kSlotsVariable, std::to_string(pool.spec.slots)),
       injection::variable("HOLDFAST_STOP_GRACE_SECONDS",
                           std::to_string(pool.spec.stop_grace.count())),
       injection::variable("HOLDFAST_POD_GRACE_SECONDS", std::to_string(grace)),
       injection::variable("HOLDFAST_SLOTS_FOLDER", kSlotsFolder)});
}

// Users can edit labels and annotations, but not a pod's environment.
std::optional<std::int64_t> setting_in(const JsonView& container, const char* variable) {
  for (const JsonView one : at(container, "env")) {
    if (string_at(one, "name") != variable) continue;
    const std::string text = string_at(one, "value");
    std::int64_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    return read.ec == std::errc() ? std::optional(value) : std::nullopt;
  }
  return std::nullopt;
}

bool runs_agent(const JsonView& container) {
  const JsonView command = at(container, "command");
  return command.size() >= 2 && command[0] == kAgentProgram && command[1] == "serve";
}

// As the agent reads it. A webhook may have wrapped the agent's command, or added containers. Then
// all containers with such a setting may be the agent's, and the greatest duration is the safe one.
std::optional<std::int64_t> setting_of(const JsonView& spec, const char* variable) {
  std::optional<std::int64_t> greatest;
  for (const JsonView container : at(spec, "containers")) {
    const auto value = setting_in(container, variable);
    if (runs_agent(container)) return value;
    if (value) greatest = std::max(greatest.value_or(*value), *value);
  }
  return greatest;
}

// Empty: not known, because a webhook has wrapped the command and several containers have settings.
std::string agent_name(const JsonView& spec) {
  std::vector<std::string> names;
  for (const JsonView container : at(spec, "containers")) {
    if (runs_agent(container)) return string_at(container, "name");
    if (setting_in(container, kDurationVariable)) names.push_back(string_at(container, "name"));
  }
  return names.size() == 1 ? names.front() : "";
}

// How the agent's container ended, as its kubelet saw it; null: it may run.
const reconciler::Terminated* agent_end(const reconciler::PodView& pod, const std::string& agent) {
  for (const reconciler::ContainerView& one : pod.containers) {
    if (one.init || one.name != agent || one.may_restart) continue;
    if (one.terminated && one.terminated->was_seen) return &*one.terminated;
  }
  return nullptr;
}

constexpr int kSigkillExit = 137;

std::int64_t slots_of(const JsonView& spec) {
  return std::clamp<std::int64_t>(setting_of(spec, kSlotsVariable).value_or(1), 1,
                                  reconciler::kMaxSlots);
}

// Not known: the longest one, because its processes may run for so long.
std::chrono::seconds duration_of(const JsonView& spec) {
  const std::int64_t given = setting_of(spec, kDurationVariable).value_or(0);
  return std::chrono::seconds(given < 1 ? reconciler::kMaxLeaseSeconds
                                        : std::min(given, reconciler::kMaxLeaseSeconds));
}

const reconciler::ContainerView* stuck_container(const reconciler::PodView& pod) {
  for (const reconciler::ContainerView& one : pod.containers) {
    if (!one.waiting_reason.empty() && !one.being_created) return &one;
  }
  return nullptr;
}

std::string joined(const std::string& reason, const std::string& message) {
  if (reason.empty() || message.empty()) return reason + message;
  return reason + ": " + message;
}

std::string why_ended(const reconciler::PodView& pod) {
  const std::string said = joined(pod.reason, pod.message);
  if (!said.empty()) return said;
  for (const reconciler::ContainerView& one : pod.containers) {
    if (!one.terminated || one.terminated->exit_code == 0) continue;
    return joined("its container " + one.name + " ended with exit code " +
                      std::to_string(one.terminated->exit_code),
                  joined(one.terminated->reason, one.terminated->message));
  }
  return "it ended before it served";
}

std::string trouble_of(const reconciler::PodView& pod, bool ended) {
  if (ended) return why_ended(pod);
  if (const reconciler::ContainerView* const stuck = stuck_container(pod)) {
    return joined(stuck->waiting_reason, stuck->waiting_message);
  }
  if (!pod.gates.empty()) return "its scheduling waits for " + pod.gates;
  return pod.unschedulable.empty() ? "" : "it has no node: " + pod.unschedulable;
}

std::string pool_that_owns(const JsonView& meta) {
  for (const JsonView owner : at(meta, "ownerReferences")) {
    if (bool_at(owner, "controller") && string_at(owner, "kind") == reconciler::kPoolKind &&
        string_at(owner, "apiVersion") == reconciler::kJobApiVersion) {
      return string_at(owner, "name");
    }
  }
  return "";
}

}  // namespace

std::string worker_hash(const std::string& pod_template, const reconciler::PoolSpec& spec) {
  std::string text = pod_template + "\n" + std::to_string(spec.slots) + "\n" +
                     std::to_string(spec.lease_duration.count());
  // The usual one adds nothing: workers that an older version made stay.
  if (spec.stop_grace != reconciler::PoolSpec().stop_grace) {
    text += "\n" + std::to_string(spec.stop_grace.count());
  }
  std::uint64_t hash = reconciler::mixed(reconciler::hash64(text));
  std::string digits(16, '0');
  for (std::size_t i = digits.size(); i-- > 0; hash /= 16)
    digits[i] = "0123456789abcdef"[hash % 16];
  return digits;
}

std::string worker_name(const std::string& pool, const std::string& pool_uid, std::int64_t number) {
  return reconciler::pod_name(pool, pool_uid, number);
}

std::vector<std::string> free_worker_names(const std::string& pool, const std::string& pool_uid,
                                           const std::set<std::string>& taken, std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t number = 1; static_cast<std::int64_t>(names.size()) < count; ++number) {
    std::string name = worker_name(pool, pool_uid, number);
    if (taken.count(name) == 0) names.push_back(std::move(name));
  }
  return names;
}

Result<std::string> worker_pod_body(const WorkerPool& pool, const std::string& pod_template,
                                    const std::string& pod_name, const std::string& agent_image) {
  const Result<Json> parsed = parse_json(pod_template);
  if (!parsed) return parsed.error();
  Json spec = at(*parsed, "spec");
  if (!spec.is_object()) {
    return make_error(ErrorCode::kInvalid, "spec.template has no spec: add one");
  }
  const Result<> injected =
      injection::add_agent({kPoolUser,
                            "serve",
                            agent_image,
                            settings(pool, pod_name, spec),
                            {"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT",
                             "HOLDFAST_CREDENTIALS", "HOLDFAST_TERMINATION_LOG"}},
                           spec);
  if (!injected) return injected.error();
  spec["restartPolicy"] = "Never";
  const Json& given = at(*parsed, "metadata");
  injection::prefer_other_nodes(pool.avoid, at(given, "labels"), spec);
  Json labels = injection::without_our_keys(at(given, "labels"));
  labels[reconciler::kWorkerPoolLabel] = pool.name;
  labels[reconciler::kWorkerHashLabel] = pool.hash;
  Json meta = {{"name", pod_name},
               {"namespace", pool.namespace_},
               {"labels", std::move(labels)},
               {"ownerReferences", pool_owner(pool)}};
  Json annotations = injection::without_our_keys(at(given, "annotations"));
  if (!annotations.empty()) meta["annotations"] = std::move(annotations);
  Json finalizers = injection::finalizers_of(given);
  if (!finalizers.empty()) meta["finalizers"] = std::move(finalizers);
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "Pod"},
                     {"metadata", std::move(meta)},
                     {"spec", std::move(spec)}};
  return body.dump();
}

Json pool_owner(const WorkerPool& pool) {
  return Json::array({{{"apiVersion", reconciler::kJobApiVersion},
                       {"kind", reconciler::kPoolKind},
                       {"name", pool.name},
                       {"uid", pool.uid},
                       {"controller", true}}});
}

kube::Kind worker_pod_kind() {
  kube::Kind kind;
  kind.name = "workerpods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.label_selector = reconciler::kWorkerPoolLabel;
  kind.decode = decode_worker_pod;
  return kind;
}

WorkerPodPtr decode_worker_pod(const JsonView& json) {
  const JsonView meta = at(json, "metadata");
  const auto decoded = codecs::decode_pod(json);
  const std::string pool_name = pool_that_owns(meta);
  if (!decoded || pool_name.empty()) return nullptr;
  auto cached = std::make_shared<CachedWorkerPod>();
  if (!kube::decode_meta(json, *cached)) return nullptr;
  const reconciler::PodView& pod = decoded->pod;
  cached->pool_name = pool_name;
  reconciler::WorkerPod& worker = cached->worker;
  worker.name = cached->name;
  worker.uid = cached->uid;
  worker.created = pod.created;
  worker.node = pod.node_name;
  worker.hash = string_at(at(meta, "labels"), reconciler::kWorkerHashLabel);
  worker.slots = slots_of(at(json, "spec"));
  cached->lease_duration = duration_of(at(json, "spec"));
  worker.deleting = pod.deletion.has_value();
  if (pod.deletion) worker.deleted = *pod.deletion - pod.deletion_grace;
  const reconciler::Terminated* const end = agent_end(pod, agent_name(at(json, "spec")));
  worker.ended = pod.ended() || end;
  worker.failed = pod.phase == reconciler::PodPhase::kFailed || (end && end->exit_code != 0);
  worker.cannot_start = !worker.ended && stuck_container(pod) != nullptr;
  worker.trouble = trouble_of(pod, worker.ended);
  cached->dead =
      end || (pod.ended() && !pod.containers.empty() &&
              std::all_of(pod.containers.begin(), pod.containers.end(), [](const auto& one) {
                return one.terminated && one.terminated->was_seen;
              }));
  // The word alone proves little: it may be about one process that the container has outlived.
  worker.out_of_memory = end && end->out_of_memory && end->exit_code == kSigkillExit;
  if (pod.deletion) cached->end = PodEnd{*pod.deletion, pod.deletion_grace};
  cached->placement = pod.placement();
  cached->placed = pod.placed;
  return cached;
}

}  // namespace holdfast::pools
