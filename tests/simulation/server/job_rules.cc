// The CEL rules of the DurableJob's definition, in its order.
#include <algorithm>
#include <optional>
#include <string>

#include "core/time.h"
#include "reconciler/edge_table.h"
#include "tests/simulation/server/custom_schema.h"

namespace holdfast::simulation {
namespace {

// By which one write may raise it.
constexpr std::int64_t kMostAttempts = 10000;
constexpr std::size_t kMostOfDescription = 256;  // bytes

bool is_terminal(const std::string& phase) {
  return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
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
    if (!json.contains("template")) return json;
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

void check_template_change(const Json& spec, const Json& old, Causes& causes) {
  const Json& pod = at(at(spec, "template"), "spec");
  const Json& old_pod = at(at(old, "template"), "spec");
  if (at(spec, "template") != at(old, "template") ||
      names_of(at(pod, "containers")) != names_of(at(old_pod, "containers")) ||
      names_of(at(pod, "initContainers")) != names_of(at(old_pod, "initContainers"))) {
    forbid(causes, "spec.template", "the template is immutable unless the job is suspended");
  }
}

void check_spec_change(const Json& spec, const Json& old, bool is_suspended, Causes& causes) {
  if (at(spec, "heartbeat") != at(old, "heartbeat")) {
    forbid(causes, "spec.heartbeat", "the heartbeat is immutable");
  }
  if (bool_at(old, "cancel") && !bool_at(spec, "cancel")) {
    forbid(causes, "spec.cancel", "cancel is one way");
  }
  if (at(spec, "stages") != at(old, "stages")) {
    forbid(causes, "spec.stages", "the stages are immutable as a whole");
  }
  check_place_change(at(spec, "queue"), at(old, "queue"), causes);
  check_run_changes(spec, old, is_suspended, causes);
}

void check_heartbeat_template(const Json& pod, Causes& causes) {
  const Json& containers = at(pod, "containers");
  if (containers.empty() || at(containers[0], "command").empty()) {
    refuse(causes, "spec.heartbeat", "heartbeat needs the command of the first container");
  }
  if (bool_at(pod, "shareProcessNamespace")) {
    refuse(causes, "spec.heartbeat", "heartbeat does not go with a shared process namespace");
  }
  if (!containers.empty() && at(at(containers[0], "lifecycle"), "postStart").is_object()) {
    refuse(causes, "spec.heartbeat", "heartbeat does not go with postStart");
  }
}

// `template_may_differ`: at the creation and while suspended; at no other time is the template
// read.
void check_spec(const Json& spec, bool template_may_differ, Causes& causes) {
  const Json& pod = at(at(spec, "template"), "spec");
  const Json& heartbeat = at(spec, "heartbeat");
  if (heartbeat.is_object()) {
    if (template_may_differ && spec.contains("template")) check_heartbeat_template(pod, causes);
    if (heartbeat.contains("progressDeadlineSeconds") &&
        int_at(heartbeat, "progressDeadlineSeconds") < int_at(heartbeat, "leaseDurationSeconds")) {
      refuse(causes, "spec.heartbeat",
             "progressDeadlineSeconds must be at least leaseDurationSeconds");
    }
  }
  if (string_at(spec, "description").size() > kMostOfDescription) {
    refuse(causes, "spec.description",
           "the description has more than 256 bytes: say what the job is for in fewer words");
  }
  check_restarts(pod, causes);
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
  if (!ended && bool_at(status, "settled")) {
    refuse(causes, "status.settled", "only a job that has ended is settled");
  }
  if (!ended && !waits) {
    require(causes, "status.waiting", "a job that has not ended must say what it waits for");
  }
  if (ended && waits) {
    forbid(causes, "status.waiting", "a job that has ended waits for nothing");
  }
  if (ended && !at(status, "runs").empty()) {
    forbid(causes, "status.runs", "a job that has ended has no runs");
  }
  const std::string phase = string_at(status, "phase");
  if (int_at(status, "attempt") == 0 &&
      (phase == "Running" || phase == "Backoff" || phase == "Succeeded")) {
    forbid(causes, "status.attempt", "Running, Backoff and Succeeded need an attempt");
  }
  const Json& stages = at(status, "stages");
  if (ended && std::any_of(stages.begin(), stages.end(), [](const Json& stage) {
        const std::string how = string_at(stage, "phase");
        return how == "Pending" || how == "Running";
      })) {
    refuse(causes, "status.stages", "a job that has ended has no stage that has not");
  }
  const Json& runs = at(status, "runs");
  for (const Json& run : runs) {
    if (int_at(run, "attempt") <= int_at(status, "attempt")) continue;
    refuse(causes, "status.runs", "no run has an attempt above status.attempt");
    break;
  }
  const Json& outbox = at(status, "outbox");
  if (std::any_of(outbox.begin(), outbox.end(), [&](const Json& entry) {
        return int_at(entry, "number") > int_at(status, "notifications");
      })) {
    refuse(causes, "status.outbox", "no event has a number above notifications");
  }
  check_one_place(status, causes);
}

// Deferrals in a row share an entry, so they are not judged.
Json without_deferrals(const Json& history) {
  Json others = Json::array();
  for (const Json& entry : history) {
    if (string_at(entry, "outcome") != "Deferred") others.push_back(entry);
  }
  return others;
}

// What is left of the old entries keeps its distance from the newest.
bool grows(const Json& all, const Json& all_old) {
  if (all == all_old) return true;
  const Json history = without_deferrals(all);
  const Json old = without_deferrals(all_old);
  if (all.size() - history.size() > 5) return false;
  const auto place = [](const Json& list, const Json& entry) {
    const auto found = std::find_if(list.begin(), list.end(), [&](const Json& one) {
      return at(one, "attempt") == at(entry, "attempt");
    });
    return found == list.end() ? std::ptrdiff_t{-1} : found - list.begin();
  };
  const auto has_twins = [&](const Json& list) {
    std::ptrdiff_t here = 0;
    return std::any_of(list.begin(), list.end(),
                       [&](const Json& entry) { return place(list, entry) != here++; });
  };
  if (has_twins(old)) return true;
  if (has_twins(history)) return false;
  if (old.empty()) return true;
  const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(old.size()) - 1;
  const std::ptrdiff_t newest = place(history, old.back());
  if (newest < 0 || (all.size() != 10 && newest != last)) return false;
  return std::all_of(old.begin(), old.end(), [&](const Json& entry) {
    const std::ptrdiff_t expected = newest - last + place(old, entry);
    const std::ptrdiff_t here = place(history, entry);
    if (here != std::max(expected, std::ptrdiff_t{-1})) return false;
    return here < 0 || history[static_cast<std::size_t>(here)] == entry;
  });
}

bool decides(const Json& condition) {
  const std::string type = string_at(condition, "type");
  return string_at(condition, "status") == "True" &&
         (type == "FailureTarget" || type == "SuccessCriteriaMet" || type == "ResultReady");
}

// A decided outcome is never taken back.
void check_decided(const Json& conditions, const Json& old, Causes& causes) {
  const bool stays = std::all_of(old.begin(), old.end(), [&](const Json& before) {
    return !decides(before) ||
           std::any_of(conditions.begin(), conditions.end(), [&](const Json& condition) {
             return decides(condition) && at(condition, "type") == at(before, "type");
           });
  });
  if (!stays) forbid(causes, "status.conditions", "an outcome that is decided stays decided");
}

bool is_outcome(const Json& condition) {
  const std::string type = string_at(condition, "type");
  return type == "Complete" || type == "Failed" || type == "Cancelled";
}

// Those of one list that give the outcome are in the other.
bool outcomes_stay(const Json& conditions, const Json& others) {
  return std::all_of(conditions.begin(), conditions.end(), [&](const Json& condition) {
    return !is_outcome(condition) ||
           std::find(others.begin(), others.end(), condition) != others.end();
  });
}

void check_progress(const Json& status, const Json& old, Causes& causes) {
  const std::int64_t risen = int_at(status, "attempt") - int_at(old, "attempt");
  if (risen > kMostAttempts) {
    forbid(causes, "status.attempt", "attempt rises by at most 10000 in one write");
  }
  check_place_stays(status, old, "podUID", causes);
  check_place_stays(status, old, "workerUID", causes);
  if (int_at(status, "suspendedSeconds") < int_at(old, "suspendedSeconds") ||
      (old.contains("suspendedSeconds") && !status.contains("suspendedSeconds"))) {
    forbid(causes, "status.suspendedSeconds", "suspendedSeconds never falls");
  }
  if (old.contains("history") && !status.contains("history")) {
    forbid(causes, "status.history", "history only grows");
  } else if (old.contains("history") && !grows(status["history"], old["history"])) {
    forbid(causes, "status.history", "history only grows");
  }
}

const Json& stage_named(const Json& stages, const std::string& name) {
  static const Json* const none = new Json();
  for (const Json& stage : stages) {
    if (string_at(stage, "name") == name) return stage;
  }
  return *none;
}

bool has_ended(const Json& stage) {
  const std::string phase = string_at(stage, "phase");
  return phase == "Succeeded" || phase == "Failed" || phase == "Skipped";
}

void check_stage_changes(const Json& status, const Json& old, Causes& causes) {
  const Json& stages = at(status, "stages");
  const Json& old_stages = at(old, "stages");
  if (status.contains("stage") != status.contains("stages") ||
      (old.contains("stage") && !status.contains("stage"))) {
    forbid(causes, "status.stage", "stage and stages belong together and stay");
  }
  if (!status.contains("stages")) return;
  if (std::any_of(old_stages.begin(), old_stages.end(), [&](const Json& was) {
        return stage_named(stages, string_at(was, "name")).is_null();
      })) {
    forbid(causes, "status.stages", "no stage leaves the list");
  }
  std::size_t index = 0;
  for (const Json& now : stages) {
    const std::string here = "status.stages[" + std::to_string(index++) + "]";
    const Json& was = stage_named(old_stages, string_at(now, "name"));
    if (was.is_null()) continue;
    if (has_ended(was) && now != was) {
      forbid(causes, here, "a stage that has ended never changes");
    }
    if (string_at(now, "phase") == "Pending" && string_at(was, "phase") != "Pending") {
      forbid(causes, here + ".phase", "a stage that has begun runs until it ends");
    }
    if (int_at(now, "failures") < int_at(was, "failures") ||
        int_at(now, "disruptions") < int_at(was, "disruptions")) {
      forbid(causes, here + ".failures", "failures and disruptions of a stage never fall");
    }
  }
  const std::string stage = string_at(status, "stage");
  const std::string old_stage = string_at(old, "stage");
  if (old_stage.empty() || stage == old_stage) return;
  if (!has_ended(stage_named(stages, old_stage)) ||
      string_at(stage_named(old_stages, stage), "phase") != "Pending") {
    forbid(causes, "status.stage", "the job moves from a stage that has ended");
  }
}

const Json& entry_of(const Json& outbox, std::int64_t number) {
  static const Json* const none = new Json();
  for (const Json& entry : outbox) {
    if (int_at(entry, "number") == number) return entry;
  }
  return *none;
}

void check_outbox(const Json& status, const Json& old, Causes& causes) {
  if (int_at(status, "notifications") < int_at(old, "notifications")) {
    forbid(causes, "status.notifications", "notifications never falls");
  }
  bool comes_back = false;
  std::size_t index = 0;
  for (const Json& entry : at(status, "outbox")) {
    const std::string here = "status.outbox[" + std::to_string(index++) + "]";
    const std::int64_t number = int_at(entry, "number");
    const Json& was = entry_of(at(old, "outbox"), number);
    comes_back = comes_back || (was.is_null() && number <= int_at(old, "notifications"));
    if (was.is_null()) continue;
    const Json& had = at(was, "targets");
    const Json& targets = at(entry, "targets");
    const bool fewer = std::all_of(targets.begin(), targets.end(), [&](const Json& target) {
      return std::find(had.begin(), had.end(), target) != had.end();
    });
    if (at(entry, "event") == at(was, "event") && at(entry, "time") == at(was, "time") && fewer) {
      continue;
    }
    forbid(causes, here, "an event never changes, and its targets only become fewer");
  }
  if (comes_back) {
    forbid(causes, "status.outbox", "an event that has left the outbox does not come back");
  }
}

void check_status_change(const Json& status, const Json& old, Causes& causes) {
  const std::string from = string_at(old, "phase");
  const std::optional<reconciler::Phase> phase = reconciler::parse_phase(from);
  const std::optional<reconciler::Phase> next = reconciler::parse_phase(string_at(status, "phase"));
  if (!phase || !next || !reconciler::is_edge(*phase, *next, status.contains("stage"))) {
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
  if (bool_at(old, "settled") && !bool_at(status, "settled")) {
    forbid(causes, "status.settled", "a job that is settled stays so");
  }
  check_stage_changes(status, old, causes);
  const bool moves = old.contains("stage") && at(status, "stage") != old["stage"];
  const auto all_of = [](const std::string& counted) {
    return counted.substr(counted.find('/') + 1);
  };
  const bool resized =
      from == "Suspended" && old.contains("completions") &&
      all_of(string_at(status, "completions")) != all_of(string_at(old, "completions"));
  for (const char* counter : {"succeeded", "failed"}) {
    if (resized && std::string(counter) == "succeeded") continue;
    if (moves || int_at(status, counter) >= int_at(old, counter)) continue;
    forbid(causes, (std::string("status.") + counter).c_str(), "the count never falls");
  }
  check_progress(status, old, causes);
  check_outbox(status, old, causes);
  check_decided(at(status, "conditions"), at(old, "conditions"), causes);
  if (!is_terminal(from)) return;
  const Json& conditions = at(status, "conditions");
  const Json& old_conditions = at(old, "conditions");
  if (!outcomes_stay(old_conditions, conditions) || !outcomes_stay(conditions, old_conditions)) {
    forbid(causes, "status.conditions",
           "the job has ended: its conditions Complete, Failed and Cancelled stay as they are");
  }
  bool same = status.contains("startTime") == old.contains("startTime");
  for (const char* field : {"attempt", "failures", "disruptions", "completions", "active",
                            "succeeded", "failed", "completedIndexes", "failedIndexes",
                            "suspendedSeconds", "stages", "notifications", "history"}) {
    same = same && at(status, field) == at(old, field);
  }
  if (!same) forbid(causes, "status", "the job has ended and its status is final");
}

void check_shard_change(const Json& job, const std::string& old, Causes& causes) {
  const Json& spec = at(job, "spec");
  const std::string shard = string_at(at(job, "status"), "shard");
  bool may_change = shard.empty() || old.empty() || shard == old || spec.contains("queue") ||
                    spec.contains("workerPool");
  for (const Json& stage : at(spec, "stages")) may_change |= stage.contains("workerPool");
  // There is no such shard.
  may_change = may_change || std::stoi(old) >= std::stoi(old.substr(old.find('-') + 4));
  if (!may_change && shard.substr(shard.find('-')) == old.substr(old.find('-'))) {
    forbid(causes, "status.shard",
           "without a queue or a pool the shard changes only with the number of shards");
  }
}

}  // namespace

void check_job_rules(const Json& job, const Json* old, Causes& causes) {
  check_name(job, causes);
  const Json& status = at(job, "status");
  const Json& old_status = old == nullptr ? Json() : at(*old, "status");
  const bool template_may_differ = old == nullptr || string_at(old_status, "phase") == "Suspended";
  if (old != nullptr) {
    const bool open = status != old_status || template_may_differ;
    if (!open) check_template_change(at(job, "spec"), at(*old, "spec"), causes);
    check_spec_change(at(job, "spec"), at(*old, "spec"), template_may_differ, causes);
    check_pool_changes(job, *old, causes);
  }
  // A rule without a past is not asked again of what is the same, in whatever order.
  if (old == nullptr || !same_in_any_order(at(job, "spec"), at(*old, "spec"))) {
    check_spec(at(job, "spec"), template_may_differ, causes);
    check_place(at(at(job, "spec"), "queue"), causes);
    check_run_rules(job, old == nullptr, template_may_differ, causes);
    check_job_in_pool(job, old == nullptr, template_may_differ, causes);
  }
  check_status(status, causes);
  if (old_status.is_object()) check_status_change(status, old_status, causes);
  if (old_status.is_object()) check_shard_change(job, string_at(old_status, "shard"), causes);
}

}  // namespace holdfast::simulation
