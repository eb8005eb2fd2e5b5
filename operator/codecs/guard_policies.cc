#include "operator/codecs/guard_policies.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <optional>

#include "core/json.h"

namespace holdfast::codecs {
namespace {

constexpr const char* kPolicies = "validatingadmissionpolicies";
constexpr const char* kBindings = "validatingadmissionpolicybindings";
constexpr const char* kVersion = "holdfast.dev/version";

// Members of a policy, of what it matches and of a binding that can let writes pass. Others that a
// later Kubernetes may add say nothing about ours.
constexpr std::string_view kWeakening[] = {
    "excludeResourceRules", "matchConditions", "matchExpressions", "matchLabels",
    "matchResources",       "paramKind",       "paramRef",         "resourceNames"};
// The rules themselves, which are a later version's own.
constexpr std::string_view kRules[] = {"validations", "variables"};

#include "operator/codecs/guard_policies.inc"

bool says_nothing(const JsonView& value) {
  if (value.is_null() || value == "") return true;
  if (value.is_array()) return value.empty();
  bool has_members = false;
  for_each_member(value, [&](std::string_view, const JsonView&) { has_members = true; });
  return value.is_object() && !has_members;
}

template <class List>
bool is_among(const List& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// Of which version the found object is.
enum class Other { kNone, kAnother };

bool is_same(const Json& shipped, const JsonView& found, Other other);

// Another version may match more, and has rules of its own: some, at least.
bool has_rules_of_another(std::string_view name, const JsonView& found) {
  return name != "validations" || (found.is_array() && !found.empty());
}
bool has_all(const Json& shipped, const JsonView& found, Other other) {
  return std::all_of(shipped.begin(), shipped.end(), [&](const Json& one) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (is_same(one, found[i], other)) return true;
    }
    return false;
  });
}

bool is_same(const Json& shipped, const JsonView& found, Other other) {
  if (shipped.is_object()) {
    bool same = found.is_object() || shipped.empty();
    for (const auto& [name, value] : shipped.items()) {
      const bool is_its_own = other == Other::kAnother && is_among(kRules, name);
      same = same && (is_its_own ? has_rules_of_another(name, at(found, name))
                                 : is_same(value, at(found, name), other));
    }
    for_each_member(found, [&](std::string_view name, const JsonView& value) {
      const bool weakens = !shipped.contains(name) && is_among(kWeakening, name);
      same = same && (!weakens || says_nothing(value));
    });
    return same;
  }
  if (shipped.is_array() && other == Other::kAnother) {
    return found.is_array() && has_all(shipped, found, other);
  }
  if (shipped.is_array()) {
    bool same = found.is_array() && found.size() == shipped.size();
    for (std::size_t i = 0; same && i < shipped.size(); ++i) {
      same = is_same(shipped[i], found[i], other);
    }
    return same;
  }
  return found.is_string() && found == shipped.get_ref<const std::string&>();
}

using Version = std::array<int, 3>;

std::optional<Version> parse_version(std::string_view text) {
  Version version{};
  for (int& part : version) {
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), part);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    if (text.starts_with('.')) text.remove_prefix(1);
  }
  return version;
}

// A later version, or another pre-release of the same (0.4.0-rc1 and 0.4.0), in either order.
bool may_differ(std::string_view one, std::string_view ours) {
  const std::optional<Version> first = parse_version(one);
  const std::optional<Version> second = parse_version(ours);
  return first && second && (*first > *second || (*first == *second && one != ours));
}

}  // namespace

std::span<const GuardObject> guard_objects() { return kShipped; }

bool is_guard_refusal(std::string_view message) {
  const std::size_t named = message.find("'holdfast-guard-");
  const std::size_t why = message.find("denied request: ", named == message.npos ? 0 : named);
  if (named == message.npos || why == message.npos) return false;
  const std::string_view rule = message.substr(why + std::string_view("denied request: ").size());
  return rule.starts_with("spec.") || rule.starts_with("metadata.");
}

std::string guard_fault(const GuardObject& shipped, const JsonView& found,
                        std::string_view version) {
  const std::string which = std::string(shipped.resource == std::string_view(kPolicies)
                                            ? "ValidatingAdmissionPolicy "
                                            : "ValidatingAdmissionPolicyBinding ") +
                            shipped.name;
  if (!found.is_object()) return "there is no " + which;
  const JsonView metadata = at(found, "metadata");
  if (!at(metadata, "deletionTimestamp").is_null()) return which + " is being deleted";
  const Result<Json> spec = parse_json(shipped.spec);
  const bool may = may_differ(string_at(at(metadata, "annotations"), kVersion), version);
  const Other other = may ? Other::kAnother : Other::kNone;
  if (spec.ok() && is_same(*spec, at(found, "spec"), other)) return "";
  return which + " is not as this version of Holdfast ships it";
}

}  // namespace holdfast::codecs
