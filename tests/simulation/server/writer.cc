#include "tests/simulation/server/writer.h"

#include <utility>

#include "tests/simulation/server/custom_schema.h"
#include "tests/simulation/server/kinds.h"
#include "tests/simulation/server/patch.h"

namespace holdfast::simulation {
namespace {

// What is wrong with a body before anything is looked up; status 0: nothing.
ApiAnswer check_body(const Target& target, const Json& object) {
  const Resource& resource = *target.resource;
  if (!object.is_object()) return bad_request("the body is not an object");
  const std::string kind = string_at(object, "kind");
  const std::string api_version = string_at(object, "apiVersion");
  if (resource.custom && kind.empty()) return bad_request("Object 'Kind' is missing");
  const bool other = (!kind.empty() && kind != resource.kind) ||
                     (!api_version.empty() && api_version != resource.api_version());
  if (resource.custom && kind != resource.kind) {
    const std::string& named = string_at(at(object, "metadata"), "name");
    const std::string wanted = std::string("must be ") + resource.kind;
    ApiAnswer refused = invalid(resource, named, {{"FieldValueInvalid", "kind", wanted}});
    Json status = Json::parse(refused.body);
    status["details"]["kind"] = kind;
    return object_answer(422, status);
  }
  if (other) {
    return bad_request(api_version + " " + kind + " in the body does not match " +
                       resource.api_version() + " " + resource.kind);
  }
  if (!is_readable(resource, object)) return bad_request("the body cannot be handled");
  if (resource.custom && target.value("fieldValidation") == "Strict") {
    Json known = object;
    custom_schema(resource).prune(known);
    custom_schema(resource).prune_status(known);
    if (known != object) return bad_request("strict decoding error: unknown field");
  }
  const Json& metadata = at(object, "metadata");
  const std::string name = string_at(metadata, "name");
  if (!target.name.empty() && name != target.name) {
    return bad_request("the name of the object (" + name +
                       ") does not match the name on the URL (" + target.name + ")");
  }
  const std::string namespace_ = string_at(metadata, "namespace");
  if (!namespace_.empty() && namespace_ != target.namespace_) {
    return bad_request(
        "the namespace of the provided object does not match the namespace sent on the request");
  }
  return {};
}

// A patch after which the object cannot be read.
ApiAnswer patch_unreadable() {
  return failure(422, "Invalid", " \"\" is invalid: patch: Invalid value",
                 {{"causes", Json::array({{{"reason", "FieldValueInvalid"},
                                           {"message", "Invalid value"},
                                           {"field", "patch"}}})}});
}

// Object and metadata are there, and it says what it is and where.
void complete(const Target& target, Json& object) {
  object["kind"] = target.resource->kind;
  object["apiVersion"] = target.resource->api_version();
  if (!object.contains("metadata") || !object["metadata"].is_object()) {
    object["metadata"] = Json::object();
  }
  object["metadata"].erase("managedFields");  // not modelled
  if (target.resource->namespaced) object["metadata"]["namespace"] = target.namespace_;
}

// Empty lists and maps of metadata are not kept.
void tidy(Json& metadata) {
  for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const auto found = metadata.find(field);
    if (found != metadata.end() && found->empty()) metadata.erase(found);
  }
}

bool is_released(const Json& metadata) {
  return at(metadata, "finalizers").empty() && metadata.contains("deletionTimestamp") &&
         int_at(metadata, "deletionGracePeriodSeconds") == 0;
}

void take_over_metadata(const Json& old, Json& metadata) {
  for (const char* field : {"creationTimestamp", "generation", "deletionTimestamp"}) {
    if (old.contains(field)) {
      metadata[field] = old[field];
    } else if (std::string_view(field) != "deletionTimestamp") {
      metadata.erase(field);
    }
  }
  for (const char* field : {"uid", "deletionGracePeriodSeconds"}) {
    if (at(metadata, field).is_null() && old.contains(field)) metadata[field] = old[field];
  }
}

}  // namespace

std::string Writer::random_uid() {
  constexpr char kHex[] = "0123456789abcdef";
  std::string uid = "xxxxxxxx-xxxx-4xxx-axxx-xxxxxxxxxxxx";
  std::uint64_t bits = 0;
  int left = 0;
  for (char& c : uid) {
    if (c != 'x') continue;
    if (left == 0) {
      bits = random_.next();
      left = 16;
    }
    c = kHex[bits & 15];
    bits >>= 4;
    --left;
  }
  return uid;
}

