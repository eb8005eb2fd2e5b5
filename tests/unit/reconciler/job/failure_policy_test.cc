// Which rule of a podFailurePolicy judges a failed pod, as batch/v1's controller does.
#include "reconciler/job/failure_policy.h"

#include <gtest/gtest.h>

#include "core/agent_protocol.h"

namespace holdfast::reconciler {
namespace {

constexpr const char* kNoRule = "";
using ExitCodes = PolicyRule::ExitCodes;
using PodCondition = PolicyRule::PodCondition;

PolicyRule on_codes(PolicyAction action, ExitCodes codes) {
  PolicyRule rule;
  rule.action = action;
  rule.exit_codes = std::move(codes);
  return rule;
}

PolicyRule on_conditions(PolicyAction action, std::vector<PodCondition> patterns) {
  PolicyRule rule;
  rule.action = action;
  rule.conditions = std::move(patterns);
  return rule;
}

PolicyRule fail_job(ExitCodes codes) { return on_codes(PolicyAction::kFailJob, std::move(codes)); }

ExitCodes in(std::vector<int> values, const std::string& container = "") {
  return {container, true, std::move(values)};
}

ExitCodes not_in(std::vector<int> values, const std::string& container = "") {
  return {container, false, std::move(values)};
}

enum class Kind { kRegular, kInit, kSidecar };

ContainerView container(const std::string& name, Kind kind = Kind::kRegular) {
  ContainerView view;
  view.name = name;
  view.init = kind != Kind::kRegular;
  view.sidecar = kind == Kind::kSidecar;
  view.started = true;
  return view;
}

ContainerView ended(const std::string& name, int exit_code, Kind kind = Kind::kRegular) {
  ContainerView view = container(name, kind);
  view.terminated.emplace();
  view.terminated->exit_code = exit_code;
  view.terminated->reason = exit_code == 0 ? "Completed" : "Error";
  return view;
}

// Its kubelet made the end up.
ContainerView unseen_end(int exit_code) {
  ContainerView view = ended("main", exit_code);
  view.terminated->was_seen = false;
  return view;
}

ContainerView out_of_memory() {
  ContainerView view = ended("main", 137);
  view.terminated->reason = "OOMKilled";
  view.terminated->out_of_memory = true;
  return view;
}

// As the codec makes it: init containers first.
PodView failed(std::vector<ContainerView> containers, std::vector<PodCondition> conditions = {}) {
  PodView pod;
  pod.name = "train-1";
  pod.phase = PodPhase::kFailed;
  pod.containers = std::move(containers);
  pod.conditions = std::move(conditions);
  return pod;
}

PolicyMatch match(std::vector<PolicyRule> rules, const PodView& pod) {
  Spec spec;
  spec.backoff_limit_per_index = 1;
  spec.pod_failure_policy = std::move(rules);
  return match_failure_policy(spec, "ns", pod);
}

struct Case {
  const char* rule;  // that the case shows
  std::vector<PolicyRule> rules;
  PodView pod;
  PolicyAction action;
  std::string message;
};

void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    const PolicyMatch found = match(one.rules, one.pod);
    EXPECT_EQ(found.action, one.action) << one.rule;
    EXPECT_EQ(found.message, one.message) << one.rule;
  }
}

TEST(FailurePolicy, TheFirstRuleThatMatchesDecides) {
  using enum PolicyAction;
  const PodCondition disrupted{"DisruptionTarget", "True"};
  check({
      {"without a policy the failure counts", {}, failed({ended("main", 2)}), kCount, kNoRule},
      {"without a matching rule the failure counts",
       {on_codes(kIgnore, in({1, 3})), on_codes(kFailJob, not_in({2, 5})),
        on_conditions(kIgnore, {disrupted})},
       failed({ended("main", 2)}),
       kCount,
       kNoRule},
      {"a rule that does not match leaves the pod to the next one",
       {on_codes(kIgnore, in({1, 2, 3})), fail_job(in({41, 42}))},
       failed({ended("main", 42)}),
       kFailJob,
       "Container main for pod ns/train-1 failed with exit code 42 matching FailJob rule at index "
       "1"},
      {"the first of two rules that match",
       {on_conditions(kIgnore, {disrupted}), fail_job(in({143}))},
       failed({ended("main", 143)}, {disrupted}),
       kIgnore,
       "Pod ns/train-1 has condition DisruptionTarget matching Ignore rule at index 0"},
      {"the first of two rules that match, the other way round",
       {fail_job(in({143})), on_conditions(kIgnore, {disrupted})},
       failed({ended("main", 143)}, {disrupted}),
       kFailJob,
       "Container main for pod ns/train-1 failed with exit code 143 matching FailJob rule at index "
       "0"},
      {"a Count rule keeps the pod from later rules",
       {on_codes(kCount, in({2})), fail_job(in({2}))},
       failed({ended("main", 2)}),
       kCount,
       "Container main for pod ns/train-1 failed with exit code 2 matching Count rule at index 0"},
      {"FailIndex on an exit code",
       {on_codes(kFailIndex, in({2}))},
       failed({ended("main", 2)}),
       kFailIndex,
       "Container main for pod ns/train-1 failed with exit code 2 matching FailIndex rule at index "
       "0"},
      {"FailIndex on a condition",
       {on_conditions(kFailIndex, {disrupted})},
       failed({}, {disrupted}),
       kFailIndex,
       "Pod ns/train-1 has condition DisruptionTarget matching FailIndex rule at index 0"},
      {"a rule with both uses its exit codes alone",
       {[&] {
         PolicyRule rule = fail_job(in({7}));
         rule.conditions = {disrupted};
         return rule;
       }()},
       failed({ended("main", 2)}, {disrupted}),
       kCount,
       kNoRule},
      {"a rule with neither matches nothing",
       {on_conditions(kFailJob, {})},
       failed({ended("main", 2)}, {disrupted}),
       kCount,
       kNoRule},
  });
}

