// The spec of a DurableJob, in the terms of the rules. Plain values; units in the types. Field
// names and meanings are as in docs/api.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fields.h"
#include "api/index_set.h"
#include "api/limits.h"
#include "api/outbox.h"
#include "core/json_view.h"

namespace holdfast::api {

struct RetryBackoff {
  seconds initial{10};
  double factor = 2;
  seconds max{360};
  int jitter_percent = 20;
  bool operator==(const RetryBackoff&) const = default;
};
template <class Io, Is<RetryBackoff> X>
constexpr void fields(Io& io, X& backoff) {
  io("initialSeconds", backoff.initial);
  io("factor", backoff.factor);
  io("maxSeconds", backoff.max);
  io("jitterPercent", backoff.jitter_percent);
}
static_assert(names_all<RetryBackoff>());

enum class PodReplacementPolicy { kTerminatingOrFailed, kFailed };
void read_word(const std::string& word, PodReplacementPolicy& policy);

struct Heartbeat {
  seconds lease_duration{30};
  std::optional<seconds> progress_deadline;
};
template <class Io, Is<Heartbeat> X>
constexpr void fields(Io& io, X& heartbeat) {
  io("leaseDurationSeconds", heartbeat.lease_duration, {.at_rest = true});
  io("progressDeadlineSeconds", heartbeat.progress_deadline, {.at_rest = true});
}
static_assert(names_all<Heartbeat>());

// batch/v1's podFailurePolicy: the first rule that matches a failed pod decides.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#pod-failure-policy
enum class PolicyAction {
  kCount,      // as without a policy
  kIgnore,     // the end spends no budget
  kFailIndex,  // the run has failed; it has no further attempt
  kFailJob,
  // Ours: something outside is not ready. The end spends no budget, and the run asks again later.
  kDefer,
};
void read_word(const std::string& word, PolicyAction& action);

struct ExitCodesMatch {
  std::string container;  // empty: any container, init containers too
  bool in = true;         // false: a code that is not among the values
  std::vector<int> values;

  // The rule is on this exit code of the container with this name. A code of 0 is no failure.
  bool matches(const std::string& name, int code) const;
};
template <class Io, Is<ExitCodesMatch> X>
constexpr void fields(Io& io, X& match) {
  io("containerName", match.container);
  io("operator", match.in, {}, Words{.no = "NotIn", .yes = "In"});
  io("values", match.values);
}
static_assert(names_all<ExitCodesMatch>());
struct PodConditionMatch {
  std::string type;
  std::string status = "True";
  bool operator==(const PodConditionMatch&) const = default;
};
template <class Io, Is<PodConditionMatch> X>
constexpr void fields(Io& io, X& match) {
  io("type", match.type);
  io("status", match.status);
}
static_assert(names_all<PodConditionMatch>());
struct PolicyRule {
  using ExitCodes = ExitCodesMatch;
  using PodCondition = PodConditionMatch;
  PolicyAction action = PolicyAction::kCount;
  // Either exit codes or conditions are set. An exit code of 0 never matches.
  std::optional<ExitCodes> exit_codes;
  std::vector<PodCondition> conditions;  // one of them is enough
  // For kDefer: when the next attempt starts, and how many deferrals of a run in a row are allowed.
  seconds defer_for{60};
  std::int64_t defer_limit = 1000;
};
template <class Io, Is<PolicyRule> X>
constexpr void fields(Io& io, X& rule) {
  io("action", rule.action);
  io("onExitCodes", rule.exit_codes);
  io("onPodConditions", rule.conditions);
  io("deferSeconds", rule.defer_for);
  io("deferLimit", rule.defer_limit);
}
static_assert(names_all<PolicyRule>());

// batch/v1's successPolicy: the job has succeeded once one rule is met.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#success-policy
struct SuccessRule {
  std::optional<IndexSet> indexes;    // none: all
  std::optional<std::int64_t> count;  // how many of them; none: each
};
template <class Io, Is<SuccessRule> X>
constexpr void fields(Io& io, X& rule) {
  io("succeededIndexes", rule.indexes);
  io("succeededCount", rule.count);
}
static_assert(names_all<SuccessRule>());

// The pool whose workers run the attempts, instead of pods of their own: docs/internals/workers.md.
struct PoolRef {
  std::string name;
  std::string key;  // jobs with the same key go to the same worker, if it has a free slot
  std::optional<seconds> progress_deadline;
};
template <class Io, Is<PoolRef> X>
constexpr void fields(Io& io, X& pool) {
  io("name", pool.name, {.at_rest = true});
  io("key", pool.key, {.at_rest = true});
  io.own(pool.progress_deadline);
}
static_assert(names_all<PoolRef>());

// The work of one stage and its limits. Of a job without stages: the whole spec.
struct Spec {
  std::int64_t completions = 1;     // runs that must succeed
  std::int64_t parallelism = 1;     // runs that may be open at once
  bool indexed = false;             // a pod learns the index of its run
  std::optional<IndexSet> indexes;  // these runs alone; none: 0 to completions - 1
  std::int64_t backoff_limit = 6;   // kCountLimit: none
  std::optional<std::int64_t> backoff_limit_per_index;
  std::optional<std::int64_t> max_failed_indexes;
  std::vector<PolicyRule> pod_failure_policy;
  std::vector<SuccessRule> success_policy;
  RetryBackoff retry_backoff;
  std::int64_t disruption_limit = 50;
  seconds start_deadline{600};
  std::optional<seconds> schedule_deadline;
  seconds lost_after{40};
  std::optional<seconds> attempt_deadline;
  std::optional<seconds> active_deadline;  // the job's; it does not hold for Always stages
  std::optional<seconds> stage_deadline;   // of a stage after the first: its own
  PodReplacementPolicy pod_replacement = PodReplacementPolicy::kTerminatingOrFailed;
  std::optional<Heartbeat> heartbeat;
  std::optional<PoolRef> pool;
  bool suspend = false;
  bool cancel = false;
  std::optional<seconds> ttl_after_finished;
  std::string first_container;  // of the template, whose message is the stage's result

