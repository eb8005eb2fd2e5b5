// The CEL rules of the DurableJob's definition on jobs with many runs: which fields go together,
// and which never change.
#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>

#include "tests/simulation/server/custom_schema.h"

namespace holdfast::simulation {
namespace {

std::int64_t completions_of(const Json& spec) { return int_at(spec, "completions", 1); }

// What a rule says of a list of indexes. One that cannot read a number fails itself.
enum class Says { kYes, kNo, kError };

// "1,3-5": numbers that rise and are below the limit. isSorted() takes equal numbers, and for those
// only short lists are searched.
Says say_of_list(std::string text, std::int64_t limit, std::size_t short_list) {
  std::replace(text.begin(), text.end(), '-', ',');
  std::vector<std::int64_t> numbers;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view part = std::string_view(text).substr(begin, end - begin);
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error != std::errc() || rest != part.data() + part.size()) return Says::kError;
    numbers.push_back(number);
    begin = end + 1;
  }
  const bool rises = std::is_sorted(numbers.begin(), numbers.end());
  const bool twice = std::adjacent_find(numbers.begin(), numbers.end()) != numbers.end();
  const bool is_right = rises && numbers.back() < limit && (numbers.size() > short_list || !twice);
  return is_right ? Says::kYes : Says::kNo;
}

void report_list(Causes& causes, Says says, const std::string& path, const char* why) {
  if (says == Says::kNo) refuse(causes, path, why);
  if (says == Says::kError)
    causes.push_back({"FieldValueInvalid", "<nil>", "rule evaluation error"});
}

void check_success_rules(const Json& rules, Causes& causes) {
  std::size_t index = 0;
  for (const Json& rule : rules) {
    const std::string here = "spec.successPolicy.rules[" + std::to_string(index++) + "]";
    if (rule.contains("succeededIndexes") || rule.contains("succeededCount")) continue;
    refuse(causes, here, "a rule needs succeededIndexes, succeededCount or both");
  }
}

void check_success_limits(const Json& spec, Causes& causes) {
  const std::int64_t limit = completions_of(spec);
  const Json& rules = at(at(spec, "successPolicy"), "rules");
  // One that is wrong decides, whatever the others are.
  Says indexes = Says::kYes;
  for (const Json& rule : rules) {
    if (!rule.contains("succeededIndexes") || indexes == Says::kNo) continue;
    const Says says = say_of_list(string_at(rule, "succeededIndexes"), limit, 100);
    if (says != Says::kYes) indexes = says;
  }
  const bool counts = std::all_of(rules.begin(), rules.end(), [&](const Json& rule) {
    return int_at(rule, "succeededCount", 0) <= limit;
  });
  report_list(causes, indexes, "spec.successPolicy.rules", "succeededIndexes are numbers");
  if (!counts) refuse(causes, "spec.successPolicy.rules", "succeededCount is at most completions");
}

void check_failure_rules(const Json& rules, Causes& causes) {
  std::size_t index = 0;
  for (const Json& rule : rules) {
    const std::string here = "spec.podFailurePolicy.rules[" + std::to_string(index++) + "]";
    const Json& codes = at(rule, "onExitCodes");
    if (codes.is_object() == !at(rule, "onPodConditions").empty()) {
      refuse(causes, here, "a rule has either onExitCodes or onPodConditions");
    }
    if (string_at(rule, "action") != "Defer" &&
        (rule.contains("deferSeconds") || rule.contains("deferLimit"))) {
      refuse(causes, here + ".action", "deferSeconds and deferLimit are for the action Defer");
    }
    const Json& values = at(codes, "values");
    const bool zero = std::find(values.begin(), values.end(), Json(0)) != values.end();
    if (string_at(codes, "operator") == "In" && zero) {
      refuse(causes, here + ".onExitCodes.values", "0 does not go with the operator In");
    }
    if (!std::is_sorted(values.begin(), values.end())) {
      refuse(causes, here + ".onExitCodes.values", "values must be in rising order");
    }
  }
}

