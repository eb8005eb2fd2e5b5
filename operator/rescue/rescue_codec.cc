#include "operator/rescue/rescue_codec.h"

#include "core/json.h"
#include "core/json_view.h"
#include "reconciler/names.h"

namespace holdfast::rescue {
namespace {

constexpr const char* kMirrorAnnotation = "kubernetes.io/config.mirror";
constexpr const char* kOutOfServiceTaint = "node.kubernetes.io/out-of-service";
// What the node controller sets when a node is silent, or not ready.
constexpr const char* kUnreachableTaint = "node.kubernetes.io/unreachable";
constexpr const char* kNotReadyTaint = "node.kubernetes.io/not-ready";

bool has_taint(const JsonView& node, const char* key, const char* effect = nullptr) {
  for (const JsonView taint : at(at(node, "spec"), "taints")) {
    const bool is_it = string_at(taint, "key") == key;
    if (is_it && (!effect || string_at(taint, "effect") == effect)) return true;
  }
  return false;
}

reconciler::PodOwner owner_of(const JsonView& meta) {
  for (const JsonView owner : at(meta, "ownerReferences")) {
    if (!bool_at(owner, "controller")) continue;
    return {string_at(owner, "apiVersion"), string_at(owner, "kind"), string_at(owner, "name"),
            string_at(owner, "uid")};
  }
  return {};
}

bool has_our_finalizer(const JsonView& meta) {
  for (const JsonView finalizer : at(meta, "finalizers")) {
    if (finalizer == reconciler::kFinalizer) return true;
  }
  return false;
}

bool has_claims(const JsonView& spec) {
  for (const JsonView volume : at(spec, "volumes")) {
    if (at(volume, "persistentVolumeClaim").is_object()) return true;
    if (at(volume, "ephemeral").is_object()) return true;
  }
  return false;
}

bool is_freed(const JsonView& status) {
  for (const JsonView condition : at(status, "conditions")) {
    if (string_at(condition, "type") == reconciler::kFreedCondition &&
        string_at(condition, "status") == "True" &&
        string_at(condition, "reason") == reconciler::kFreedReason) {
      return true;
    }
  }
  return false;
}

}  // namespace

kube::Kind rescue_pod_kind() {
  kube::Kind kind;
  kind.name = "rescue-pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.label_selector = reconciler::kRescueSelector;
  kind.decode = decode_rescue_pod;
  return kind;
}

RescuePodPtr decode_rescue_pod(const JsonView& json) {
  auto cached = std::make_shared<CachedRescuePod>();
  if (!kube::decode_meta(json, *cached)) return nullptr;
  const JsonView meta = at(json, "metadata");
  const JsonView annotations = at(meta, "annotations");
  const JsonView status = at(json, "status");
  const std::string phase = string_at(status, "phase");
  cached->created = parse_time(string_at(meta, "creationTimestamp"));
  cached->succeeded = phase == "Succeeded";
  reconciler::RescuePod& pod = cached->pod;
  pod.owner = owner_of(meta);
  pod.node = string_at(at(json, "spec"), "nodeName");
  pod.ended = phase == "Succeeded" || phase == "Failed";
  pod.freed = is_freed(status);
  cached->is_deleted = at(meta, "deletionTimestamp").is_string();
  pod.is_going = cached->is_deleted && int_at(meta, "deletionGracePeriodSeconds", -1) == 0;
  pod.ours = has_our_finalizer(meta);
  pod.is_static = at(annotations, kMirrorAnnotation).is_string();
  pod.has_claims = has_claims(at(json, "spec"));
  pod.frees_claims = string_at(annotations, reconciler::kRescueVolumesAnnotation) == "true";
  pod.window = reconciler::rescue_window(string_at(annotations, reconciler::kLostAfterAnnotation));
  return cached;
}

bool is_out_of_service(const JsonView& node) { return has_taint(node, kOutOfServiceTaint); }

bool takes_no_pods(const JsonView& node) {
  return bool_at(at(node, "spec"), "unschedulable") ||
         has_taint(node, kUnreachableTaint, "NoSchedule") ||
         has_taint(node, kNotReadyTaint, "NoSchedule");
}

std::string freeing_patch(const CachedRescuePod& pod, Duration silent, Time now) {
  const Json condition = {
      {"type", reconciler::kFreedCondition},
      {"status", "True"},
      {"reason", reconciler::kFreedReason},
      {"message", "Holdfast: node " + pod.pod.node + " has not renewed its Lease for " +
                      human_duration(silent)},
      {"lastTransitionTime", format_time(now)}};
  const Json body = {
      {"metadata", {{"uid", pod.uid}, {"resourceVersion", std::to_string(pod.version)}}},
      {"status", {{"phase", "Failed"}, {"conditions", Json::array({condition})}}}};
  return body.dump();
}

}  // namespace holdfast::rescue