TEST(FailurePolicy, OnlyPodsWhosePhaseIsFailedAreJudged) {
  const PodCondition disrupted{"DisruptionTarget", "True"};
  PodView pod = failed({ended("main", 42)}, {disrupted});
  for (const PodPhase phase :
       {PodPhase::kPending, PodPhase::kRunning, PodPhase::kSucceeded, PodPhase::kUnknown}) {
    pod.phase = phase;
    for (const PolicyRule& rule :
         {fail_job(in({42})), on_conditions(PolicyAction::kFailJob, {disrupted})}) {
      const PolicyMatch found = match({rule}, pod);
      EXPECT_EQ(found.action, PolicyAction::kCount) << to_string(phase);
      EXPECT_EQ(found.message, kNoRule) << to_string(phase);
    }
  }
}

// The container that a FailJob rule on these exit codes blames, with its exit code; "": none.
std::string blamed(const ExitCodes& codes, const PodView& pod) {
  const std::string message = match({fail_job(codes)}, pod).message;
  const std::string before = "Container ";
  const std::string between = " for pod ns/train-1 failed with exit code ";
  const std::string after = " matching FailJob rule at index 0";
  if (message.empty()) return "";
  const std::size_t middle = message.find(between);
  const std::size_t end = message.find(after);
  if (middle == std::string::npos || end == std::string::npos) return message;
  return message.substr(before.size(), middle - before.size()) + " " +
         message.substr(middle + between.size(), end - middle - between.size());
}

struct CodesCase {
  const char* rule;
  ExitCodes codes;
  std::vector<ContainerView> containers;
  std::string blamed;
};

void check(const std::vector<CodesCase>& cases) {
  for (const CodesCase& one : cases) {
    EXPECT_EQ(blamed(one.codes, failed(one.containers)), one.blamed) << one.rule;
  }
}

TEST(FailurePolicy, ExitCodesAreListedOrNotListed) {
  check({
      {"In: a listed code", in({1, 42}), {ended("main", 42)}, "main 42"},
      {"In: another code", in({1, 42}), {ended("main", 2)}, ""},
      {"NotIn: a listed code", not_in({1, 42}), {ended("main", 42)}, ""},
      {"NotIn: another code", not_in({1, 42}), {ended("main", 2)}, "main 2"},
      {"negative codes exist on Windows",
       in({-1073741676, -1073741510}),
       {ended("main", -1073741510)},
       "main -1073741510"},
      {"a success is no exit code, listed or not", in({0}), {ended("main", 0)}, ""},
      {"NotIn skips containers that succeeded",
       not_in({111}),
       {ended("load", 0, Kind::kInit), ended("main", 111), ended("support", 0)},
       ""},
      {"NotIn 0 is any failure", not_in({0}), {ended("support", 0), ended("main", 1)}, "main 1"},
  });
}

TEST(FailurePolicy, TheFirstContainerThatMatchesIsBlamedRegularOnesFirst) {
  const auto init = [](const std::string& name, int code) {
    return ended(name, code, Kind::kInit);
  };
  check({
      {"the first of two", in({2, 3}), {ended("a", 3), ended("b", 2)}, "a 3"},
      {"a container that does not match is passed over",
       in({3}),
       {ended("a", 2), ended("b", 3)},
       "b 3"},
      {"a container that runs has no exit code",
       not_in({9}),
       {container("a"), ended("b", 3)},
       "b 3"},
      {"an init container", in({3}), {init("load", 3), container("main")}, "load 3"},
      {"a regular container before an init container",
       in({2, 3}),
       {init("load", 3), ended("main", 2)},
       "main 2"},
      {"an init container if no regular one matches",
       in({3}),
       {init("load", 3), ended("main", 2)},
       "load 3"},
      {"a sidecar as any init container",
       not_in({1}),
       {ended("proxy", 143, Kind::kSidecar), ended("main", 1)},
       "proxy 143"},
      {"a pod without containers", not_in({1}), {}, ""},
  });
}

