// The structural OpenAPI schema of a CustomResourceDefinition: pruning, defaults, validation. No
// CEL rules.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/simulation/server/status.h"

namespace holdfast::simulation {

// The CRDs here are those of a newer version, which the operator does not know: each object has
// this field, too.
inline constexpr const char* kNewerField = "fromNewer";
// The user that writes it into statuses.
inline constexpr const char* kNewerUser = "newer";

class Schema {
 public:
  explicit Schema(const Json& text);

  // Drops unknown fields.
  void prune(Json& value) const;
  void fill_defaults(Json& value) const;
  // The default of a field; null: none.
  const Json& own_default() const { return default_; }
  void validate(const Json& value, const std::string& path, Causes& causes) const;

  const Schema* property(const std::string& name) const;

 private:
  bool has_type(const Json& value) const;
  void validate_string(const std::string& text, const std::string& path, Causes& causes) const;
  void validate_number(const Json& value, const std::string& path, Causes& causes) const;
  void validate_object(const Json& value, const std::string& path, Causes& causes) const;
  void validate_array(const Json& value, const std::string& path, Causes& causes) const;
  void validate_keys(const Json& value, const std::string& path, Causes& causes) const;

  std::string type_;
  std::string format_;
  bool nullable_ = false;
  bool int_or_string_ = false;
  bool preserve_unknown_ = false;
  std::map<std::string, Schema> properties_;
  std::unique_ptr<Schema> additional_;
  std::unique_ptr<Schema> items_;
  std::vector<std::string> required_;
  std::vector<Json> allowed_;
  Json default_;
  std::optional<double> minimum_;
  std::optional<double> maximum_;
  std::optional<std::size_t> min_length_;
  std::optional<std::size_t> max_length_;
  std::optional<std::regex> pattern_;
  std::optional<std::size_t> min_items_;
  std::optional<std::size_t> max_items_;
  std::string list_type_;
  std::vector<std::string> map_keys_;
};

}  // namespace holdfast::simulation
