// Names and labels that Holdfast gives, and the name of its own kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace holdfast::reconciler {

inline constexpr const char* kJobGroupPath = "/apis/holdfast.dev/v1alpha1";
inline constexpr const char* kJobApiVersion = "holdfast.dev/v1alpha1";
inline constexpr const char* kJobPlural = "durablejobs";
inline constexpr const char* kJobKind = "DurableJob";

inline constexpr const char* kFinalizer = "holdfast.dev/outcome";  // of pods
// Of a DurableJob that runs a batch/v1 Job and names targets: it holds the job until these have got
// its events.
inline constexpr const char* kOutboxFinalizer = "holdfast.dev/outbox";
inline constexpr const char* kJobNameLabel = "holdfast.dev/job-name";
inline constexpr const char* kJobUidLabel = "holdfast.dev/job-uid";
inline constexpr const char* kAttemptLabel = "holdfast.dev/attempt";
inline constexpr const char* kShardLabel = "holdfast.dev/shard";  // shard_label() in shards.h
inline constexpr const char* kStageLabel = "holdfast.dev/stage";  // of a job with stages
// An annotation of each pod: PodView::intent.
inline constexpr const char* kIntentAnnotation = "holdfast.dev/intent";
// An annotation of a DurableJob that runs a batch/v1 Job: what it was made from
// (lane/durable_job.h).
inline constexpr const char* kBatchJobAnnotation = "holdfast.dev/batch-job";
// Beside it: the Job's name, which the hostnames of its pods begin with.
inline constexpr const char* kBatchJobNameAnnotation = "holdfast.dev/batch-job-name";
inline constexpr const char* kLabelPrefix = "holdfast.dev/";

// FNV-1a, 64 bits: spreads UIDs. Not for security.
std::uint64_t hash64(const std::string& text);
// Spreads similar FNV hashes (the finalizer of MurmurHash3).
std::uint64_t mixed(std::uint64_t hash);

// "<job>-<attempt>-<five characters of the job UID's hash>". The same on every replica, so that a
// second create answers AlreadyExists. A new job of the same name gets another name.
std::string pod_name(const std::string& job_name, const std::string& job_uid, std::int64_t attempt);

// The heartbeat's Lease of a run, in the job's namespace. `index`: of a job with many runs.
std::string heartbeat_lease_name(const std::string& job_uid,
                                 std::optional<std::int64_t> index = std::nullopt);

// The attempt in the name of one of our pods; 0: not a pod name of this job. Users can edit labels,
// but not names.
std::int64_t attempt_in_name(const std::string& job_name, const std::string& job_uid,
                             const std::string& name);

}  // namespace holdfast::reconciler
