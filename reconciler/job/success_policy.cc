#include "reconciler/job/success_policy.h"

#include <algorithm>

namespace holdfast::reconciler {
namespace {

bool is_met(const SuccessRule& rule, const IndexSet& completed) {
  if (!rule.indexes) return rule.count && completed.size() >= *rule.count;
  if (rule.indexes->empty()) return false;
  if (!rule.count || *rule.count >= rule.indexes->size()) return completed.includes(*rule.indexes);
  return completed.size() >= *rule.count && completed.common(*rule.indexes) >= *rule.count;
}

}  // namespace

std::optional<std::string> match_success_policy(const Spec& spec, const IndexSet& completed) {
  if (completed.empty()) return std::nullopt;
  const auto& rules = spec.success_policy;
  const auto met = std::find_if(rules.begin(), rules.end(),
                                [&](const SuccessRule& rule) { return is_met(rule, completed); });
  if (met == rules.end()) return std::nullopt;
  return "Matched rules at index " + std::to_string(met - rules.begin());
}

}  // namespace holdfast::reconciler
