// The CEL rules of the DurableJob's definition on jobs with many runs: which fields go together,
// and which never change.
#include <algorithm>
#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "tests/simulation/server/custom_schema.h"

namespace holdfast::simulation {
namespace {

void refuse(Causes& causes, const std::string& field, const char* message) {
  causes.push_back({"FieldValueInvalid", field, std::string("Invalid value: ") + message});
}

std::int64_t completions_of(const Json& spec) { return int_at(spec, "completions", 1); }

// Takes up to five digits from the front; -1: there are none, or more.
std::int64_t take_number(std::string_view& text) {
  std::size_t digits = 0;
  std::int64_t number = 0;
  while (digits < text.size() && std::isdigit(static_cast<unsigned char>(text[digits])) != 0) {
    if (digits == 5) return -1;
    number = number * 10 + (text[digits++] - '0');
  }
  text.remove_prefix(digits);
  return digits == 0 ? -1 : number;
}

// "1,3-5". `sorted`: no number is less than the one before it.
bool is_index_list(std::string_view text, std::int64_t limit, bool sorted) {
  std::int64_t last = 0;
  bool in_range = false;
  while (true) {
    const std::int64_t number = take_number(text);
    if (number < 0 || (sorted && number < last)) return false;
    last = number;
    if (text.empty()) return last < limit;
    const bool dash = text.front() == '-';
    if ((!dash && text.front() != ',') || (dash && in_range)) return false;
    in_range = dash;
    text.remove_prefix(1);
  }
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
  const bool indexes = std::all_of(rules.begin(), rules.end(), [&](const Json& rule) {
    return !rule.contains("succeededIndexes") ||
           is_index_list(string_at(rule, "succeededIndexes"), limit, false);
  });
  const bool counts = std::all_of(rules.begin(), rules.end(), [&](const Json& rule) {
    return int_at(rule, "succeededCount", 0) <= limit;
  });
  if (!indexes) refuse(causes, "spec.successPolicy.rules", "succeededIndexes are numbers");
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
  if (spec.contains("indexes") &&
      !is_index_list(string_at(spec, "indexes"), completions_of(spec), true)) {
    refuse(causes, "spec.indexes", "indexes are numbers and ranges");
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
