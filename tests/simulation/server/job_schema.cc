#include "tests/simulation/server/job_schema.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>

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

const Json& schema_in(const Json& definition) {
  return definition.at("spec").at("versions").at(0).at("schema").at("openAPIV3Schema");
}

}  // namespace

JobSchema::JobSchema(const Json& definition)
    : spec_(schema_in(definition).at("properties").at("spec")),
      status_(schema_in(definition).at("properties").at("status")) {}

void JobSchema::prune(Json& job) const {
  for (auto member = job.begin(); member != job.end();) {
    const std::string& name = member.key();
    const bool known = name == "apiVersion" || name == "kind" || name == "metadata" ||
                       name == "spec" || name == "status";
    member = known ? std::next(member) : job.erase(member);
  }
  if (job.contains("spec")) spec_.prune(job["spec"]);
}

void JobSchema::fill_defaults(Json& job) const {
  if (job.contains("spec")) spec_.fill_defaults(job["spec"]);
}

void JobSchema::prune_status(Json& job) const {
  if (job.contains("status")) status_.prune(job["status"]);
}

void JobSchema::fill_status_defaults(Json& job) const {
  Json& status = job["status"];
  if (status.is_null()) status = status_.own_default();
  status_.fill_defaults(status);
}

const JobSchema& job_schema() {
  static const JobSchema* const schema = new JobSchema(json_of(YAML::LoadFile(HOLDFAST_CRD)));
  return *schema;
}

Causes validate_job(const Json& job, const Json* old, const Causes& earlier) {
  Causes causes;
  const bool same_spec = old != nullptr && at(*old, "spec") == at(job, "spec");
  const bool same_status = old != nullptr && at(*old, "status") == at(job, "status");
  if (same_spec && same_status) return causes;
  if (!job.contains("spec")) {
    causes.push_back({"FieldValueRequired", "spec", "Required value"});
  } else if (!same_spec) {
    job_schema().spec().validate(job["spec"], "spec", causes);
  }
  if (job.contains("status") && !same_status) {
    job_schema().status().validate(job["status"], "status", causes);
  }
  if (blocks_rules(causes) || blocks_rules(earlier)) {
    causes.push_back({"FieldValueInvalid", "<nil>",
                      "Invalid value: null: some validation rules were not checked because the "
                      "object was invalid; correct the existing errors to complete validation"});
    return causes;
  }
  check_job_rules(job, old, causes);
  return causes;
}

}  // namespace holdfast::simulation
