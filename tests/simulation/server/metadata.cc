// metadata's rules, which are the same for all kinds.
#include <algorithm>
#include <cctype>
#include <string_view>

#include "tests/simulation/server/kinds.h"

namespace holdfast::simulation {
namespace {

bool lower_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool is_dns_label(std::string_view text) {
  if (text.empty() || text.size() > 63) return false;
  if (!lower_alphanumeric(text.front()) || !lower_alphanumeric(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return lower_alphanumeric(c) || c == '-'; });
}

bool is_dns_subdomain(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  while (true) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    // A part may be as long as the whole.
    if (part.empty() || !lower_alphanumeric(part.front()) || !lower_alphanumeric(part.back())) {
      return false;
    }
    if (!std::all_of(part.begin(), part.end(),
                     [](char c) { return lower_alphanumeric(c) || c == '-'; })) {
      return false;
    }
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_label_value(std::string_view text) {
  const auto alphanumeric = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  if (text.empty()) return true;
  if (text.size() > 63 || !alphanumeric(text.front()) || !alphanumeric(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return alphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

void check_name(const Resource& resource, const Json& metadata, Causes& causes) {
  const std::string name = string_at(metadata, "name");
  if (name.empty()) {
    causes.push_back({"FieldValueRequired", "metadata.name", "name or generateName is required"});
    return;
  }
  const bool namespace_like = std::string_view(resource.plural) == "namespaces";
  if (namespace_like ? !is_dns_label(name) : !is_dns_subdomain(name)) {
    causes.push_back({"FieldValueInvalid", "metadata.name", "Invalid value: \"" + name + "\""});
  }
}

void check_lists(const Json& metadata, Causes& causes) {
  for (const auto& [key, value] : at(metadata, "labels").items()) {
    if (!value.is_string() || !is_label_value(value.get_ref<const std::string&>())) {
      causes.push_back({"FieldValueInvalid", "metadata.labels", "Invalid value: " + value.dump()});
    }
  }
  int controllers = 0;
  for (const Json& owner : at(metadata, "ownerReferences")) {
    for (const char* field : {"apiVersion", "kind", "name", "uid"}) {
      if (string_at(owner, field).empty()) {
        causes.push_back({"FieldValueInvalid", std::string("metadata.ownerReferences.") + field,
                          "must not be empty"});
      }
    }
    if (bool_at(owner, "controller") && ++controllers == 2) {
      causes.push_back({"FieldValueInvalid", "metadata.ownerReferences",
                        "Only one reference can have Controller set to true"});
    }
  }
}

void check_update(const Json& metadata, const Json& old, Causes& causes) {
  for (const char* field : {"uid", "deletionTimestamp", "deletionGracePeriodSeconds"}) {
    if (at(metadata, field) != at(old, field)) {
      causes.push_back({"FieldValueInvalid", std::string("metadata.") + field,
                        "Invalid value: field is immutable"});
    }
  }
  if (!old.contains("deletionTimestamp")) return;
  const Json& before = at(old, "finalizers");
  for (const Json& finalizer : at(metadata, "finalizers")) {
    if (std::find(before.begin(), before.end(), finalizer) != before.end()) continue;
    causes.push_back({"FieldValueForbidden", "metadata.finalizers",
                      "Forbidden: no new finalizers can be added if the object is being deleted"});
    return;
  }
}

}  // namespace

Causes validate_metadata(const Resource& resource, const Json& object, const Json* old) {
  Causes causes;
  const Json& metadata = at(object, "metadata");
  if (old == nullptr) check_name(resource, metadata, causes);
  if (old != nullptr && at(*old, "metadata") == metadata) return causes;
  check_lists(metadata, causes);
  if (old != nullptr) check_update(metadata, at(*old, "metadata"), causes);
  return causes;
}

}  // namespace holdfast::simulation
