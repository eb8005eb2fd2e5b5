// batch/v1 Jobs between JSON and the lane's types. Pure.
#pragma once

#include <optional>
#include <string>

#include "client/kube/object.h"
#include "lane/batch_job.h"

namespace holdfast::lane_controller {

// A cached Job. spec.managedBy cannot be a field selector, so the watch brings every Job of the
// cluster. Of those that are not ours, and of those that have finished, only the name is kept.
struct CachedBatchJob : kube::Object {
  bool ours = false;
  bool finished = false;  // one of ours
  bool has_queue = false;
  std::size_t bytes = 0;  // as JSON
  // None: not ours, or too long for the cache (kMaxCachedTexts). Then it is read live.
  std::optional<lane::BatchJob> job;
};
using BatchJobPtr = std::shared_ptr<const CachedBatchJob>;

kube::Kind batch_job_kind();
// Null if the JSON is not an object.
BatchJobPtr decode_batch_job(const JsonView& json);
// Of a live read.
std::optional<lane::BatchJob> decode_whole_batch_job(const JsonView& json);

// The body of a PUT on /status, with the UID and resourceVersion of the job.
std::string batch_status_body(const lane::BatchJob& job, const Json& metadata, const Json& status);

// Namespaces that this selector selects, by their metadata.
kube::Kind selected_namespace_kind(const std::string& label_selector);

}  // namespace holdfast::lane_controller
