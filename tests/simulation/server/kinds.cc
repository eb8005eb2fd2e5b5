#include "tests/simulation/server/kinds.h"

#include <set>
#include <string_view>
#include <utility>

#include "core/time.h"
#include "tests/simulation/server/batch_jobs.h"
#include "tests/simulation/server/custom_schema.h"
#include "tests/simulation/server/pods.h"

namespace holdfast::simulation {
namespace {

void take_over(const Json& old, Json& object, const char* member) {
  if (old.contains(member)) {
    object[member] = old[member];
  } else {
    object.erase(member);
  }
}

// metav1.MicroTime is read with six fractional digits and no others.
bool is_micro_time(const Json& value) {
  if (value.is_null()) return true;
  const auto* const text = value.get_ptr<const std::string*>();
  const std::size_t dot = text == nullptr ? std::string::npos : text->find('.');
  if (dot == std::string::npos || !parse_time(*text)) return false;
  return text->find_first_not_of("0123456789", dot + 1) == dot + 7;
}

Causes validate_lease(const Json& object) {
  Causes causes;
  const Json& spec = at(object, "spec");
  const Json& duration = at(spec, "leaseDurationSeconds");
  if (!duration.is_null() && int_at(spec, "leaseDurationSeconds") <= 0) {
    causes.push_back({"FieldValueInvalid", "spec.leaseDurationSeconds", "must be greater than 0"});
  }
  if (int_at(spec, "leaseTransitions") < 0) {
    causes.push_back(
        {"FieldValueInvalid", "spec.leaseTransitions", "must be greater than or equal to 0"});
  }
  return causes;
}

Causes validate_event(const Json& object) {
  Causes causes;
  const auto require = [&](const char* field, std::size_t most) {
    const std::string text = string_at(object, field);
    if (text.empty()) causes.push_back({"FieldValueRequired", field, "Required value"});
    if (text.size() > most) causes.push_back({"FieldValueInvalid", field, "is too long"});
  };
  if (string_at(object, "eventTime").empty()) {
    causes.push_back({"FieldValueRequired", "eventTime", "Required value"});
  }
  require("reportingController", 253);
  require("reportingInstance", 128);
  require("action", 128);
  require("reason", 128);
  const std::string type = string_at(object, "type");
  if (type != "Normal" && type != "Warning") {
    causes.push_back({"FieldValueInvalid", "type", "has invalid value: " + type});
  }
  if (string_at(object, "note").size() > 1024) {
    causes.push_back({"FieldValueInvalid", "message", "can have at most 1024 bytes"});
  }
  const std::string regarding = string_at(at(object, "regarding"), "namespace");
  const std::string own = string_at(at(object, "metadata"), "namespace");
  if (regarding.empty() && own != "default") {
    causes.push_back(
        {"FieldValueInvalid", "involvedObject.namespace", "does not match event.namespace"});
  }
  return causes;
}

}  // namespace

bool spec_differs(const Json& old, const Json& object) {
  const auto count = [](const Json& json) {
    return json.size() - json.contains("metadata") - json.contains("status");
  };
  if (count(old) != count(object)) return true;
  for (const auto& [member, value] : object.items()) {
    if (member == "metadata" || member == "status") continue;
    if (at(old, member) != value) return true;
  }
  return false;
}

void prepare_create(const Resource& resource, Json& object) {
  if (resource.custom) {
    object.erase("status");
    const CustomSchema& schema = custom_schema(resource);
    schema.prune(object);
    schema.fill_defaults(object);
    schema.fill_status_defaults(object);
  } else if (is(resource, "pods")) {
    prepare_pod(object);
  } else if (is(resource, "jobs")) {
    prepare_batch_job(object);
  } else if (is(resource, "namespaces")) {
    object["spec"]["finalizers"] = Json::array({"kubernetes"});
    object["status"] = {{"phase", "Active"}};
    object["metadata"]["labels"]["kubernetes.io/metadata.name"] = at(object["metadata"], "name");
  } else if (is(resource, "nodes")) {
    if (!object.contains("spec")) object["spec"] = Json::object();
    if (!object.contains("status")) object["status"] = Json::object();
  } else if (is(resource, "leases")) {
    if (!object.contains("spec")) object["spec"] = Json::object();
  }
}

void prepare_update(const Resource& resource, const std::string& subresource, const Json& old,
                    Json& object) {
  if (resource.custom && subresource == "status") {
    Json status = object.contains("status") ? std::move(object["status"]) : Json();
    object = old;
    object["status"] = std::move(status);
    custom_schema(resource).prune_status(object);
    custom_schema(resource).fill_status_defaults(object);
    return;
  }
  if (resource.status) {
    if (subresource == "status") {
      take_over(old, object, "spec");
      if (is(resource, "pods")) take_over(old["metadata"], object["metadata"], "ownerReferences");
    } else {
      take_over(old, object, "status");
    }
  }
  if (resource.custom) {
    custom_schema(resource).prune(object);
    if (at(object, "spec") != at(old, "spec")) custom_schema(resource).fill_defaults(object);
  }
  if (is(resource, "namespaces")) object["spec"] = old["spec"];
  if (is(resource, "pods") && subresource.empty()) prepare_pod_update(old, object);
}

bool is_readable(const Resource& resource, const Json& object) {
  if (resource.custom) return true;
  for (const char* part : {"metadata", "spec", "status"}) {
    const Json& value = at(object, part);
    if (!value.is_null() && !value.is_object()) return false;
  }
  if (is(resource, "leases")) {
    const Json& spec = at(object, "spec");
    return is_micro_time(at(spec, "acquireTime")) && is_micro_time(at(spec, "renewTime"));
  }
  return !is(resource, "events") || (is_micro_time(at(object, "eventTime")) &&
                                     is_micro_time(at(at(object, "series"), "lastObservedTime")));
}

Causes validate(const Resource& resource, const Json& object, const Json* old,
                const std::string& subresource) {
  Causes causes = validate_metadata(resource, object, old);
  Causes more;
  if (resource.custom) {
    more = validate_custom(resource, object, old, causes);
  } else if (is(resource, "leases")) {
    more = validate_lease(object);
  } else if (is(resource, "events")) {
    more = old == nullptr ? validate_event(object) : Causes();
  } else if (is(resource, "jobs")) {
    more = validate_batch_job(object, old, subresource);
  } else if (is(resource, "pods")) {
    more = old == nullptr ? validate_pod(object) : validate_pod_update(object, *old, subresource);
  }
  causes.insert(causes.end(), more.begin(), more.end());
  return causes;
}

}  // namespace holdfast::simulation