std::string Writer::random_suffix() {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string suffix;
  for (int i = 0; i < 5; ++i) suffix += kAlphabet[random_.below(kAlphabet.size())];
  return suffix;
}

void Writer::fill_metadata(const Resource& resource, Json& metadata) {
  metadata["uid"] = random_uid();
  metadata["creationTimestamp"] = format_time(now());
  for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"}) {
    metadata.erase(field);
  }
  metadata.erase("generation");
  if (resource.counts_generation) metadata["generation"] = 1;
  if (string_at(metadata, "name").empty() && !string_at(metadata, "generateName").empty()) {
    metadata["name"] = string_at(metadata, "generateName") + random_suffix();
  }
  tidy(metadata);
}

std::optional<ApiAnswer> Writer::refused_by_namespace(const Resource& resource,
                                                      const Json& object) const {
  if (!resource.namespaced) return std::nullopt;
  const Resource& namespaces = *find_resource("", "v1", "namespaces");
  const std::string name = string_at(at(object, "metadata"), "namespace");
  const StoredPtr found = storage_.find(namespaces, name);
  if (!found) return not_found(namespaces, name);
  if (!at(found->json(), "metadata").contains("deletionTimestamp")) return std::nullopt;
  const std::string object_name = string_at(at(object, "metadata"), "name");
  Json details = {
      {"name", object_name},
      {"kind", resource.plural},
      {"causes", Json::array({{{"reason", "NamespaceTerminating"},
                               {"message", "namespace " + name + " is being terminated"},
                               {"field", "metadata.namespace"}}})}};
  if (*resource.group != 0) details["group"] = resource.group;
  return failure(403, "Forbidden",
                 std::string(resource.plural) + " \"" + object_name +
                     "\" is forbidden: unable to create new content in namespace " + name +
                     " because it is being terminated",
                 std::move(details));
}

ApiAnswer Writer::create(const Target& target, const std::string& body) {
  Json object = parse_body(body);
  if (object.is_discarded()) return bad_request("the body is not JSON");
  if (ApiAnswer refused = check_body(target, object); refused.status != 0) return refused;
  complete(target, object);
  return create_object(*target.resource, std::move(object));
}

ApiAnswer Writer::create_object(const Resource& resource, Json object) {
  Json& metadata = object["metadata"];
  if (const auto refused = refused_by_namespace(resource, object)) return *refused;
  const std::string version = string_at(metadata, "resourceVersion");
  if (!version.empty() && version != "0") {
    return failure(500, "", "resourceVersion should not be set on objects to be created");
  }
  fill_metadata(resource, metadata);
  prepare_create(resource, object);
  const std::string name = string_at(metadata, "name");
  const Causes causes = validate(resource, object, nullptr, "");
  if (!causes.empty()) return invalid(resource, name, causes);
  const std::string key = key_of(resource, string_at(metadata, "namespace"), name);
  if (storage_.find(resource, key)) return already_exists(resource, name);
  ApiAnswer answer;
  answer.status = 201;
  answer.body = storage_.put(storage_.table(resource), key, std::move(object))->text();
  return answer;
}

void Writer::create_namespace(const std::string& name) {
  const Resource& resource = *find_resource("", "v1", "namespaces");
  create_object(resource,
                {{"kind", "Namespace"}, {"apiVersion", "v1"}, {"metadata", {{"name", name}}}});
}

ApiAnswer Writer::replace(const Target& target, const std::string& body) {
  const Resource& resource = *target.resource;
  Json object = parse_body(body);
  if (object.is_discarded()) return bad_request("the body is not JSON");
  if (ApiAnswer refused = check_body(target, object); refused.status != 0) return refused;
  complete(target, object);
  const std::string uid = string_at(object["metadata"], "uid");
  const StoredPtr old = storage_.find(resource, key_of(resource, target.namespace_, target.name));
  if (old) return update(target, old, std::move(object), uid);
  if (!resource.create_on_update || !target.subresource.empty()) {
    return not_found(resource, target.name);
  }
  if (!uid.empty()) {
    return conflict(resource, target.name,
                    "Precondition failed: UID in precondition: " + uid + ", UID in object meta: ");
  }
  object["metadata"].erase("resourceVersion");
  return create_object(resource, std::move(object));
}

ApiAnswer Writer::patch(const Target& target, const std::string& content_type,
                        const std::string& body) {
  const Resource& resource = *target.resource;
  const StoredPtr old = storage_.find(resource, key_of(resource, target.namespace_, target.name));
  if (!old) return not_found(resource, target.name);
  Json object = old->json();
  if (ApiAnswer refused = apply_patch(resource, content_type, body, object); refused.status != 0) {
    return refused;
  }
  if (!is_readable(resource, object)) return patch_unreadable();
  if (ApiAnswer refused = check_body(target, object); refused.status != 0) return refused;
  complete(target, object);
  return update(target, old, std::move(object), "");
}

