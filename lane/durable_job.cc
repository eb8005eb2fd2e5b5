#include "lane/durable_job.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "lane/annotations.h"
#include "reconciler/names.h"
#include "reconciler/types.h"

namespace holdfast::lane {
namespace {

constexpr std::array<const char*, 6> kChangeable = {"suspend",          "parallelism",
                                                    "backoffLimit",     "activeDeadlineSeconds",
                                                    "maxFailedIndexes", "podReplacementPolicy"};

// Kueue evicts a Job of which fewer pods get ready than it asks for.
void refuse_unready(const BatchJob& job, Mapped& mapped) {
  const bool has_queue = !string_at(at(job.metadata, "labels"), kKueueLabel).empty();
  if (!has_queue || int_at(job.spec, "parallelism", 1) <= reconciler::kParallelismLimit) return;
  mapped.refuse(
      "parallelism",
      "a Job in a queue of Kueue has at most 1,000 pods at once here, and Kueue waits for "
      "spec.parallelism of them: set spec.parallelism to 1000 or less");
}

// The API server fills File in, so it says nothing about what the Job's author wants. A container
// that fails and leaves no message then has the end of its log as message.
void forget_default_policy(Json& pod) {
  for (const char* const list : {"containers", "initContainers"}) {
    if (!pod.is_object() || !at(pod, list).is_array()) continue;
    for (Json& container : pod[list]) {
      if (string_at(container, "terminationMessagePolicy") == "File") {
        container.erase("terminationMessagePolicy");
      }
    }
  }
}

Json operation(const char* name, const std::string& path, Json value) {
  return {{"op", name}, {"path", path}, {"value", std::move(value)}};
}

}  // namespace

std::string hash_of(const Json& json) {
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx",
                static_cast<unsigned long long>(reconciler::mixed(reconciler::hash64(
                    json.dump(-1, ' ', false, Json::error_handler_t::replace)))));
  return digits.data();
}

Mapped map_job(const BatchJob& job, const std::string& name) {
  Mapped mapped;
  for (const auto& [field, value] : job.spec.items()) {
    if (is_shared_field(field) && !value.is_null()) mapped.spec[field] = value;
  }
  add_annotated_fields(at(job.metadata, "annotations"), mapped.spec, mapped);
  convert_deadline(mapped.spec, mapped);
  refuse_unready(job, mapped);
  convert_runs({{"name", name}}, mapped.spec, mapped);
  convert_policies(mapped.spec, mapped);
  if (mapped.spec.contains("template")) {
    convert_template(string_at(mapped.spec, "completionMode") == "Indexed", ControllerLabels::kKept,
                     mapped.spec["template"], mapped);
    if (mapped.spec["template"].contains("spec")) {
      forget_default_policy(mapped.spec["template"]["spec"]);
    }
  }
  return mapped;
}

Json changeable(const Json& spec) {
  Json fields = Json::object();
  for (const char* const field : kChangeable) {
    fields[field] = at(spec, field);
  }
  if (fields["suspend"].is_null()) fields["suspend"] = false;
  return fields;
}

Source source_of(const Json& spec) {
  return {hash_of(changeable(spec)), hash_of(at(spec, "template"))};
}

Source parse_source(const std::string& text) {
  const std::size_t dash = text.find('-');
  if (dash == std::string::npos) return {};
  return {text.substr(0, dash), text.substr(dash + 1)};
}

std::string creation_body(const BatchJob& job, const std::string& name, const Mapped& mapped,
                          const std::string& shard_label, bool keeps_rights) {
  Json body = {{"apiVersion", reconciler::kJobApiVersion},
               {"kind", reconciler::kJobKind},
               {"metadata",
                {{"name", name},
                 {"namespace", job.namespace_},
                 {"labels", {{reconciler::kShardLabel, shard_label}}},
                 {"annotations",
                  {{reconciler::kBatchJobAnnotation, source_of(mapped.spec).text()},
                   {reconciler::kBatchJobNameAnnotation, job.name}}},
                 {"ownerReferences", Json::array({{{"apiVersion", "batch/v1"},
                                                   {"kind", "Job"},
                                                   {"name", job.name},
                                                   {"uid", job.uid},
                                                   {"controller", true}}})}}},
               {"spec", mapped.spec}};
  // Kubernetes deletes Jobs by their time to live, and those of a CronJob by its limits. Without
  // rights nobody could remove the finalizer.
  if (keeps_rights && at(mapped.spec, "notify").is_array()) {
    body["metadata"]["finalizers"] = Json::array({reconciler::kOutboxFinalizer});
  }
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string patch_body(std::uint64_t version, const Source& source, const Json& fields) {
  Json patch = Json::array();
  patch.push_back(operation("replace", "/metadata/resourceVersion", Json(std::to_string(version))));
  patch.push_back(
      operation("add", "/metadata/annotations/holdfast.dev~1batch-job", Json(source.text())));
  for (const auto& [field, value] : fields.items()) {
    const std::string path = "/spec/" + field;
    // Only what is there can be removed.
    patch.push_back(operation("add", path, value.is_null() ? Json(0) : value));
    if (value.is_null()) patch.push_back({{"op", "remove"}, {"path", path}});
  }
  return patch.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::lane
