// Deletion: preconditions, grace, finalizers, and what is left of the object meanwhile.
#include <utility>

#include "tests/simulation/server/writer.h"

namespace holdfast::simulation {
namespace {

constexpr const char* kOrphan = "orphan";
constexpr const char* kForeground = "foregroundDeletion";

std::optional<DeleteOptions> parse_options(const Target& target, const std::string& body) {
  DeleteOptions options;
  options.propagation = target.value("propagationPolicy");
  if (target.has("gracePeriodSeconds")) {
    const auto seconds = parse_version(target.value("gracePeriodSeconds"));
    if (!seconds) return std::nullopt;
    options.grace_seconds = static_cast<std::int64_t>(*seconds);
  }
  if (body.empty()) return options;
  const Json parsed = parse_body(body);
  if (!parsed.is_object()) return std::nullopt;
  options.propagation = string_at(parsed, "propagationPolicy", options.propagation);
  const Json& grace = at(parsed, "gracePeriodSeconds");
  if (grace.is_number_integer()) options.grace_seconds = grace.get<std::int64_t>();
  const Json& preconditions = at(parsed, "preconditions");
  if (at(preconditions, "uid").is_string()) options.uid = string_at(preconditions, "uid");
  if (at(preconditions, "resourceVersion").is_string()) {
    options.version = string_at(preconditions, "resourceVersion");
  }
  return options;
}

// What the propagation policy asks for stands in the finalizers until the garbage collector has
// done it. None given: what stands there stays.
Json finalizers_for(const Json& metadata, const std::string& propagation) {
  Json finalizers = Json::array();
  bool orphan = propagation == "Orphan";
  bool foreground = propagation == "Foreground";
  for (const Json& finalizer : at(metadata, "finalizers")) {
    if (finalizer == kOrphan) {
      if (propagation.empty()) orphan = true;
    } else if (finalizer == kForeground) {
      if (propagation.empty()) foreground = true;
    } else {
      finalizers.push_back(finalizer);
    }
  }
  if (orphan) finalizers.push_back(kOrphan);
  if (foreground) finalizers.push_back(kForeground);
  return finalizers;
}

void set_finalizers(Json& metadata, Json finalizers) {
  if (finalizers.empty()) {
    metadata.erase("finalizers");
  } else {
    metadata["finalizers"] = std::move(finalizers);
  }
}

std::int64_t grace_of(const Json& pod, const DeleteOptions& options) {
  const Json& spec = at(pod, "spec");
  const std::string phase = string_at(at(pod, "status"), "phase");
  // A pod that runs nowhere has nothing to wait for.
  if (string_at(spec, "nodeName").empty() || phase == "Succeeded" || phase == "Failed") return 0;
  const std::int64_t seconds =
      options.grace_seconds.value_or(int_at(spec, "terminationGracePeriodSeconds"));
  return seconds < 0 ? 1 : seconds;
}

// Asks the pod to go, or to go sooner. False: it was asked already, and not to go later than that.
bool mark_pod(Json& pod, const DeleteOptions& options, Time now) {
  Json& metadata = pod["metadata"];
  if (!metadata.contains("deletionTimestamp")) {
    const std::int64_t grace = grace_of(pod, options);
    metadata["deletionTimestamp"] = format_time(now + std::chrono::seconds(grace));
    metadata["deletionGracePeriodSeconds"] = grace;
    metadata["generation"] = int_at(metadata, "generation") + 1;
    return true;
  }
  const std::int64_t grace = int_at(metadata, "deletionGracePeriodSeconds");
  if (!options.grace_seconds || *options.grace_seconds >= grace) return false;
  const auto due = parse_time(string_at(metadata, "deletionTimestamp"));
  const Time moved = *due + std::chrono::seconds(*options.grace_seconds - grace);
  const bool over = moved < now;
  metadata["deletionTimestamp"] = format_time(over ? now : moved);
  metadata["deletionGracePeriodSeconds"] =
      over && *options.grace_seconds != 0 ? 1 : *options.grace_seconds;
  return true;
}

void mark(Json& metadata, Time now) {
  if (!metadata.contains("deletionTimestamp")) {
    if (metadata.contains("generation")) {
      metadata["generation"] = int_at(metadata, "generation") + 1;
    }
    metadata["deletionTimestamp"] = format_time(now);
  }
  metadata["deletionGracePeriodSeconds"] = 0;
}

ApiAnswer object_or_success(const Resource& resource, const Stored& object) {
  ApiAnswer answer;
  answer.status = 200;
  if (resource.returns_deleted) {
    answer.body = object.text();
    return answer;
  }
  const Json& metadata = at(object.json(), "metadata");
  Json details = {
      {"name", at(metadata, "name")}, {"kind", resource.plural}, {"uid", at(metadata, "uid")}};
  if (*resource.group != 0) details["group"] = resource.group;
  return object_answer(200, {{"kind", "Status"},
                             {"apiVersion", "v1"},
                             {"metadata", Json::object()},
                             {"status", "Success"},
                             {"details", std::move(details)}});
}

bool is_propagation(const std::string& policy) {
  return policy.empty() || policy == "Background" || policy == "Foreground" || policy == "Orphan";
}

ApiAnswer propagation_refused(const std::string& policy) {
  const std::string why = "Unsupported value: \"" + policy + "\"";
  return failure(422, "Invalid",
                 "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: " + why,
                 {{"group", "meta.k8s.io"},
                  {"kind", "DeleteOptions"},
                  {"causes", Json::array({{{"reason", "FieldValueNotSupported"},
                                           {"message", why},
                                           {"field", "propagationPolicy"}}})}});
}

ApiAnswer object_itself(const Stored& object) {
  ApiAnswer answer;
  answer.status = 200;
  answer.body = object.text();
  return answer;
}

bool is_pod(const Resource& resource) { return std::string_view(resource.plural) == "pods"; }

}  // namespace

ApiAnswer Writer::remove(const Target& target, const std::string& body) {
  const Resource& resource = *target.resource;
  const auto options = parse_options(target, body);
  if (!options) return bad_request("the body is not DeleteOptions");
  if (!is_propagation(options->propagation)) return propagation_refused(options->propagation);
  const StoredPtr object =
      storage_.find(resource, key_of(resource, target.namespace_, target.name));
  if (!object) return not_found(resource, target.name);
  return remove(storage_.table(resource), object, *options);
}

ApiAnswer Writer::remove(Table& table, StoredPtr object, const DeleteOptions& options) {
  const Resource& resource = *table.resource;
  const Json& metadata = at(object->json(), "metadata");
  const std::string name = string_at(metadata, "name");
  if (options.uid && *options.uid != string_at(metadata, "uid")) {
    return conflict(resource, name,
                    "the UID in the precondition (" + *options.uid +
                        ") does not match the UID in record (" + string_at(metadata, "uid") + ")",
                    resource.kind);
  }
  if (options.version && *options.version != string_at(metadata, "resourceVersion")) {
    return conflict(resource, name,
                    "the ResourceVersion in the precondition (" + *options.version +
                        ") does not match the ResourceVersion in record (" +
                        string_at(metadata, "resourceVersion") + ")",
                    resource.kind);
  }
  if (std::string_view(resource.plural) == "namespaces") return remove_namespace(table, object);
  Json changed = object->json();
  // Its finalizers are no longer changed by how it is deleted.
  if (is_pod(resource) && !mark_pod(changed, options, now())) return object_itself(*object);
  // batch/v1 is older than the garbage collector, so who does not say orphans the dependents.
  const bool is_batch = std::string_view(resource.plural) == "jobs";
  const std::string propagation =
      options.propagation.empty() && is_batch ? "Orphan" : options.propagation;
  set_finalizers(changed["metadata"], finalizers_for(metadata, propagation));
  const bool held = changed["metadata"].contains("finalizers");
  if (held && !is_pod(resource)) mark(changed["metadata"], now());
  const bool waits =
      is_pod(resource) && int_at(changed["metadata"], "deletionGracePeriodSeconds") > 0;
  // A pod shows that it was asked to go even when it goes at once.
  if ((held || is_pod(resource)) && changed != object->json()) {
    object = storage_.put(table, object->key(), std::move(changed));
  }
  if (held || waits) return object_itself(*object);
  return object_or_success(resource, *storage_.remove(table, object->key()));
}

ApiAnswer Writer::remove_namespace(Table& table, const StoredPtr& object) {
  const std::string name = string_at(at(object->json(), "metadata"), "name");
  if (name == "default" || name == "kube-system" || name == "kube-public") {
    return failure(403, "Forbidden",
                   "namespaces \"" + name + "\" is forbidden: this namespace may not be deleted",
                   {{"name", name}, {"kind", "namespaces"}});
  }
  if (at(object->json(), "metadata").contains("deletionTimestamp")) {
    return object_itself(*object);
  }
  Json changed = object->json();
  changed["metadata"]["deletionTimestamp"] = format_time(now());
  changed["status"]["phase"] = "Terminating";
  return object_itself(*storage_.put(table, object->key(), std::move(changed)));
}

ApiAnswer Writer::remove_collection(const Target& target, const std::string& body) {
  const auto options = parse_options(target, body);
  if (!options) return bad_request("the body is not DeleteOptions");
  Filter filter;
  filter.namespace_ = target.namespace_;
  if (const auto labels = parse_label_selector(target.value("labelSelector"))) {
    filter.labels = *labels;
  }
  if (const auto fields = parse_field_selector(target.value("fieldSelector"))) {
    filter.fields = *fields;
  }
  Table& table = storage_.table(*target.resource);
  std::vector<StoredPtr> selected;
  for (const auto& [key, object] : table.truth) {
    if (filter.matches(object->json())) selected.push_back(object);
  }
  Json list = {{"kind", std::string(target.resource->kind) + "List"},
               {"apiVersion", target.resource->api_version()},
               {"metadata", {{"resourceVersion", std::to_string(storage_.version())}}},
               {"items", Json::array()}};
  for (const StoredPtr& object : selected) {
    Json item = object->json();
    if (!target.resource->custom) {
      item.erase("kind");
      item.erase("apiVersion");
    }
    list["items"].push_back(std::move(item));
    remove(table, object, *options);
  }
  return object_answer(200, list);
}

}  // namespace holdfast::simulation
