// Counts of runs, and the policies about failed and replaced pods.
#include <algorithm>
#include <array>

#include "lane/mapping.h"
#include "reconciler/types.h"

namespace holdfast::lane {
namespace {

constexpr std::size_t kJobNameLimit = 63;  // of a DNS label

bool is_about_disruption(const Json& rule) {
  const Json& conditions = at(rule, "onPodConditions");
  return conditions.is_array() && conditions.size() == 1 &&
         string_at(conditions[0], "type") == "DisruptionTarget" &&
         string_at(conditions[0], "status", "True") == "True";
}

// batch/v1 counts an evicted pod against backoffLimit unless a rule ignores it. Here it is a loss
// in any case. Count keeps such a pod away from the rules about exit codes.
void convert_disruption_rule(Json& spec, Differences& differences) {
  Json& rules = spec["podFailurePolicy"]["rules"];
  const auto rule = std::find_if(rules.begin(), rules.end(), [](const Json& one) {
    return string_at(one, "action") == "Ignore" && is_about_disruption(one);
  });
  if (rule == rules.end()) return;
  if (rules.size() == 1) {
    spec.erase("podFailurePolicy");
    differences.notes.emplace_back(
        "podFailurePolicy is dropped: it only ignored DisruptionTarget, and such pods are losses "
        "here, which cost no backoffLimit");
    return;
  }
  Json count = *rule;
  count["action"] = "Count";
  rules.erase(rule);
  rules.insert(rules.begin(), std::move(count));
  differences.notes.emplace_back(
      "the rule that ignores DisruptionTarget counts now, and is first: such pods are losses here, "
      "which cost disruptionLimit and no backoffLimit");
}

constexpr std::array<std::string_view, 12> kShared = {
    "template",         "completions",   "parallelism",          "completionMode",
    "backoffLimit",     "suspend",       "maxFailedIndexes",     "backoffLimitPerIndex",
    "podFailurePolicy", "successPolicy", "podReplacementPolicy", "activeDeadlineSeconds"};

constexpr const char* kDeadline = "activeDeadlineSeconds";
constexpr std::int64_t kLongestDeadline = 2'147'483'647;

}  // namespace

bool is_shared_field(std::string_view name) {
  return std::find(kShared.begin(), kShared.end(), name) != kShared.end();
}

void convert_deadline(Json& spec, Differences& differences) {
  if (!at(spec, kDeadline).is_number_integer()) return;
  const std::int64_t given = int_at(spec, kDeadline);
  const std::int64_t taken = std::clamp<std::int64_t>(given, 1, kLongestDeadline);
  if (taken == given) return;
  spec[kDeadline] = taken;
  differences.notes.push_back("activeDeadlineSeconds is " + std::to_string(taken) +
                              " now: a DurableJob takes 1 to 2147483647");
}

void convert_policies(Json& spec, Differences& differences) {
  const std::string replacement = string_at(spec, "podReplacementPolicy");
  if (at(at(spec, "podFailurePolicy"), "rules").is_array()) {
    if (replacement.empty()) {
      differences.notes.emplace_back(
          "podReplacementPolicy is TerminatingOrFailed, it was Failed with a podFailurePolicy: an "
          "old pod may still run when the next one starts; set Failed if they must not overlap");
    }
    convert_disruption_rule(spec, differences);
  }
  if (replacement == "Failed") {
    differences.notes.emplace_back(
        "podReplacementPolicy: Failed stays: on a dead node a pod never ends, and the job waits "
        "until the node's object is deleted; leave the field out if two pods may overlap");
  }
}

void convert_runs(const Json& metadata, Json& spec, Differences& differences) {
  const bool has_completions = at(spec, "completions").is_number_integer();
  const std::int64_t completions = int_at(spec, "completions", 1);
  const std::int64_t parallelism = int_at(spec, "parallelism", 1);
  if (parallelism > 1 && !has_completions) {
    differences.refuse(
        "parallelism",
        "this is a work queue (parallelism without completions), which DurableJobs do not have: set "
        "spec.completions to the number of pods that must succeed, or keep the Job");
  }
  if (has_completions && completions == 0) {
    differences.errors.emplace_back(
        "completions is 0, and such a Job has nothing to do: set spec.completions to 1 or more");
  }
  if (completions > reconciler::kCompletionsLimit) {
    differences.errors.emplace_back(
        "completions is above 100,000: split the work into several jobs");
  }
  if (parallelism > reconciler::kParallelismLimit) {
    spec["parallelism"] = reconciler::kParallelismLimit;
    differences.notes.emplace_back("parallelism is 1000 now: no DurableJob has more pods at once");
  }
  const std::string name = string_at(metadata, "name");
  const bool indexed = string_at(spec, "completionMode") == "Indexed";
  const std::size_t tail =
      indexed ? 1 + std::to_string(std::max<std::int64_t>(completions - 1, 0)).size() : 0;
  if (name.size() + tail > kJobNameLimit) {
    differences.errors.push_back("metadata.name is too long: use at most " +
                                 std::to_string(kJobNameLimit - tail) +
                                 " characters, because the names of pods are made from it");
  }
}

}  // namespace holdfast::lane
