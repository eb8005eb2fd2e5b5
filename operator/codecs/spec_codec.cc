// The spec of a DurableJob.
#include <algorithm>

#include "core/json_time.h"
#include "operator/codecs/index_codec.h"
#include "operator/codecs/job_codec.h"
#include "reconciler/run/slot.h"

namespace holdfast::controller {
namespace {

using reconciler::PolicyAction;
using reconciler::PolicyRule;
using reconciler::seconds;
using reconciler::SuccessRule;

std::optional<std::int64_t> optional_int_at(const JsonView& json, const char* key) {
  const JsonView value = at(json, key);
  return value.is_number_integer() ? std::optional(value.int_or(0)) : std::nullopt;
}

PolicyAction decode_action(const std::string& text) {
  if (text == "FailJob") return PolicyAction::kFailJob;
  if (text == "FailIndex") return PolicyAction::kFailIndex;
  if (text == "Ignore") return PolicyAction::kIgnore;
  if (text == "Defer") return PolicyAction::kDefer;
  return PolicyAction::kCount;
}

PolicyRule decode_failure_rule(const JsonView& json) {
  PolicyRule rule;
  rule.action = decode_action(string_at(json, "action"));
  rule.defer_for = seconds_at(json, "deferSeconds").value_or(rule.defer_for);
  rule.defer_limit = int_at(json, "deferLimit", rule.defer_limit);
  if (const JsonView codes = at(json, "onExitCodes"); codes.is_object()) {
    rule.exit_codes.emplace();
    rule.exit_codes->container = string_at(codes, "containerName");
    rule.exit_codes->in = string_at(codes, "operator") != "NotIn";
    for (const JsonView code : at(codes, "values")) {
      rule.exit_codes->values.push_back(static_cast<int>(code.int_or(0)));
    }
  }
  for (const JsonView condition : at(json, "onPodConditions")) {
    rule.conditions.push_back(
        {string_at(condition, "type"), string_at(condition, "status", "True")});
  }
  return rule;
}

// The indexes may be beyond the job's: a rule that cannot be met is never met. Nor is a rule on no
// index, and a list that cannot be read is none.
SuccessRule decode_success_rule(const JsonView& json) {
  SuccessRule rule;
  if (const JsonView indexes = at(json, "succeededIndexes"); indexes.is_string()) {
    rule.indexes = decode_indexes(std::string(indexes.string_or("")), reconciler::kCompletionsLimit)
                       .value_or(reconciler::IndexSet());
  }
  rule.count = optional_int_at(json, "succeededCount");
  return rule;
}

void decode_runs(const JsonView& json, reconciler::Spec& spec) {
  spec.completions =
      std::clamp<std::int64_t>(int_at(json, "completions", 1), 1, reconciler::kCompletionsLimit);
  spec.parallelism =
      std::clamp<std::int64_t>(int_at(json, "parallelism", 1), 0, reconciler::kParallelismLimit);
  spec.indexed = string_at(json, "completionMode") == "Indexed";
  if (const JsonView indexes = at(json, "indexes"); spec.indexed && indexes.is_string()) {
    spec.indexes = decode_indexes(std::string(indexes.string_or("")), spec.completions);
  }
  spec.backoff_limit_per_index = optional_int_at(json, "backoffLimitPerIndex");
  spec.max_failed_indexes = optional_int_at(json, "maxFailedIndexes");
  const std::int64_t limit =
      spec.backoff_limit_per_index ? reconciler::kCountLimit : spec.backoff_limit;
  spec.backoff_limit = int_at(json, "backoffLimit", limit);
  for (const JsonView rule : at(at(json, "podFailurePolicy"), "rules")) {
    spec.pod_failure_policy.push_back(decode_failure_rule(rule));
  }
  for (const JsonView rule : at(at(json, "successPolicy"), "rules")) {
    spec.success_policy.push_back(decode_success_rule(rule));
  }
}

}  // namespace

namespace {

std::string first_container(const JsonView& json) {
  const JsonView containers = at(at(at(json, "template"), "spec"), "containers");
  return containers.is_array() && !containers.empty() ? string_at(containers[0], "name") : "";
}

}  // namespace

std::optional<reconciler::QueueRef> decode_queue_ref(const JsonView& json) {
  if (!json.is_object()) return std::nullopt;
  return reconciler::QueueRef{string_at(json, "name"), int_at(json, "priority"),
                              string_at(json, "key")};
}

std::vector<reconciler::Stage> decode_stages_of(const JsonView& json) {
  std::vector<reconciler::Stage> stages;
  if (at(json, "stages").empty()) return stages;
  const reconciler::Spec job = decode_spec(json);
  stages.push_back({reconciler::kFirstStage, false, false, job});
  if (!job.pool) stages.back().spec.first_container = first_container(json);
  for (const JsonView one : at(json, "stages")) {
    if (stages.size() > reconciler::kStageLimit) break;
    reconciler::Stage stage{string_at(one, "name"), string_at(one, "onFailure") == "Continue",
                            string_at(one, "when") == "Always", decode_spec(one)};
    if (!stage.spec.pool) stage.spec.first_container = first_container(one);
    stage.spec.stage_deadline = stage.spec.active_deadline;
    stage.spec.active_deadline = stage.always ? std::nullopt : job.active_deadline;
    if (stage.always && !stage.spec.stage_deadline) {
      stage.spec.stage_deadline = reconciler::kAlwaysDeadline;
    }
    stage.spec.ttl_after_finished = job.ttl_after_finished;
    stage.spec.cancel = job.cancel && !stage.always;
    stages.push_back(std::move(stage));
  }
  // A cancelled job does not stop in the middle of its cleaning up.
  for (reconciler::Stage& stage : stages) stage.spec.suspend = job.suspend && !job.cancel;
  return stages;
}

reconciler::Spec decode_spec(const JsonView& json) {
  reconciler::Spec spec;
  decode_runs(json, spec);
  spec.disruption_limit = int_at(json, "disruptionLimit", spec.disruption_limit);
  spec.start_deadline = seconds_at(json, "startDeadlineSeconds").value_or(spec.start_deadline);
  spec.schedule_deadline = seconds_at(json, "scheduleDeadlineSeconds");
  spec.lost_after = seconds_at(json, "lostAfterSeconds").value_or(spec.lost_after);
  spec.attempt_deadline = seconds_at(json, "attemptDeadlineSeconds");
  spec.active_deadline = seconds_at(json, "activeDeadlineSeconds");
  spec.ttl_after_finished = seconds_at(json, "ttlSecondsAfterFinished");
  spec.suspend = bool_at(json, "suspend");
  spec.cancel = bool_at(json, "cancel");
  if (string_at(json, "podReplacementPolicy") == "Failed") {
    spec.pod_replacement = reconciler::PodReplacementPolicy::kFailed;
  }
  const JsonView backoff = at(json, "retryBackoff");
  spec.retry_backoff.initial =
      seconds_at(backoff, "initialSeconds").value_or(spec.retry_backoff.initial);
  spec.retry_backoff.max = seconds_at(backoff, "maxSeconds").value_or(spec.retry_backoff.max);
  spec.retry_backoff.jitter_percent =
      static_cast<int>(int_at(backoff, "jitterPercent", spec.retry_backoff.jitter_percent));
  spec.retry_backoff.factor = at(backoff, "factor").number_or(spec.retry_backoff.factor);
  if (const JsonView heartbeat = at(json, "heartbeat"); heartbeat.is_object()) {
    spec.heartbeat.emplace();
    spec.heartbeat->lease_duration =
        seconds_at(heartbeat, "leaseDurationSeconds").value_or(spec.heartbeat->lease_duration);
    spec.heartbeat->progress_deadline = seconds_at(heartbeat, "progressDeadlineSeconds");
  }
  if (const JsonView pool = at(json, "workerPool"); pool.is_object()) {
    spec.pool = reconciler::PoolRef{string_at(pool, "name"), string_at(pool, "key"), std::nullopt};
    if (spec.heartbeat) spec.pool->progress_deadline = spec.heartbeat->progress_deadline;
    // The worker's Lease is the heartbeat of all its attempts, and the next place of a run waits
    // until the last one is empty.
    spec.heartbeat.reset();
    spec.pod_replacement = reconciler::PodReplacementPolicy::kFailed;
    spec.first_container = reconciler::kSlotContainer;
  }
  return spec;
}

}  // namespace holdfast::controller
