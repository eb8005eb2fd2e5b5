// The CEL rules of the DurableJob's definition, in its order.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "tests/simulation/server/job_schema.h"

namespace holdfast::simulation {
namespace {

void forbid(Causes& causes, const char* field, const char* message) {
  causes.push_back({"FieldValueForbidden", field, std::string("Forbidden: ") + message});
}

void require(Causes& causes, const char* field, const char* message) {
  causes.push_back({"FieldValueRequired", field, std::string("Required value: ") + message});
}

void refuse(Causes& causes, const char* field, const char* message) {
  causes.push_back({"FieldValueInvalid", field, std::string("Invalid value: ") + message});
}

bool is_terminal(const std::string& phase) {
  return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
}

bool is_first(const std::string& phase) {
  return phase == "Pending" || phase == "Running" || phase == "Suspended" || phase == "Failed" ||
         phase == "Cancelled";
}

bool is_edge(const std::string& from, const std::string& to) {
  static const auto* const edges = new std::map<std::string, std::set<std::string>>{
      {"Pending", {"Running", "Suspended", "Cancelling", "Cancelled", "Failed"}},
      {"Running", {"Backoff", "Suspended", "Cancelling", "Succeeded", "Failed"}},
      {"Backoff", {"Running", "Suspended", "Cancelling", "Cancelled", "Failed"}},
      {"Suspended", {"Pending", "Cancelling", "Cancelled", "Failed"}},
      {"Cancelling", {"Cancelled"}}};
  const auto found = edges->find(from);
  return from == to || (found != edges->end() && found->second.count(to) > 0);
}

std::vector<std::string> names_of(const Json& containers) {
  std::vector<std::string> names;
  for (const Json& container : containers) names.push_back(string_at(container, "name"));
  return names;
}

void check_name(const Json& job, Causes& causes) {
  const std::string name = string_at(at(job, "metadata"), "name");
  if (name.size() > 63) refuse(causes, "metadata.name", "the name is too long");
  if (name.find('.') != std::string::npos) {
    refuse(causes, "metadata.name", "the name must not contain dots");
  }
}

// Lists that are maps by name are equal in any order.
bool same_in_any_order(const Json& spec, const Json& old) {
  if (spec == old) return true;
  const auto sorted = [](Json json) {
    Json& pod = json["template"]["spec"];
    for (const char* list : {"containers", "initContainers"}) {
      if (!pod.contains(list)) continue;
      std::sort(pod[list].begin(), pod[list].end(), [](const Json& a, const Json& b) {
        return string_at(a, "name") < string_at(b, "name");
      });
    }
    return json;
  };
  return sorted(spec) == sorted(old);
}

void check_spec_change(const Json& spec, const Json& old, Causes& causes) {
  const Json& pod = at(at(spec, "template"), "spec");
  const Json& old_pod = at(at(old, "template"), "spec");
  if (at(spec, "template") != at(old, "template")) {
    forbid(causes, "spec.template", "the template is immutable");
  }
  if (names_of(at(pod, "containers")) != names_of(at(old_pod, "containers")) ||
      names_of(at(pod, "initContainers")) != names_of(at(old_pod, "initContainers"))) {
    forbid(causes, "spec.template", "the template is immutable");
  }
  if (at(spec, "heartbeat") != at(old, "heartbeat")) {
    forbid(causes, "spec.heartbeat", "the heartbeat is immutable");
  }
  if (bool_at(old, "cancel") && !bool_at(spec, "cancel")) {
    forbid(causes, "spec.cancel", "cancel is one way");
  }
}

void check_spec(const Json& spec, Causes& causes) {
  const Json& pod = at(at(spec, "template"), "spec");
  const Json& heartbeat = at(spec, "heartbeat");
  if (heartbeat.is_object()) {
    const Json& containers = at(pod, "containers");
    if (containers.empty() || at(containers[0], "command").empty()) {
      refuse(causes, "spec.heartbeat", "heartbeat needs the command of the first container");
    }
    if (bool_at(pod, "shareProcessNamespace")) {
      refuse(causes, "spec.heartbeat", "heartbeat does not go with a shared process namespace");
    }
    if (heartbeat.contains("progressDeadlineSeconds") &&
        int_at(heartbeat, "progressDeadlineSeconds") < int_at(heartbeat, "leaseDurationSeconds")) {
      refuse(causes, "spec.heartbeat",
             "progressDeadlineSeconds must be at least leaseDurationSeconds");
    }
  }
  if (string_at(pod, "restartPolicy", "Never") != "Never") {
    refuse(causes, "spec.template.spec.restartPolicy", "restartPolicy must be Never");
  }
  const Json& backoff = at(spec, "retryBackoff");
  if (int_at(backoff, "maxSeconds") < int_at(backoff, "initialSeconds")) {
    refuse(causes, "spec.retryBackoff", "maxSeconds must be at least initialSeconds");
  }
}

void check_status(const Json& status, Causes& causes) {
  const bool ended = is_terminal(string_at(status, "phase"));
  const bool completed = status.contains("completionTime");
  const bool waits = status.contains("waiting");
  if (ended && !completed) {
    require(causes, "status.completionTime", "a phase that ends the job needs completionTime");
  }
  if (!ended && completed) {
    forbid(
        causes, "status.completionTime",
        "completionTime is for Succeeded, Failed and Cancelled: leave it out until the job ends");
  }
  if (!ended && !waits) {
    require(causes, "status.waiting", "a job that has not ended must say what it waits for");
  }
  if (ended && waits) {
    forbid(causes, "status.waiting", "a job that has ended waits for nothing");
  }
}

void check_status_change(const Json& status, const Json& old, Causes& causes) {
  const std::string from = string_at(old, "phase");
  if (!is_edge(from, string_at(status, "phase"))) {
    forbid(causes, "status.phase", "this change of phase is not legal");
  }
  if (int_at(status, "attempt") < int_at(old, "attempt")) {
    forbid(causes, "status.attempt", "attempt is the fencing token and never falls");
  }
  if (int_at(status, "failures") < int_at(old, "failures")) {
    forbid(causes, "status.failures", "failures never fall");
  }
  if (int_at(status, "disruptions") < int_at(old, "disruptions")) {
    forbid(causes, "status.disruptions", "disruptions never fall");
  }
  if (old.contains("startTime") && at(status, "startTime") != old["startTime"]) {
    forbid(causes, "status.startTime", "startTime never changes once it is set");
  }
  if (old.contains("completionTime") && at(status, "completionTime") != old["completionTime"]) {
    forbid(causes, "status.completionTime", "completionTime never changes once it is set");
  }
  if (!is_terminal(from)) return;
  bool same = status.contains("startTime") == old.contains("startTime");
  for (const char* field : {"attempt", "failures", "disruptions", "podName", "nodeName",
                            "attemptStartTime", "nextAttemptTime", "suspendedSeconds", "history"}) {
    same = same && at(status, field) == at(old, field);
  }
  if (!same) forbid(causes, "status", "the job has ended and its status is final");
}

}  // namespace

void check_job_rules(const Json& job, const Json* old, Causes& causes) {
  check_name(job, causes);
  const Json& status = at(job, "status");
  const Json& old_status = old == nullptr ? Json() : at(*old, "status");
  if (old != nullptr && old_status.is_object() && !status.is_object()) {
    forbid(causes, "status", "status must not be removed once it is set");
  }
  if (old != nullptr && status.is_object() && !old_status.is_object() &&
      !is_first(string_at(status, "phase"))) {
    forbid(causes, "status.phase",
           "the first phase is Pending, Running, Suspended, Failed or Cancelled");
  }
  if (old != nullptr) check_spec_change(at(job, "spec"), at(*old, "spec"), causes);
  // A rule without a past is not asked again of what is the same, in whatever order.
  if (old == nullptr || !same_in_any_order(at(job, "spec"), at(*old, "spec"))) {
    check_spec(at(job, "spec"), causes);
  }
  if (!status.is_object()) return;
  check_status(status, causes);
  if (old_status.is_object()) check_status_change(status, old_status, causes);
}

}  // namespace holdfast::simulation
