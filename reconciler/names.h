// Names and labels that Holdfast gives, and the name of its own kind.
#pragma once

#include <cstdint>
#include <string>

namespace holdfast::reconciler {

inline constexpr const char* kJobGroupPath = "/apis/holdfast.dev/v1alpha1";
inline constexpr const char* kJobApiVersion = "holdfast.dev/v1alpha1";
inline constexpr const char* kJobPlural = "durablejobs";
inline constexpr const char* kJobKind = "DurableJob";

inline constexpr const char* kFinalizer = "holdfast.dev/outcome";
inline constexpr const char* kJobNameLabel = "holdfast.dev/job-name";
inline constexpr const char* kJobUidLabel = "holdfast.dev/job-uid";
inline constexpr const char* kAttemptLabel = "holdfast.dev/attempt";
// An annotation of each pod: PodView::intent.
inline constexpr const char* kIntentAnnotation = "holdfast.dev/intent";
inline constexpr const char* kLabelPrefix = "holdfast.dev/";

// Annotations of a heartbeat's Lease: the operator's, and what the agent says (docs/fencing.md).
inline constexpr const char* kGrantedAnnotation = "holdfast.dev/granted";
inline constexpr const char* kProgressAnnotation = "holdfast.dev/progress";
inline constexpr const char* kProgressAgeAnnotation = "holdfast.dev/progress-age";
inline constexpr const char* kProgressMessageAnnotation = "holdfast.dev/progress-message";
inline constexpr const char* kEndedAnnotation = "holdfast.dev/ended";
// How an agent ends that has fenced itself: its exit code, and how its termination message begins.
inline constexpr int kFencedExitCode = 85;
inline constexpr const char* kFencedMark = "holdfast: fenced: ";

// FNV-1a, 64 bits: spreads UIDs, nothing secret hangs on it.
std::uint64_t hash64(const std::string& text);

// "<job>-<attempt>-<five characters of the job UID's hash>": the same on every replica, so that a
// second create answers AlreadyExists; another for a new job of the same name.
std::string pod_name(const std::string& job_name, const std::string& job_uid, std::int64_t attempt);

// The heartbeat's Lease of a job, in the job's namespace.
std::string heartbeat_lease_name(const std::string& job_uid);

// The attempt that a pod name of ours stands for; 0: it is none of this job's. Labels can be
// edited, names cannot.
std::int64_t attempt_in_name(const std::string& job_name, const std::string& job_uid,
                             const std::string& name);

}  // namespace holdfast::reconciler
