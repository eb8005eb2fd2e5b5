// Decides what a replica writes into the status of a queue now, and so which jobs may start. Pure.
//
// Admission is two writes (docs/queues.md). First a compare-and-swap of the queue's status records
// all admissions that are due. Then come the intents of these jobs. Before its first admission an
// owner claims the queue (tenure.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reconciler/observed.h"
#include "reconciler/queue/line.h"
#include "reconciler/queue/queue.h"

namespace holdfast::reconciler {

// Changes of the numbers alone are written at most this often.
inline constexpr seconds kQueueRefresh{5};
// Admissions share their writes. The more permits are out, the sooner the next one comes back. So
// for each permit that is out an admission waits this long after the last write, up to
// kAdmissionPause. A queue of one permit waits for nothing.
inline constexpr std::chrono::milliseconds kAdmissionPauseOfPermit{5};
inline constexpr std::chrono::milliseconds kAdmissionPause{250};  // at most

struct QueueView {
  QueueSpec spec;
  QueueStatus status;  // as it was last written
  // Admissions of an earlier queue of this name, as they stood there last.
  std::vector<Admission> carried;
  std::int64_t generation = 0;
  std::string self;         // the name of this replica's tenure
  bool claimed = false;     // `self` has claimed this queue (QueueTenure::holds)
  bool may_count = false;   // and its caches are as new as the claim
  GuardView guard;          // while it holds, nothing is admitted
  Duration since_write{0};  // since this process last wrote the status; long, if it never did
  Time now{};
};

struct QueueDecision {
  // PUT on /status with the resourceVersion that was read.
  std::optional<QueueStatus> write;
  bool claims = false;                // the write is a claim
  std::vector<std::string> admitted;  // the UIDs of the jobs that the write admits
  // The caches must become as new as the claim; soon, if jobs wait.
  bool awaits_caches = false;
  // Decide again after this time, or earlier after an event.
  std::optional<Duration> wake_after;
};

// Marks the admitted jobs in `line`. If the write fails, set the line's admissions back.
QueueDecision decide_queue(const QueueView& view, Line& line);

// A waiting job could be admitted now. It should be, within moments.
bool could_admit(const QueueSpec& spec, const std::optional<Tokens>& tokens, Time now,
                 const Line& line);

}  // namespace holdfast::reconciler
