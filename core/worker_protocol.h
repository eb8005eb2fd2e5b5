// The words between the operator and the agent of a warm worker (docs/internals/workers.md). Each
// of the worker's two Leases has them in one annotation. Both sides check what they read: the other
// side may be a tenant, or of another version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace holdfast {

// On the work Lease, "holdfast-work-<pod UID>", and on the worker Lease, "holdfast-worker-<pod
// UID>".
inline constexpr const char* kWorkAnnotation = "holdfast.dev/work";
inline constexpr const char* kWorkerAnnotation = "holdfast.dev/worker";
// The longest text of either.
inline constexpr std::size_t kMaxProtocolBytes = 16U << 10;
// Entries of either: each slot's attempt, and those that end meanwhile.
inline constexpr std::size_t kMaxProtocolEntries = 32;
inline constexpr std::size_t kMaxResultBytes = 1024;

// One attempt of one run of a job.
struct AttemptId {
  std::string job_uid;
  std::int64_t run = 0;
  std::int64_t attempt = 0;
  friend bool operator==(const AttemptId& a, const AttemptId& b) {
    return a.attempt == b.attempt && a.run == b.run && a.job_uid == b.job_uid;
  }
};

// What a slot shall do. `stop` is never taken back.
struct WorkEntry {
  AttemptId id;
  std::string job_name;
  bool stop = false;
  std::int64_t message = 0;  // rises each time the job's message has changed
};

// The end of a pod that was deleted, as the API server has it: its deletionTimestamp, and its
// deletionGracePeriodSeconds, so much after the request. A later request may make it earlier.
struct PodEnd {
  Time at{};
  std::chrono::seconds grace{0};
  bool operator==(const PodEnd&) const = default;
};

// The operator's words.
struct Work {
  std::int64_t seq = 0;  // each write raises it
  bool draining = false;
  std::vector<WorkEntry> entries;
  std::optional<PodEnd> end = std::nullopt;  // the worker's pod was deleted; then it drains
};

// What became of an attempt.
enum class AnswerKind {
  kRunning,
  kEnded,     // by itself; the exit code counts
  kStopped,   // by the agent: its entry said so, or the worker drained
  kReturned,  // it never began
};

struct Answer {
  AttemptId id;
  AnswerKind kind = AnswerKind::kRunning;
  int exit_code = 0;  // kEnded
  // kEnded; at most kMaxResultBytes. With another exit code than 0 the last lines that the command
  // printed, if it left no result.
  std::string result;
  std::int64_t mark = 0;  // how often the attempt made progress
  std::int64_t age_seconds = 0;
  std::string message;     // of the last progress
  std::string checkpoint;  // the last one
};

// The agent's words.
struct WorkerReport {
  std::string work_uid;  // of the work Lease that was applied
  std::int64_t seq = 0;  // that was applied
  std::string life;      // the agent process; a container that was restarted has another one
  bool draining = false;
  std::vector<Answer> answers;
};

std::string encode_work(const Work& work);
// At most kMaxProtocolBytes, for up to kMaxProtocolEntries answers. If the texts are too long
// together, two things happen, each from the last answer to the first, until the rest fits:
// - Attempts that run or were returned lose their texts.
// - Attempts that ended or were stopped become kRunning, without texts. The agent keeps the answer
//   and sends it with a later report.
// The first end always fits. Without texts 32 answers take less than 6 KB: each has a UID of 36
// bytes and numbers of 19 digits. The texts of one end are a message and a result, without control
// characters, and a checkpoint. Their JSON has at most 2 * (256 + 1,024) + 6 * 1,024 bytes, less
// than 9 KB.
std::string encode_report(const WorkerReport& report);

// Errors name the first thing that is wrong. An empty text is an empty work of seq 0.
Result<Work> decode_work(std::string_view text);
Result<WorkerReport> decode_report(std::string_view text);

}  // namespace holdfast
