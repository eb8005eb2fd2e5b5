// The targets and selectors of requests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "tests/simulation/server/resources.h"

namespace holdfast::simulation {

struct Target {
  const Resource* resource = nullptr;  // null: nothing is served there
  std::string namespace_;
  std::string name;
  std::string subresource;
  std::map<std::string, std::string> query;

  std::string value(const std::string& parameter) const;  // "" when absent
  bool has(const std::string& parameter) const { return query.count(parameter) > 0; }
  bool is_true(const std::string& parameter) const;
};
Target parse_target(std::string_view target);

// A label or field selector: all requirements must hold.
struct Requirement {
  enum class Operator { kExists, kAbsent, kIn, kNotIn };
  std::string key;
  Operator op = Operator::kExists;
  std::vector<std::string> values;
};
using Selector = std::vector<Requirement>;

// No value: malformed.
std::optional<Selector> parse_label_selector(std::string_view text);
std::optional<Selector> parse_field_selector(std::string_view text);

// The limits of a list or watch.
struct Filter {
  std::string namespace_;  // "": all
  Selector labels;
  Selector fields;
  bool matches(const Json& object) const;
};

// Parses a version; 0 for "". No value: not a version.
std::optional<std::uint64_t> parse_version(const std::string& text);

}  // namespace holdfast::simulation
