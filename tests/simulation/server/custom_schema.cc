#include "tests/simulation/server/custom_schema.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::simulation {
namespace {

Json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  // "!" is the tag of a quoted scalar, which is a string whatever it spells.
  if (node.Tag() == "!") return text;
  if (text == "true") return true;
  if (text == "false") return false;
  std::int64_t number = 0;
  if (YAML::convert<std::int64_t>::decode(node, number)) return number;
  return text;
}

Json json_of(const YAML::Node& node) {
  Json json;
  if (node.IsMap()) {
    json = Json::object();
    for (const auto& member : node) json[member.first.Scalar()] = json_of(member.second);
  } else if (node.IsSequence()) {
    json = Json::array();
    for (const auto& item : node) json.push_back(json_of(item));
  } else if (node.IsScalar()) {
    json = scalar(node);
  }
  return json;
}

// The CEL rules are not looked at when the object is not even of the right shape.
bool blocks_rules(const Causes& causes) {
  return std::any_of(causes.begin(), causes.end(), [](const Cause& cause) {
    return cause.reason == "FieldValueRequired" || cause.reason == "FieldValueTypeInvalid" ||
           cause.reason == "FieldValueTooLong" || cause.reason == "FieldValueTooMany" ||
           cause.reason == "FieldValueNotSupported";
  });
}

// The server looks at the numbers of the scale subresource once more, in words of its own.
void check_scale(const Json& number, const char* path, Causes& causes) {
  if (!number.is_number_integer() || number.get<std::int64_t>() >= 0) return;
  causes.push_back({"FieldValueInvalid", path, "should be a non-negative integer"});
}

const Json& schema_in(const Json& definition) {
  return definition.at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema");
}

}  // namespace

CustomSchema::CustomSchema(const Json& definition)
    : spec_(schema_in(definition).at("properties").at("spec")),
      status_(schema_in(definition).at("properties").at("status")) {}

void CustomSchema::prune(Json& object) const {
  for (auto member = object.begin(); member != object.end();) {
    const std::string& name = member.key();
    const bool known = name == "apiVersion" || name == "kind" || name == "metadata" ||
                       name == "spec" || name == "status";
    member = known ? std::next(member) : object.erase(member);
  }
  if (object.contains("spec")) spec_.prune(object["spec"]);
}

void CustomSchema::fill_defaults(Json& object) const {
  if (object.contains("spec")) spec_.fill_defaults(object["spec"]);
}

void CustomSchema::prune_status(Json& object) const {
  if (object.contains("status")) status_.prune(object["status"]);
}

void CustomSchema::fill_status_defaults(Json& object) const {
  if (at(object, "status").is_null()) object["status"] = status_.own_default();
  if (at(object, "status").is_null()) {
    object.erase("status");
  } else {
    status_.fill_defaults(object["status"]);
  }
}

const CustomSchema& custom_schema(const Resource& resource) {
  static auto* const schemas = new std::map<std::string, CustomSchema>();
  const auto found = schemas->find(resource.plural);
  if (found != schemas->end()) return found->second;
  const std::string file =
      std::string(HOLDFAST_CRDS) + "/" + resource.group + "_" + resource.plural + ".yaml";
  return schemas->emplace(resource.plural, CustomSchema(json_of(YAML::LoadFile(file))))
      .first->second;
}

Causes validate_custom(const Resource& resource, const Json& object, const Json* old,
                       const Causes& earlier) {
  Causes causes;
  const CustomSchema& schema = custom_schema(resource);
  const bool same_spec = old != nullptr && at(*old, "spec") == at(object, "spec");
  const bool same_status = old != nullptr && at(*old, "status") == at(object, "status");
  if (same_spec && same_status) return causes;
  if (!object.contains("spec")) {
    causes.push_back({"FieldValueRequired", "spec", "Required value"});
  } else if (!same_spec) {
    schema.spec().validate(object["spec"], "spec", causes);
  }
  if (object.contains("status") && !same_status) {
    schema.status().validate(object["status"], "status", causes);
  }
  if (std::string_view(resource.plural) == "workerpools") {
    if (!same_spec) check_scale(at(at(object, "spec"), "minWorkers"), ".spec.minWorkers", causes);
    if (!same_status) check_scale(at(at(object, "status"), "workers"), ".status.workers", causes);
  }
  if (blocks_rules(causes) || blocks_rules(earlier)) {
    causes.push_back({"FieldValueInvalid", "<nil>",
                      "Invalid value: null: some validation rules were not checked because the "
                      "object was invalid; correct the existing errors to complete validation"});
    return causes;
  }
  if (std::string_view(resource.plural) == "durablejobs") {
    check_job_rules(object, old, causes);
  } else if (std::string_view(resource.plural) == "workerpools") {
    if (!same_spec) check_pool_rules(object, causes);
  } else if (!same_spec) {
    check_queue_rules(object, causes);
  }
  return causes;
}

}  // namespace holdfast::simulation
