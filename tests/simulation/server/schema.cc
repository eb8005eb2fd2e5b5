#include "tests/simulation/server/schema.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/time.h"

namespace holdfast::simulation {
namespace {

std::optional<std::size_t> size_at(const Json& json, const char* key) {
  const Json& value = at(json, key);
  if (!value.is_number()) return std::nullopt;
  return value.get<std::size_t>();
}

std::optional<double> number_at(const Json& json, const char* key) {
  const Json& value = at(json, key);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

// RE2's syntax, of which the definition uses what ECMAScript has too.
std::optional<std::regex> pattern_at(const Json& json) {
  const Json& value = at(json, "pattern");
  if (!value.is_string()) return std::nullopt;
  return std::regex(value.get<std::string>());
}

std::vector<std::string> strings_at(const Json& json, const char* key) {
  std::vector<std::string> strings;
  for (const Json& value : at(json, key)) strings.push_back(value.get<std::string>());
  return strings;
}

// In code points, as the API server counts.
std::size_t length_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string below(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "." + name;
}

std::string element(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

bool is_whole(const Json& value) {
  if (value.is_number_integer()) return true;
  return value.is_number_float() && std::floor(value.get<double>()) == value.get<double>();
}

}  // namespace

Schema::Schema(const Json& text)
    : type_(string_at(text, "type")),
      format_(string_at(text, "format")),
      nullable_(bool_at(text, "nullable")),
      int_or_string_(bool_at(text, "x-kubernetes-int-or-string")),
      preserve_unknown_(bool_at(text, "x-kubernetes-preserve-unknown-fields")),
      required_(strings_at(text, "required")),
      default_(at(text, "default")),
      minimum_(number_at(text, "minimum")),
      maximum_(number_at(text, "maximum")),
      min_length_(size_at(text, "minLength")),
      max_length_(size_at(text, "maxLength")),
      pattern_(pattern_at(text)),
      min_items_(size_at(text, "minItems")),
      max_items_(size_at(text, "maxItems")),
      list_type_(string_at(text, "x-kubernetes-list-type")),
      map_keys_(strings_at(text, "x-kubernetes-list-map-keys")) {
  for (const auto& [name, property] : at(text, "properties").items()) {
    properties_.emplace(name, Schema(property));
  }
  for (const Json& value : at(text, "enum")) allowed_.push_back(value);
  if (at(text, "additionalProperties").is_object()) {
    additional_ = std::make_unique<Schema>(at(text, "additionalProperties"));
  }
  if (at(text, "items").is_object()) items_ = std::make_unique<Schema>(at(text, "items"));
}

const Schema* Schema::property(const std::string& name) const {
  const auto found = properties_.find(name);
  return found == properties_.end() ? nullptr : &found->second;
}

void Schema::prune(Json& value) const {
  if (value.is_array() && items_) {
    for (Json& item : value) items_->prune(item);
  }
  if (!value.is_object()) return;
  for (auto member = value.begin(); member != value.end();) {
    if (const Schema* const known = property(member.key())) {
      known->prune(member.value());
      ++member;
    } else if (additional_) {
      additional_->prune(member.value());
      ++member;
    } else if (preserve_unknown_ || member.key() == kNewerField) {
      ++member;
    } else {
      member = value.erase(member);
    }
  }
}

void Schema::fill_defaults(Json& value) const {
  if (value.is_array() && items_) {
    for (Json& item : value) items_->fill_defaults(item);
  }
  if (!value.is_object()) return;
  for (const auto& [name, property] : properties_) {
    const auto member = value.find(name);
    const bool missing = member == value.end() || (member->is_null() && !property.nullable_);
    if (!property.default_.is_null() && missing) value[name] = property.default_;
    const auto filled = value.find(name);
    if (filled != value.end()) property.fill_defaults(*filled);
  }
  if (!additional_) return;
  for (auto& [name, member] : value.items()) {
    if (!property(name)) additional_->fill_defaults(member);
  }
}

bool Schema::has_type(const Json& value) const {
  if (int_or_string_) return value.is_string() || value.is_number_integer();
  if (type_ == "object") return value.is_object();
  if (type_ == "array") return value.is_array();
  if (type_ == "string") return value.is_string();
  if (type_ == "boolean") return value.is_boolean();
  if (type_ == "integer") return is_whole(value);
  if (type_ == "number") return value.is_number();
  return true;
}

void Schema::validate(const Json& value, const std::string& path, Causes& causes) const {
  if (value.is_null() && nullable_) return;
  if (!has_type(value)) {
    const bool fraction = type_ == "integer" && value.is_number();
    causes.push_back({fraction ? "FieldValueInvalid" : "FieldValueTypeInvalid", path,
                      "Invalid value: must be of type " + type_});
    return;
  }
  if (!allowed_.empty() && std::find(allowed_.begin(), allowed_.end(), value) == allowed_.end()) {
    causes.push_back({"FieldValueNotSupported", path, "Unsupported value: " + value.dump()});
  }
  if (value.is_string()) validate_string(value.get_ref<const std::string&>(), path, causes);
  if (value.is_number()) validate_number(value, path, causes);
  if (value.is_object()) validate_object(value, path, causes);
  if (value.is_array()) validate_array(value, path, causes);
}

void Schema::validate_string(const std::string& text, const std::string& path,
                             Causes& causes) const {
  if (max_length_ && length_of(text) > *max_length_) {
    causes.push_back({"FieldValueTooLong", path,
                      "Too long: may not be more than " + std::to_string(*max_length_)});
  }
  if (min_length_ && length_of(text) < *min_length_) {
    causes.push_back({"FieldValueInvalid", path, "Invalid value: is too short"});
  }
  if (pattern_ && !std::regex_search(text, *pattern_)) {
    causes.push_back({"FieldValueInvalid", path, "Invalid value: should match a pattern"});
  }
  if (format_ == "date-time" && !parse_time(text)) {
    causes.push_back({"FieldValueTypeInvalid", path, "Invalid value: must be of type date-time"});
  }
}

void Schema::validate_number(const Json& value, const std::string& path, Causes& causes) const {
  const double number = value.get<double>();
  if (minimum_ && number < *minimum_) {
    causes.push_back({"FieldValueInvalid", path, "Invalid value: is too small"});
  }
  if (maximum_ && number > *maximum_) {
    causes.push_back({"FieldValueInvalid", path, "Invalid value: is too large"});
  }
}

void Schema::validate_object(const Json& value, const std::string& path, Causes& causes) const {
  for (const std::string& name : required_) {
    if (!value.contains(name)) {
      causes.push_back({"FieldValueRequired", below(path, name), "Required value"});
    }
  }
  for (const auto& [name, member] : value.items()) {
    if (const Schema* const known = property(name)) {
      known->validate(member, below(path, name), causes);
    } else if (additional_) {
      additional_->validate(member, below(path, name), causes);
    }
  }
}

void Schema::validate_array(const Json& value, const std::string& path, Causes& causes) const {
  if (max_items_ && value.size() > *max_items_) {
    causes.push_back({"FieldValueTooMany", path,
                      "Too many: must have at most " + std::to_string(*max_items_) + " items"});
  }
  if (min_items_ && value.size() < *min_items_) {
    causes.push_back({"FieldValueInvalid", path,
                      "Invalid value: should have at least " + std::to_string(*min_items_)});
  }
  if (items_) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      items_->validate(value[i], element(path, i), causes);
    }
  }
  validate_keys(value, path, causes);
}

void Schema::validate_keys(const Json& value, const std::string& path, Causes& causes) const {
  if (list_type_ != "map" && list_type_ != "set") return;
  std::set<Json> seen;
  for (std::size_t i = 0; i < value.size(); ++i) {
    Json key = value[i];
    if (list_type_ == "map") {
      key = Json::array();
      for (const std::string& name : map_keys_) key.push_back(at(value[i], name));
    }
    if (!seen.insert(key).second) {
      causes.push_back({"FieldValueDuplicate", element(path, i), "Duplicate value: " + key.dump()});
    }
  }
}

}  // namespace holdfast::simulation
