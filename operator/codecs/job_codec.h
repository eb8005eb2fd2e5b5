// Converts DurableJobs between JSON and the reconciler's types. Pure.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/object.h"
#include "core/json_fwd.h"
#include "reconciler/types.h"

namespace holdfast::codecs {

// JSON texts that go back to the API server as they came.
struct JobTexts {
  std::string pod_template;  // of the current stage; empty: not cached
  // See shared_metadata().
  std::string metadata;
  // Of a finished job: all of it. Its cached status lacks most: see at_rest.h.
  std::shared_ptr<const reconciler::Job> finished = nullptr;
  // unknown_in_status(): mostly empty.
  std::string unknown = {};

  std::size_t size() const { return pod_template.size() + metadata.size() + unknown.size(); }
};

// The most bytes of texts that are cached for one job. With a template of 1 MB each, ten thousand
// jobs of one tenant would otherwise take all the memory that the operator has.
constexpr std::size_t kMaxCachedTexts = 16'384;

// The cached job: the fields that the reconciler reads, and the texts. Two kinds of job have no
// texts. Finished jobs start no pods and are hardly ever written again. The texts of others are
// longer than kMaxCachedTexts. The executor reads the texts live when it needs them. A job that
// waits in a queue has no template, because very many may wait. The answer to the write that starts
// it brings the template.
struct CachedJob : kube::Object {
  reconciler::Job job;
  std::optional<JobTexts> texts;
  // Of a job that runs a batch/v1 Job: what it was made from (lane/durable_job.h). Else empty.
  std::string source;
};
using JobPtr = std::shared_ptr<const CachedJob>;

// Null if the JSON is not a DurableJob that the schema accepts.
JobPtr decode_job(const JsonView& json);

JobTexts decode_texts(const JsonView& json);

// Of the whole job, or of one of its stages.
reconciler::Spec decode_spec(const JsonView& spec);
api::JobSpec decode_job_spec(const JsonView& spec);
// All stages, the first one included, each with what holds for it of the job; empty: the job has
// none.
std::vector<reconciler::Stage> stages_of(const api::JobSpec& spec);

// The spec says how many runs the job has. The status of a job with many runs has the indexes of
// all ended runs. Each entry of its history has an index, too. A job with one run has only counts.
// Decoded runs are in the order of their indexes, each index once. decode_job() decodes the stages.
reconciler::Status decode_status(const reconciler::Spec& spec, const JsonView& status);
Json encode_status(const reconciler::Spec& spec, const reconciler::Status& status);
// `now`, the status of a finished job, with the changes of `decided`. The cache has only a part of
// the job, so only observedGeneration, conditions, and events that targets have taken change.
reconciler::Status finished_status(reconciler::Status now, const reconciler::Status& decided);

// The metadata that others write too, unchanged: labels, annotations, finalizers and owner
// references, as one JSON object.
std::string shared_metadata(const JsonView& metadata);

// The body of a PUT on /status. It has the UID and resourceVersion of the last read, so it fails
// with 409 on any other object or version. It repeats the shared metadata. Without that, the PUT
// would remove these fields from their managers' managedFields. A manager's later removal would
// then have no effect. `texts`: its metadata, and what this version does not know of the status.
std::string status_update_body(const reconciler::Job& job, const JobTexts& texts,
                               const reconciler::Status& status);

// The body of a merge patch that removes kOutboxFinalizer. It fails with 409 on any other object or
// version.
std::string job_release_body(const reconciler::Job& job, const std::string& shared_metadata);

}  // namespace holdfast::codecs