  // The indexes of the job's runs, and how many of them must succeed. Of a suspended job
  // `completions` may fall: then runs on record may have other indexes (left_out()).
  IndexSet all_indexes() const { return indexes ? *indexes : IndexSet::first(completions); }
  std::int64_t wanted() const { return indexes ? indexes->size() : completions; }
  // It may have more than one run, and its status says which of them have ended.
  bool many_runs() const { return completions > 1; }
  // Each run has a Lease of its own.
  bool has_run_leases() const { return heartbeat && many_runs(); }
};
template <class Io, Is<Spec> X>
constexpr void fields(Io& io, X& spec) {
  io("completions", spec.completions, {.at_rest = true, .least = 1, .most = kCompletionsLimit});
  io("parallelism", spec.parallelism, {.least = 0, .most = kParallelismLimit});
  io("completionMode", spec.indexed, {.at_rest = true},
     Words{.no = "NonIndexed", .yes = "Indexed"});
  io.by_codec("indexes", spec.indexes, {.at_rest = true});
  io("backoffLimit", spec.backoff_limit);
  io("backoffLimitPerIndex", spec.backoff_limit_per_index);
  io("maxFailedIndexes", spec.max_failed_indexes);
  io("podFailurePolicy", spec.pod_failure_policy, {.inside = "rules"});
  io("successPolicy", spec.success_policy, {.inside = "rules"});
  io("retryBackoff", spec.retry_backoff);
  io("disruptionLimit", spec.disruption_limit);
  io("startDeadlineSeconds", spec.start_deadline);
  io("scheduleDeadlineSeconds", spec.schedule_deadline);
  io("lostAfterSeconds", spec.lost_after, {.at_rest = true});
  io("attemptDeadlineSeconds", spec.attempt_deadline);
  io("activeDeadlineSeconds", spec.active_deadline);
  io.own(spec.stage_deadline);
  io("podReplacementPolicy", spec.pod_replacement);
  io("heartbeat", spec.heartbeat, {.at_rest = true});
  io("workerPool", spec.pool, {.at_rest = true});
  io("suspend", spec.suspend, {.at_rest = true});
  io("cancel", spec.cancel, {.at_rest = true});
  io("ttlSecondsAfterFinished", spec.ttl_after_finished, {.at_rest = true});
  io.other("template");
  io.own(spec.first_container);
  io.other("payload");
}
static_assert(names_all<Spec>());

// A stage of a job: docs/stages.md.
struct Stage {
  std::string name;
  bool may_fail = false;  // onFailure Continue
  bool always = false;    // when Always: also after a failure or a cancellation
  // Its fields, with those of the job that hold for it. An Always stage ignores `cancel` and the
  // job's deadline.
  Spec spec;
};
template <class Io, Is<Stage> X>
constexpr void fields(Io& io, X& stage) {
  io("name", stage.name, {.at_rest = true});
  io("onFailure", stage.may_fail, {.at_rest = true}, Words{.no = "Fail", .yes = "Continue"});
  io("when", stage.always, {.at_rest = true}, Words{.no = "OnSuccess", .yes = "Always"});
  io.all_of(stage.spec);
}
static_assert(names_all<Stage>());
inline constexpr const char* kFirstStage = "main";
inline constexpr seconds kAlwaysDeadline{600};  // of an Always stage that sets none

// The queue that a job waits in, and its rank there: docs/queues.md.
struct QueueRef {
  std::string name;
  std::int64_t priority = 0;
  std::string key;
};
template <class Io, Is<QueueRef> X>
constexpr void fields(Io& io, X& queue) {
  io("name", queue.name, {.at_rest = true});
  io("priority", queue.priority, {.at_rest = true});
  io("key", queue.key, {.at_rest = true});
}
static_assert(names_all<QueueRef>());

// The whole spec, as it is written.
struct JobSpec {
  Spec first;                // of the job, or of its first stage
  std::vector<Stage> later;  // stages after the first one
  std::optional<QueueRef> queue;
  std::vector<std::string> notify;  // names of targets
};
template <class Io, Is<JobSpec> X>
constexpr void fields(Io& io, X& spec) {
  io.all_of(spec.first);
  io("stages", spec.later, {.entries = kStageLimit});
  io("queue", spec.queue);
  io("notify", spec.notify, {},
     Read{[](const JsonView& json) { return target_names(at(json, "notify")); }});
  io.other("message");
  io.other("description");
}
static_assert(names_all<JobSpec>());

}  // namespace holdfast::api