void check_containers(const Json& spec, Causes& causes) {
  std::set<std::string> names;
  const Json& pod = at(at(spec, "template"), "spec");
  for (const char* list : {"containers", "initContainers"}) {
    for (const Json& container : at(pod, list)) names.insert(string_at(container, "name"));
  }
  for (const Json& rule : at(at(spec, "podFailurePolicy"), "rules")) {
    const Json& codes = at(rule, "onExitCodes");
    if (!codes.contains("containerName")) continue;
    if (names.contains(string_at(codes, "containerName"))) continue;
    return refuse(causes, "spec.podFailurePolicy.rules", "containerName must be a container");
  }
}

// These are about fields that never change, or only while a job is suspended.
void check_new(const Json& job, Causes& causes) {
  const Json& spec = at(job, "spec");
  const bool indexed = string_at(spec, "completionMode") == "Indexed";
  const std::string name = string_at(at(job, "metadata"), "name");
  const std::string last = std::to_string(completions_of(spec) - 1);
  if (indexed && name.size() + 1 + last.size() > 63) {
    refuse(causes, "metadata.name", "the name is too long for an Indexed job");
  }
  if (!indexed && (spec.contains("indexes") || spec.contains("backoffLimitPerIndex") ||
                   spec.contains("successPolicy"))) {
    refuse(causes, "spec.completionMode", "these fields need a job with indexes");
  }
  if (spec.contains("indexes")) {
    const Says says = say_of_list(string_at(spec, "indexes"), completions_of(spec), 300);
    report_list(causes, says, "spec.indexes", "indexes are numbers and ranges");
  }
  check_success_limits(spec, causes);
  const Json& rules = at(at(spec, "podFailurePolicy"), "rules");
  const bool fails_indexes = std::any_of(rules.begin(), rules.end(), [](const Json& rule) {
    return string_at(rule, "action") == "FailIndex";
  });
  if (fails_indexes && !spec.contains("backoffLimitPerIndex")) {
    refuse(causes, "spec.podFailurePolicy.rules", "FailIndex needs backoffLimitPerIndex");
  }
}

}  // namespace

void check_run_rules(const Json& job, bool is_new, bool template_may_differ, Causes& causes) {
  const Json& spec = at(job, "spec");
  // completions may differ whenever the template may, and what names indexes is asked again.
  if (is_new || template_may_differ) check_new(job, causes);
  if (template_may_differ && spec.contains("template")) check_containers(spec, causes);
  if (int_at(spec, "parallelism", 1) > 1 && !spec.contains("completions")) {
    refuse(causes, "spec.parallelism", "parallelism above 1 needs completions");
  }
  if (spec.contains("maxFailedIndexes") &&
      (!spec.contains("backoffLimitPerIndex") ||
       int_at(spec, "maxFailedIndexes") > completions_of(spec))) {
    refuse(causes, "spec.maxFailedIndexes", "maxFailedIndexes needs backoffLimitPerIndex");
  }
  check_failure_rules(at(at(spec, "podFailurePolicy"), "rules"), causes);
  check_success_rules(at(at(spec, "successPolicy"), "rules"), causes);
}

void check_run_changes(const Json& spec, const Json& old, bool is_suspended, Causes& causes) {
  for (const char* field : {"completions", "completionMode", "indexes", "backoffLimitPerIndex",
                            "podFailurePolicy", "successPolicy"}) {
    if (at(spec, field) == at(old, field)) continue;
    const bool is_kept = spec.contains(field) == old.contains(field);
    if (is_suspended && is_kept && std::string(field) == "completions") continue;
    causes.push_back({"FieldValueForbidden", std::string("spec.") + field,
                      std::string("Forbidden: ") + field + " is immutable"});
  }
}

}  // namespace holdfast::simulation
