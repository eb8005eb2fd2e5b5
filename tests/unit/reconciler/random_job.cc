#include "tests/unit/reconciler/random_job.h"

#include <string>
#include <vector>

#include "reconciler/run/slot.h"

namespace holdfast::reconciler::testing {
namespace {

// At least one of them.
IndexSet some_of(const IndexSet& all, Rng& rng) {
  IndexSet some;
  for (auto index = all.next(0, {}); index; index = all.next(*index + 1, {})) {
    if (rng.percent(50)) some.add(*index);
  }
  if (some.empty()) some.add(*all.next(0, {}));
  return some;
}

PolicyAction any_action(bool may_fail_index, Rng& rng) {
  if (rng.percent(15)) return PolicyAction::kFailJob;
  if (may_fail_index && rng.percent(40)) return PolicyAction::kFailIndex;
  if (rng.percent(30)) return PolicyAction::kDefer;
  return rng.percent(60) ? PolicyAction::kIgnore : PolicyAction::kCount;
}

PolicyRule any_rule(bool may_fail_index, Rng& rng) {
  PolicyRule rule;
  rule.action = any_action(may_fail_index, rng);
  if (rng.percent(20)) {
    rule.conditions = {{"DisruptionTarget", "True"}};
    return rule;
  }
  rule.exit_codes.emplace();
  rule.exit_codes->in = !rng.percent(20);
  if (rng.percent(30)) rule.exit_codes->container = "main";
  const int sure = 1 + rng.below(3);
  for (int code = 1; code <= 3; ++code) {
    if (code == sure || rng.percent(40)) rule.exit_codes->values.push_back(code);
  }
  return rule;
}

void draw_limits_per_index(Spec& spec, Rng& rng) {
  spec.backoff_limit_per_index = rng.below(3);
  if (rng.percent(70)) spec.backoff_limit = kCountLimit;
  if (rng.percent(50)) spec.max_failed_indexes = rng.below(static_cast<int>(spec.completions));
}

void draw_success_policy(Spec& spec, Rng& rng) {
  const IndexSet all = spec.all_indexes();
  for (int rules = 1 + rng.below(2); rules > 0; --rules) {
    SuccessRule rule;
    if (rng.percent(60)) rule.indexes = some_of(all, rng);
    if (!rule.indexes || rng.percent(40)) {
      rule.count = 1 + rng.below(static_cast<int>(spec.completions));
    }
    spec.success_policy.push_back(rule);
  }
}

// The combinations that the CRD allows.
void draw_many_runs(Spec& spec, Rng& rng) {
  spec.completions = 2 + rng.below(7);
  spec.parallelism = 1 + rng.below(static_cast<int>(spec.completions));
  spec.backoff_limit = rng.below(12);
  spec.indexed = rng.percent(60);
  if (spec.indexed) {
    if (rng.percent(30)) spec.indexes = some_of(IndexSet::first(spec.completions), rng);
    if (rng.percent(50)) draw_limits_per_index(spec, rng);
    if (rng.percent(30)) draw_success_policy(spec, rng);
  }
  if (rng.percent(50)) return;
  const bool may_fail_index = spec.backoff_limit_per_index.has_value();
  for (int rules = 1 + rng.below(3); rules > 0; --rules) {
    spec.pod_failure_policy.push_back(any_rule(may_fail_index, rng));
  }
}

// As operator/codecs/spec_codec.cc decodes a job with workerPool.
void draw_pool(Job& job, Rng& rng) {
  Spec& spec = job.spec;
  spec.pool = PoolRef{"thumbnails", "", std::nullopt};
  if (rng.percent(40)) spec.pool->progress_deadline = seconds(5 + rng.below(30));
  spec.pod_replacement = PodReplacementPolicy::kFailed;
  spec.first_container = kSlotContainer;
  job.has_pool = true;
}

}  // namespace

Job random_job(Rng& rng, Time now) {
  Job job;
  job.namespace_ = "default";
  job.name = "job";
  job.uid = "uid-" + std::to_string(rng.next());
  job.generation = 1;
  job.created = now;
  Spec& spec = job.spec;
  spec.backoff_limit = rng.below(4);
  spec.disruption_limit = rng.percent(30) ? rng.below(3) : 50;
  spec.retry_backoff.initial = seconds(1 + rng.below(10));
  spec.retry_backoff.max = seconds(10 + rng.below(60));
  spec.start_deadline = seconds(rng.percent(50) ? 30 : 600);
  spec.lost_after = seconds(rng.percent(50) ? 15 : 40);
  if (rng.percent(20)) spec.attempt_deadline = seconds(5 + rng.below(60));
  if (rng.percent(20)) spec.active_deadline = seconds(30 + rng.below(600));
  if (rng.percent(40)) spec.pod_replacement = PodReplacementPolicy::kFailed;
  if (rng.percent(20)) spec.ttl_after_finished = seconds(rng.below(60));
  spec.suspend = rng.percent(5);
  spec.cancel = rng.percent(2);
  if (rng.percent(50)) draw_many_runs(spec, rng);
  if (rng.percent(40)) job.notify = {"chat", "failures"};
  if (rng.percent(40)) job.queue = QueueRef{"encode", 0, ""};
  if (rng.percent(30)) draw_pool(job, rng);
  return job;
}

}  // namespace holdfast::reconciler::testing
