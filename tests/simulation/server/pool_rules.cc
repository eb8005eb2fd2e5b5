// The CEL rules of the WorkerPool's definition, and those of a DurableJob that runs in a pool.
#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "tests/simulation/server/custom_schema.h"

namespace holdfast::simulation {
namespace {

constexpr std::int64_t kLeastGrace = 10;
constexpr std::int64_t kMostGrace = 3600;
constexpr std::size_t kMostPayload = 65536;
// Of heartbeat.leaseDurationSeconds, if it is left out.
constexpr std::int64_t kUsualLease = 30;

bool ends_the_job(const std::string& phase) {
  return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
}

void check_pool_place(const Json& place, const std::string& path, Causes& causes) {
  static const auto* const name = new std::regex("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$");
  if (!place.is_object()) return;
  if (!std::regex_search(string_at(place, "name"), *name)) {
    refuse(causes, path + ".name", "this cannot be the name of a WorkerPool");
  }
  if (place.contains("key") && string_at(place, "key").empty()) {
    refuse(causes, path + ".key", "the key is empty");
  }
}

// A stage, or the job's own spec.
using Part = const Json*;

bool has(Part part, const char* field) { return part->contains(field); }

bool fits_heartbeat(Part part) {
  const Json& heartbeat = at(*part, "heartbeat");
  if (!heartbeat.contains("progressDeadlineSeconds") || has(part, "workerPool")) return true;
  return heartbeat.contains("leaseDurationSeconds") ||
         int_at(heartbeat, "progressDeadlineSeconds") >= kUsualLease;
}

bool fits_policy(Part part) {
  const Json& rules = at(at(*part, "podFailurePolicy"), "rules");
  return !has(part, "workerPool") || std::all_of(rules.begin(), rules.end(), [](const Json& rule) {
    return rule.contains("onExitCodes") && !at(rule, "onExitCodes").contains("containerName");
  });
}

bool asks_for_a_pod(const Json& part) {
  return part.contains("scheduleDeadlineSeconds") ||
         string_at(part, "podReplacementPolicy") == "Failed";
}

void check_stage_places(const Json& spec, Causes& causes) {
  const Json& stages = at(spec, "stages");
  std::size_t index = 0;
  for (const Json& stage : stages) {
    const std::string here = "spec.stages[" + std::to_string(index++) + "]";
    check_pool_place(at(stage, "workerPool"), here + ".workerPool", causes);
  }
}

}  // namespace

void check_restarts(const Json& pod, Causes& causes) {
  if (string_at(pod, "restartPolicy", "Never") != "Never") {
    refuse(causes, "spec.template.spec.restartPolicy", "restartPolicy must be Never");
  }
  for (const std::string list : {"containers", "initContainers"}) {
    const std::string path = "spec.template.spec." + list + "[";
    std::size_t index = 0;
    for (const Json& container : at(pod, list.c_str())) {
      const std::string here = path + std::to_string(index++) + "]";
      const std::string policy = string_at(container, "restartPolicy");
      if (!policy.empty() && (list == "containers" || policy != "Always")) {
        refuse(causes, here + ".restartPolicy", "containers do not restart in place");
      }
      if (container.contains("restartPolicyRules")) {
        refuse(causes, here + ".restartPolicyRules", "containers do not restart");
      }
    }
  }
}

void check_pool_rules(const Json& pool, Causes& causes) {
  const std::string name = string_at(at(pool, "metadata"), "name");
  if (name.size() > 63 || name.find('.') != std::string::npos) {
    refuse(causes, "metadata.name", "the name has at most 63 characters and no dots");
  }
  const Json& spec = at(pool, "spec");
  if (int_at(spec, "minWorkers") > int_at(spec, "maxWorkers")) {
    refuse(causes, "spec.minWorkers", "minWorkers must be at most maxWorkers");
  }
  const Json& pod = at(at(spec, "template"), "spec");
  const Json& containers = at(pod, "containers");
  if (containers.empty() || at(containers[0], "command").empty()) {
    refuse(causes, "spec.template", "a worker needs the command of its first container");
  }
  if (bool_at(pod, "shareProcessNamespace")) {
    refuse(causes, "spec.template", "a worker does not go with a shared process namespace");
  }
  const std::int64_t grace = int_at(pod, "terminationGracePeriodSeconds", kLeastGrace);
  if (grace < kLeastGrace || grace > kMostGrace) {
    refuse(causes, "spec.template", "terminationGracePeriodSeconds is from 10 to 3600");
  }
  check_restarts(pod, causes);
}

void check_job_in_pool(const Json& job, bool is_new, bool template_may_differ, Causes& causes) {
  const Json& spec = at(job, "spec");
  check_pool_place(at(spec, "workerPool"), "spec.workerPool", causes);
  if (template_may_differ && spec.contains("template") == spec.contains("workerPool")) {
    refuse(causes, "spec.template", "a job has either a template or a workerPool");
  }
  const Json& stages = at(spec, "stages");
  if (spec.contains("workerPool") && asks_for_a_pod(spec)) {
    refuse(causes, "spec.workerPool", "these fields are about the attempt's own pod");
  }
  const bool any_pool = std::any_of(stages.begin(), stages.end(),
                                    [](const Json& stage) { return stage.contains("workerPool"); });
  if (spec.contains("message") && !spec.contains("workerPool") && !any_pool) {
    refuse(causes, "spec.message", "message needs a workerPool");
  }
  if (!is_new) return;
  check_stage_places(spec, causes);
  std::vector<Part> parts{&spec};
  for (const Json& stage : stages) parts.push_back(&stage);
  const auto all = [&](auto fits) { return std::all_of(parts.begin(), parts.end(), fits); };
  const auto stages_all = [&](auto fits) {
    return std::all_of(stages.begin(), stages.end(), fits);
  };
  if (!stages_all([](const Json& stage) {
        return stage.contains("template") != stage.contains("workerPool");
      })) {
    refuse(causes, "spec.stages", "a stage has either a template or a workerPool");
  }
  if (!all([](Part part) { return !has(part, "payload") || has(part, "workerPool"); })) {
    refuse(causes, "spec.payload", "payload needs workerPool beside it");
  }
  if (!all([](Part part) { return string_at(*part, "payload").size() <= kMostPayload; })) {
    refuse(causes, "spec.payload", "the payload has more than 65536 bytes");
  }
  if (!all([](Part part) {
        return !has(part, "workerPool") || !at(*part, "heartbeat").contains("leaseDurationSeconds");
      })) {
    refuse(causes, "spec.heartbeat", "with workerPool the pool's leaseDurationSeconds counts");
  }
  if (!all(fits_heartbeat)) {
    refuse(causes, "spec.heartbeat", "progressDeadlineSeconds is at least leaseDurationSeconds");
  }
  if (!all(fits_policy)) {
    refuse(causes, "spec.podFailurePolicy.rules", "with workerPool there is no pod");
  }
  if (!stages_all([](const Json& stage) {
        return !stage.contains("workerPool") || !asks_for_a_pod(stage);
      })) {
    refuse(causes, "spec.stages", "these fields are about the attempt's own pod");
  }
}

void check_pool_changes(const Json& job, const Json& old, Causes& causes) {
  const Json& spec = at(job, "spec");
  const Json& old_spec = at(old, "spec");
  if (at(spec, "workerPool") != at(old_spec, "workerPool")) {
    forbid(causes, "spec.workerPool", "the workerPool is immutable");
  }
  if (at(spec, "payload") != at(old_spec, "payload")) {
    forbid(causes, "spec.payload", "the payload is immutable");
  }
  if (ends_the_job(string_at(at(old, "status"), "phase")) &&
      at(spec, "message") != at(old_spec, "message")) {
    forbid(causes, "spec.message", "the job has ended, and nothing reads its message any more");
  }
}

// Of a job with one run. `place`: the field that names it.
void check_place_stays(const Json& status, const Json& old, const char* place, Causes& causes) {
  const Json& runs = at(status, "runs");
  const Json& old_runs = at(old, "runs");
  if (runs.size() != 1 || old_runs.size() != 1 || !old_runs[0].contains(place)) return;
  if (int_at(runs[0], "attempt") > int_at(old_runs[0], "attempt")) return;
  if (at(runs[0], place) == old_runs[0][place]) return;
  forbid(causes, "status.runs", "the place belongs to the run's attempt");
}

void check_one_place(const Json& status, Causes& causes) {
  const Json& runs = at(status, "runs");
  if (runs.size() != 1) return;
  if (runs[0].contains("alone") && !runs[0].contains("workerUID")) {
    forbid(causes, "status.runs", "alone is about workers");
  }
  if (!runs[0].contains("workerUID")) return;
  if (!runs[0].contains("podUID") && !runs[0].contains("podName")) return;
  forbid(causes, "status.runs", "an attempt has one place");
}

}  // namespace holdfast::simulation