TEST(FailurePolicy, ANamedContainerAloneIsLookedAt) {
  const std::vector<ContainerView> pod = {ended("load", 3, Kind::kInit), ended("main", 2),
                                          ended("support", 3)};
  check({
      {"its own code", in({3}, "support"), pod, "support 3"},
      {"not another container's", in({3}, "main"), pod, ""},
      {"an init container", in({2, 3}, "load"), pod, "load 3"},
      {"NotIn", not_in({3}, "main"), pod, "main 2"},
      {"a name that no container has", not_in({9}, "gone"), pod, ""},
  });
}

TEST(FailurePolicy, AnExitCodeThatIsNotTheWorkloadsMatchesNoRule) {
  ContainerView fenced = ended("main", kFencedExitCode);
  fenced.worker = true;
  fenced.terminated->message = std::string(kFencedMark) + "the Lease was lost";
  ContainerView no_worker = fenced;
  no_worker.worker = false;
  const ExitCodes other_than_1 = not_in({1});
  check({
      {"the kubelet did not see the end", in({137}), {unseen_end(137)}, ""},
      {"nor does it count for NotIn", other_than_1, {unseen_end(137)}, ""},
      {"a runtime that lost the container", other_than_1, {unseen_end(255)}, ""},
      {"a kill that the kubelet saw", in({137}), {out_of_memory()}, "main 137"},
      {"another container's end was seen",
       other_than_1,
       {unseen_end(137), ended("support", 3)},
       "support 3"},
      {"the agent stopped the worker", other_than_1, {fenced}, ""},
      {"the workload's own 85", in({85}), {ended("main", 85)}, "main 85"},
      {"only the worker has an agent", in({85}), {no_worker}, "main 85"},
  });
  const PodCondition disrupted{"DisruptionTarget", "True"};
  EXPECT_EQ(match({on_conditions(PolicyAction::kIgnore, {disrupted})},
                  failed({unseen_end(137)}, {disrupted}))
                .action,
            PolicyAction::kIgnore)
      << "its conditions are the pod's own";
}

TEST(FailurePolicy, AConditionMatchesByTypeAndStatus) {
  for (const char* wanted : {"True", "False", "Unknown"}) {
    for (const char* actual : {"True", "False", "Unknown"}) {
      const PolicyMatch found =
          match({on_conditions(PolicyAction::kIgnore, {{"DisruptionTarget", wanted}})},
                failed({}, {{"DisruptionTarget", actual}}));
      EXPECT_EQ(found.action == PolicyAction::kIgnore, std::string(wanted) == actual)
          << wanted << ", and the pod has " << actual;
    }
  }
  const PolicyRule either = on_conditions(PolicyAction::kFailJob,
                                          {{"ConfigIssue", "True"}, {"DisruptionTarget", "True"}});
  EXPECT_EQ(match({either}, failed({}, {{"Ready", "True"}})).message, kNoRule);
  EXPECT_EQ(
      match({either}, failed({}, {{"ConfigIssue", "False"}, {"DisruptionTarget", "True"}})).message,
      "Pod ns/train-1 has condition DisruptionTarget matching FailJob rule at index 0")
      << "one of the patterns is enough";
  EXPECT_EQ(
      match({either}, failed({}, {{"DisruptionTarget", "True"}, {"ConfigIssue", "True"}})).message,
      "Pod ns/train-1 has condition DisruptionTarget matching FailJob rule at index 0")
      << "the message names the pod's first condition that matches";
}

TEST(FailurePolicy, FailIndexCountsWithoutALimitForEachIndex) {
  Spec spec;
  spec.pod_failure_policy = {on_codes(PolicyAction::kFailIndex, in({2})), fail_job(in({2}))};
  const PodView pod = failed({ended("main", 2)});
  const std::string message =
      "Container main for pod ns/train-1 failed with exit code 2 matching FailIndex rule at index 0";
  PolicyMatch found = match_failure_policy(spec, "ns", pod);
  EXPECT_EQ(found.action, PolicyAction::kCount) << "and later rules stay unused";
  EXPECT_EQ(found.message, message);
  spec.backoff_limit_per_index = 0;
  found = match_failure_policy(spec, "ns", pod);
  EXPECT_EQ(found.action, PolicyAction::kFailIndex);
  EXPECT_EQ(found.message, message);
}

}  // namespace
}  // namespace holdfast::reconciler
