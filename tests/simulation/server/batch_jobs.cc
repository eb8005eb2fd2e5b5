#include "tests/simulation/server/batch_jobs.h"

#include <algorithm>

namespace holdfast::simulation {
namespace {

constexpr const char* kUidLabel = "batch.kubernetes.io/controller-uid";
constexpr const char* kNameLabel = "batch.kubernetes.io/job-name";

bool holds(const Json& status, const char* type) {
  const Json& conditions = at(status, "conditions");
  return std::any_of(conditions.begin(), conditions.end(), [&](const Json& one) {
    return string_at(one, "type") == type && string_at(one, "status") == "True";
  });
}

// Without what may change in a suspended Job that has not started.
Json fixed_template(Json pod_template) {
  for (const char* const field : {"labels", "annotations"}) {
    if (pod_template.contains("metadata")) pod_template["metadata"].erase(field);
  }
  for (const char* const field : {"nodeSelector", "affinity", "tolerations", "schedulingGates"}) {
    if (pod_template.contains("spec")) pod_template["spec"].erase(field);
  }
  return pod_template;
}

void check_spec(const Json& spec, Causes& causes) {
  for (const char* const field :
       {"parallelism", "completions", "backoffLimit", "activeDeadlineSeconds"}) {
    if (int_at(spec, field) < 0) {
      refuse(causes, std::string("spec.") + field, "must be greater than or equal to 0");
    }
  }
  if (string_at(spec, "completionMode") == "Indexed" && at(spec, "completions").is_null()) {
    require(causes, "spec.completions", "when completion mode is Indexed");
  }
  const std::string policy = string_at(at(at(spec, "template"), "spec"), "restartPolicy");
  if (policy != "Never" && policy != "OnFailure") {
    causes.push_back({"FieldValueNotSupported", "spec.template.spec.restartPolicy",
                      "Unsupported value: \"" + policy + "\""});
  }
}

void check_change(const Json& job, const Json& old, Causes& causes) {
  const Json &spec = at(job, "spec"), &before = at(old, "spec");
  for (const char* const field : {"completions", "selector", "completionMode", "podFailurePolicy",
                                  "backoffLimitPerIndex", "managedBy", "successPolicy"}) {
    if (at(spec, field) == at(before, field)) continue;
    // An Indexed Job may become larger or smaller together with its parallelism.
    const bool is_elastic = std::string(field) == "completions" &&
                            string_at(spec, "completionMode") == "Indexed" &&
                            at(spec, "completions") == at(spec, "parallelism");
    if (!is_elastic) refuse(causes, std::string("spec.") + field, "field is immutable");
  }
  const Json &now = at(spec, "template"), &then = at(before, "template");
  const bool may_differ =
      bool_at(before, "suspend") && at(at(old, "status"), "startTime").is_null();
  if (may_differ ? fixed_template(now) != fixed_template(then) : now != then) {
    refuse(causes, "spec.template", "field is immutable");
  }
}

// What is wrong with a status by itself.
void check_batch_status(const Json& job, Causes& causes) {
  const Json& status = at(job, "status");
  const bool complete = holds(status, "Complete"), failed = holds(status, "Failed");
  const bool met = holds(status, "SuccessCriteriaMet"), target = holds(status, "FailureTarget");
  const char* const conditions = "status.conditions";
  if (complete && failed) refuse(causes, conditions, "cannot be both Complete and Failed");
  if (complete && target) refuse(causes, conditions, "a Complete Job has no FailureTarget");
  if (met && failed) refuse(causes, conditions, "a Failed Job has not met its success criteria");
  if (met && target) refuse(causes, conditions, "its success cannot be its failure");
  if (complete && !met) refuse(causes, conditions, "Complete needs SuccessCriteriaMet");
  if (failed && !target) refuse(causes, conditions, "Failed needs FailureTarget");
  const std::string started = string_at(status, "startTime");
  const std::string completed = string_at(status, "completionTime");
  if (complete && completed.empty()) {
    require(causes, "status.completionTime", "completionTime is required for Complete jobs");
  }
  if (!complete && !completed.empty()) {
    refuse(causes, "status.completionTime", "set on a Job that is not Complete");
  }
  if (!completed.empty() && completed < started) {
    refuse(causes, "status.completionTime", "before startTime");
  }
  if (complete || failed) {
    if (started.empty()) require(causes, "status.startTime", "of a finished Job");
    if (int_at(status, "active") > 0) refuse(causes, "status.active", "active>0 when finished");
    if (int_at(status, "terminating") > 0) {
      refuse(causes, "status.terminating", "terminating>0 when finished");
    }
  }
  const Json& spec = at(job, "spec");
  if (string_at(spec, "completionMode") != "Indexed" && status.contains("completedIndexes")) {
    refuse(causes, "status.completedIndexes", "of a Job that is not Indexed");
  }
  if (at(spec, "backoffLimitPerIndex").is_null() && status.contains("failedIndexes")) {
    refuse(causes, "status.failedIndexes", "without backoffLimitPerIndex");
  }
}

// What a status may not become.
void check_batch_status_change(const Json& job, const Json& old, Causes& causes) {
  const Json &status = at(job, "status"), &before = at(old, "status");
  for (const char* const type : {"Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"}) {
    if (holds(before, type) && !holds(status, type)) {
      refuse(causes, "status.conditions", std::string(type) + " cannot be taken back");
    }
  }
  const Json& spec = at(job, "spec");
  const bool is_elastic = string_at(spec, "completionMode") == "Indexed" &&
                          at(spec, "completions") == at(spec, "parallelism");
  if (int_at(status, "ready") > int_at(status, "active")) {
    refuse(causes, "status.ready", "cannot set more ready pods than active");
  }
  for (const char* const count : {"succeeded", "failed"}) {
    if (is_elastic && std::string(count) == "succeeded") continue;
    if (int_at(status, count) < int_at(before, count)) {
      refuse(causes, std::string("status.") + count, "cannot decrease");
    }
  }
  const Json& started = at(before, "startTime");
  const bool is_suspended = bool_at(at(job, "spec"), "suspend");
  if (!started.is_null() && !is_suspended && at(status, "startTime") != started) {
    require(causes, "status.startTime", "cannot change in a Job that is not suspended");
  }
  const Json& completed = at(before, "completionTime");
  if (!completed.is_null() && at(status, "completionTime") != completed) {
    refuse(causes, "status.completionTime", "completionTime cannot be mutated");
  }
}

}  // namespace

void prepare_batch_job(Json& job) {
  const std::string uid = string_at(at(job, "metadata"), "uid");
  const std::string name = string_at(at(job, "metadata"), "name");
  job["status"] = Json::object();
  if (!job.contains("spec") || !job["spec"].is_object()) job["spec"] = Json::object();
  Json& spec = job["spec"];
  if (!spec.contains("completions") && !spec.contains("parallelism")) spec["completions"] = 1;
  Json filled = {{"parallelism", 1},
                 {"backoffLimit", spec.contains("backoffLimitPerIndex") ? 2'147'483'647 : 6},
                 {"completionMode", "NonIndexed"},
                 {"suspend", false},
                 {"podReplacementPolicy",
                  spec.contains("podFailurePolicy") ? "Failed" : "TerminatingOrFailed"},
                 {"selector", {{"matchLabels", {{kUidLabel, uid}}}}}};
  filled.update(spec);
  spec = std::move(filled);
  for (const char* const label : {kUidLabel, "controller-uid"}) {
    spec["template"]["metadata"]["labels"][label] = uid;
  }
  for (const char* const label : {kNameLabel, "job-name"}) {
    spec["template"]["metadata"]["labels"][label] = name;
  }
}

Causes validate_batch_job(const Json& job, const Json* old, const std::string& subresource) {
  Causes causes;
  if (subresource == "status") {
    check_batch_status(job, causes);
    check_batch_status_change(job, *old, causes);
    return causes;
  }
  check_spec(at(job, "spec"), causes);
  if (old != nullptr) check_change(job, *old, causes);
  return causes;
}

}  // namespace holdfast::simulation