ApiAnswer Writer::update(const Target& target, const StoredPtr& old, Json object,
                         const std::string& uid) {
  const Resource& resource = *target.resource;
  const Json& old_metadata = at(old->json(), "metadata");
  if (!uid.empty() && uid != string_at(old_metadata, "uid")) {
    return conflict(resource, target.name,
                    "Precondition failed: UID in precondition: " + uid +
                        ", UID in object meta: " + string_at(old_metadata, "uid"));
  }
  const std::string version = string_at(object["metadata"], "resourceVersion");
  const bool unconditional = version.empty() || version == "0";
  if (unconditional && !resource.unconditional_update) {
    return version_missing(resource, target.name);
  }
  if (!unconditional && version != string_at(old_metadata, "resourceVersion")) {
    return conflict(
        resource, target.name,
        "the object has been modified; please apply your changes to the latest version and try again");
  }
  prepare_update(resource, target.subresource, old->json(), object);
  Json& metadata = object["metadata"];
  take_over_metadata(old_metadata, metadata);
  tidy(metadata);
  metadata["resourceVersion"] = old_metadata["resourceVersion"];
  if (resource.counts_generation && target.subresource.empty() &&
      spec_differs(old->json(), object)) {
    metadata["generation"] = int_at(old_metadata, "generation") + 1;
  }
  const Causes causes = validate(resource, object, &old->json(), target.subresource);
  if (!causes.empty()) return invalid(resource, target.name, causes);
  ApiAnswer answer;
  answer.status = 200;
  Table& table = storage_.table(resource);
  if (target.value("dryRun") == "All") {
    answer.body = object.dump();
  } else if (is_released(metadata)) {
    answer.body = object.dump();
    storage_.remove(table, old->key());
  } else if (object == old->json()) {
    answer.body = old->text();
  } else {
    answer.body = storage_.put(table, old->key(), std::move(object))->text();
  }
  return answer;
}

void Writer::rewrite(Table& table, const StoredPtr& old, Json object) {
  tidy(object["metadata"]);
  if (is_released(object["metadata"])) {
    storage_.remove(table, old->key());
  } else if (object != old->json()) {
    storage_.put(table, old->key(), std::move(object));
  }
}

ApiAnswer Writer::bind(const Target& target, const std::string& body) {
  const Resource& resource = *target.resource;
  const Json binding = parse_body(body);
  const StoredPtr old = storage_.find(resource, key_of(resource, target.namespace_, target.name));
  if (!old) return not_found(resource, target.name);
  const std::string node = string_at(at(binding, "target"), "name");
  if (node.empty()) return bad_request("the binding names no node");
  const std::string uid = string_at(at(binding, "metadata"), "uid");
  const Json& metadata = at(old->json(), "metadata");
  if (!uid.empty() && uid != string_at(metadata, "uid")) {
    return conflict(resource, target.name, "Precondition failed: UID");
  }
  if (metadata.contains("deletionTimestamp")) {
    return conflict(resource, target.name,
                    "pod " + target.name + " is being deleted, cannot be assigned to a host",
                    "pods/binding");
  }
  if (!string_at(at(old->json(), "spec"), "nodeName").empty()) {
    return conflict(resource, target.name, "pod " + target.name + " is already assigned to node",
                    "pods/binding");
  }
  if (!at(at(old->json(), "spec"), "schedulingGates").empty()) {
    return conflict(resource, target.name,
                    "pod " + target.name + " has non-empty .spec.schedulingGates", "pods/binding");
  }
  Json pod = old->json();
  pod["spec"]["nodeName"] = node;
  Json& conditions = pod["status"]["conditions"];
  if (!conditions.is_array()) conditions = Json::array();
  for (std::size_t i = conditions.size(); i-- > 0;) {
    if (string_at(conditions[i], "type") == "PodScheduled") conditions.erase(i);
  }
  conditions.push_back(
      {{"type", "PodScheduled"}, {"status", "True"}, {"lastTransitionTime", format_time(now())}});
  storage_.put(storage_.table(resource), old->key(), std::move(pod));
  return object_answer(201, {{"kind", "Status"},
                             {"apiVersion", "v1"},
                             {"metadata", Json::object()},
                             {"status", "Success"},
                             {"code", 201}});
}

}  // namespace holdfast::simulation
