#include "tests/simulation/server/pods.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

namespace holdfast::simulation {
namespace {

bool is_dns_label(const std::string& text) {
  if (text.empty() || text.size() > 63 || text.front() == '-' || text.back() == '-') return false;
  for (const char c : text) {
    if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '-') return false;
  }
  return true;
}

void check_containers(const Json& spec, const char* list, std::set<std::string>& names,
                      Causes& causes) {
  const Json& containers = at(spec, list);
  for (std::size_t i = 0; i < containers.size(); ++i) {
    const std::string path = std::string("spec.") + list + "[" + std::to_string(i) + "].";
    const std::string name = string_at(containers[i], "name");
    if (name.empty()) {
      causes.push_back({"FieldValueRequired", path + "name", "Required value"});
    } else if (!is_dns_label(name)) {
      causes.push_back({"FieldValueInvalid", path + "name", "Invalid value: \"" + name + "\""});
    } else if (!names.insert(name).second) {
      causes.push_back({"FieldValueDuplicate", path + "name", "Duplicate value: " + name});
    }
    if (string_at(containers[i], "image").empty()) {
      causes.push_back({"FieldValueRequired", path + "image", "Required value"});
    }
  }
}

void check_choice(const Json& spec, const char* field, const std::set<std::string>& allowed,
                  Causes& causes) {
  const std::string value = string_at(spec, field);
  if (!value.empty() && !allowed.count(value)) {
    causes.push_back({"FieldValueNotSupported", std::string("spec.") + field,
                      "Unsupported value: \"" + value + "\""});
  }
}

// Without what an update of a pod's spec may change.
Json fixed_part(Json spec) {
  for (const char* list : {"containers", "initContainers"}) {
    if (!spec.contains(list)) continue;
    for (Json& container : spec[list]) container.erase("image");
  }
  spec.erase("activeDeadlineSeconds");
  spec.erase("tolerations");
  spec.erase("schedulingGates");
  return spec;
}

const Json& state_of(const Json& pod, const std::string& name) {
  static const Json* const none = new Json();
  for (const Json& status : at(at(pod, "status"), "containerStatuses")) {
    if (string_at(status, "name") == name) return at(status, "state");
  }
  return *none;
}

}  // namespace

void prepare_pod(Json& pod) {
  if (!pod.contains("spec") || !pod["spec"].is_object()) pod["spec"] = Json::object();
  Json& spec = pod["spec"];
  if (!spec.contains("restartPolicy")) spec["restartPolicy"] = "Always";
  if (!spec.contains("terminationGracePeriodSeconds")) spec["terminationGracePeriodSeconds"] = 30;
  pod["status"] = {{"phase", "Pending"}, {"qosClass", "BestEffort"}};
  if (at(spec, "schedulingGates").empty()) return;
  pod["status"]["conditions"] =
      Json::array({{{"type", "PodScheduled"},
                    {"status", "False"},
                    {"reason", "SchedulingGated"},
                    {"message", "Scheduling is blocked due to non-empty scheduling gates"},
                    {"lastProbeTime", nullptr},
                    {"lastTransitionTime", nullptr}}});
}

void prepare_pod_update(const Json& old, Json& pod) {
  // What the server filled in is not asked of clients again.
  if (!pod.contains("spec") || !pod["spec"].is_object()) return;
  for (const char* field : {"restartPolicy", "terminationGracePeriodSeconds"}) {
    if (!pod["spec"].contains(field)) pod["spec"][field] = at(at(old, "spec"), field);
  }
}

Causes validate_pod(const Json& pod) {
  Causes causes;
  const Json& spec = at(pod, "spec");
  if (at(spec, "containers").empty()) {
    causes.push_back({"FieldValueRequired", "spec.containers", "Required value"});
  }
  std::set<std::string> names;
  check_containers(spec, "containers", names, causes);
  check_containers(spec, "initContainers", names, causes);
  check_choice(spec, "restartPolicy", {"Always", "OnFailure", "Never"}, causes);
  check_choice(spec, "dnsPolicy", {"ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"},
               causes);
  if (int_at(spec, "activeDeadlineSeconds", 1) < 1) {
    causes.push_back({"FieldValueInvalid", "spec.activeDeadlineSeconds", "must be at least 1"});
  }
  return causes;
}

Causes validate_pod_update(const Json& pod, const Json& old, const std::string& subresource) {
  Causes causes;
  if (subresource.empty()) {
    if (at(pod, "spec") != at(old, "spec") &&
        fixed_part(at(pod, "spec")) != fixed_part(at(old, "spec"))) {
      causes.push_back({"FieldValueForbidden", "spec",
                        "Forbidden: pod updates may not change fields other than those allowed"});
    }
    const Json& gates = at(at(old, "spec"), "schedulingGates");
    const Json& left = at(at(pod, "spec"), "schedulingGates");
    for (std::size_t i = 0; i < left.size(); ++i) {
      const Json& gate = left[i];
      if (std::find(gates.begin(), gates.end(), gate) != gates.end()) continue;
      causes.push_back({"FieldValueForbidden",
                        "spec.schedulingGates[" + std::to_string(i) + "].name",
                        "Forbidden: only deletion is allowed, but found new scheduling gate '" +
                            string_at(gate, "name") + "'"});
    }
    return causes;
  }
  if (string_at(at(old, "spec"), "restartPolicy") != "Never") return causes;
  const Json& statuses = at(at(pod, "status"), "containerStatuses");
  for (std::size_t i = 0; i < statuses.size(); ++i) {
    const Json& before = state_of(old, string_at(statuses[i], "name"));
    if (before.contains("terminated") && !at(statuses[i], "state").contains("terminated")) {
      causes.push_back({"FieldValueForbidden",
                        "status.containerStatuses[" + std::to_string(i) + "].state",
                        "Forbidden: may not be transitioned to non-terminated state"});
    }
  }
  return causes;
}

}  // namespace holdfast::simulation
