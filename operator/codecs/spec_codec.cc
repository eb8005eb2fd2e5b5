// The spec of a DurableJob.
#include <utility>

#include "api/json_in.h"
#include "operator/codecs/index_codec.h"
#include "operator/codecs/job_codec.h"
#include "reconciler/run/slot.h"

namespace holdfast::codecs {
namespace {

std::string first_container(const JsonView& json) {
  const JsonView containers = at(at(at(json, "template"), "spec"), "containers");
  return containers.is_array() && !containers.empty() ? string_at(containers[0], "name") : "";
}

// What depends on several fields.
void complete(const JsonView& json, reconciler::Spec& spec) {
  if (const JsonView indexes = at(json, "indexes"); spec.indexed && indexes.is_string()) {
    spec.indexes = decode_indexes(std::string(indexes.string_or("")), spec.completions);
  }
  if (spec.backoff_limit_per_index && !at(json, "backoffLimit").is_number_integer()) {
    spec.backoff_limit = reconciler::kCountLimit;
  }
  if (!spec.pool) return;
  if (spec.heartbeat) spec.pool->progress_deadline = spec.heartbeat->progress_deadline;
  // The worker's Lease is the heartbeat of all its attempts, and the next place of a run waits
  // until the last one is empty.
  spec.heartbeat.reset();
  spec.pod_replacement = reconciler::PodReplacementPolicy::kFailed;
  spec.first_container = reconciler::kSlotContainer;
}

// The same of a job with stages: the message of this container is the stage's result.
void complete_stage(const JsonView& json, reconciler::Spec& spec) {
  complete(json, spec);
  if (!spec.pool) spec.first_container = first_container(json);
}

}  // namespace

reconciler::Spec decode_spec(const JsonView& json) {
  auto spec = api::read<reconciler::Spec>(json);
  complete(json, spec);
  return spec;
}

api::JobSpec decode_job_spec(const JsonView& json) {
  auto spec = api::read<api::JobSpec>(json);
  if (spec.later.empty()) {
    complete(json, spec.first);
    return spec;
  }
  complete_stage(json, spec.first);
  auto stage = spec.later.begin();
  for (const JsonView one : at(json, "stages")) {
    if (stage == spec.later.end()) break;
    complete_stage(one, (stage++)->spec);
  }
  return spec;
}

std::vector<reconciler::Stage> stages_of(const api::JobSpec& spec) {
  std::vector<reconciler::Stage> stages;
  if (spec.later.empty()) return stages;
  const reconciler::Spec& job = spec.first;
  stages.push_back({reconciler::kFirstStage, false, false, job});
  for (reconciler::Stage stage : spec.later) {
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

}  // namespace holdfast::codecs
