#include "operator/lane/batch_job_codec.h"

#include "operator/codecs/job_codec.h"

namespace holdfast::lane_controller {
namespace {

Json object_in(const JsonView& json) {
  if (!json.is_object()) return Json::object();
  Result<Json> parsed = parse_json(json.text());
  return parsed.ok() && parsed->is_object() ? std::move(*parsed) : Json::object();
}

}  // namespace

kube::Kind batch_job_kind() {
  kube::Kind kind;
  kind.name = "batch-jobs";
  kind.group_path = lane::kBatchGroupPath;
  kind.plural = lane::kBatchPlural;
  kind.decode = decode_batch_job;
  return kind;
}

BatchJobPtr decode_batch_job(const JsonView& json) {
  auto cached = std::make_shared<CachedBatchJob>();
  if (!kube::decode_meta(json, *cached)) return nullptr;
  if (string_at(at(json, "spec"), "managedBy") != lane::kManager) return cached;
  cached->ours = true;
  cached->bytes = json.text().size();
  cached->has_queue = lane::has_queue(object_in(at(json, "metadata")));
  cached->finished = lane::is_finished(object_in(at(json, "status")));
  if (cached->finished) return cached;
  const std::size_t bytes = at(json, "spec").text().size() + at(json, "metadata").text().size();
  if (bytes <= codecs::kMaxCachedTexts) cached->job = decode_whole_batch_job(json);
  return cached;
}

std::optional<lane::BatchJob> decode_whole_batch_job(const JsonView& json) {
  kube::Object meta;
  if (!kube::decode_meta(json, meta)) return std::nullopt;
  lane::BatchJob job;
  job.namespace_ = meta.namespace_;
  job.name = meta.name;
  job.uid = meta.uid;
  job.version = meta.version;
  job.deleting = at(at(json, "metadata"), "deletionTimestamp").is_string();
  Result<Json> shared = parse_json(codecs::shared_metadata(at(json, "metadata")));
  if (shared.ok()) job.metadata = std::move(*shared);
  job.spec = object_in(at(json, "spec"));
  job.status = object_in(at(json, "status"));
  return job;
}

std::string batch_status_body(const lane::BatchJob& job, const Json& shared, const Json& status) {
  Json metadata = shared;
  metadata["name"] = job.name;
  metadata["namespace"] = job.namespace_;
  metadata["uid"] = job.uid;
  metadata["resourceVersion"] = std::to_string(job.version);
  const Json body = {{"apiVersion", "batch/v1"},
                     {"kind", "Job"},
                     {"metadata", std::move(metadata)},
                     {"status", status}};
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

kube::Kind selected_namespace_kind(const std::string& label_selector) {
  kube::Kind kind;
  kind.name = "batch-job-namespaces";
  kind.group_path = "/api/v1";
  kind.plural = "namespaces";
  kind.namespaced = false;
  kind.label_selector = label_selector;
  kind.metadata_only = true;
  kind.decode = kube::decode_bare;
  return kind;
}

}  // namespace holdfast::lane_controller
