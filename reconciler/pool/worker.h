// Decides about one worker of a pool (docs/workers.md): make its Leases, revoke it, cut it off, or
// forget it. Its work is decided elsewhere (work.h). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"
#include "core/worker_protocol.h"
#include "reconciler/pool/work.h"
#include "reconciler/staleness.h"

namespace holdfast::reconciler {

// How long the echo in the worker Lease has been behind the work Lease, in live time. A busy worker
// is always a little behind the newest version, so each version is waited for by itself.
class EchoLag {
 public:
  // Either Lease was seen. `work_uid`: empty if there is no work Lease.
  void seen(const std::string& work_uid, std::int64_t seq, const WorkerReport& report,
            LiveTime time);
  void forget() { since_.reset(); }
  Duration lags_for(LiveTime time) const;

 private:
  std::optional<Duration> since_;
  std::int64_t awaited_ = 0;
};

enum class PodIs {
  kUnknown,  // no pod is there, but the cache may be too old to show it
  kThere,
  kDead,     // it has ended, and its kubelet saw all containers terminate
  kDoubted,  // it has ended, as somebody else says
  kGone,
};

struct WorkerFacts {
  PodIs pod = PodIs::kUnknown;
  bool has_pool = true;  // there is its pool, which is not being deleted
  // The worker Lease. `is_ours`: somebody else has not changed what makes it one of ours.
  bool has_lease = false;
  bool is_ours = true;  // if not, the rest is unknown
  WorkerIs is = WorkerIs::kLive;
  bool renewed = false;    // by its agent, at any time
  bool is_marked = false;  // by an agent
  bool has_work = false;   // the work Lease
  Duration duration{0};
  // The worker Lease has not changed, in live time.
  Duration silent_for{0};
  // Most others fell silent too, so the verdict waits for one more duration.
  bool held_back = false;
  Duration lags_for{0};  // EchoLag
  // A job on record has its place here, or nobody knows yet.
  bool is_needed = true;
};

enum class WorkerStep {
  kNone,
  kMakeLease,         // the worker Lease
  kMakeRevokedLease,  // the same, of a worker that has had one
  kMakeWork,          // the work Lease
  kRevoke,
  kCutOff,
  kForget,  // delete both Leases
};

struct WorkerDecision {
  WorkerStep step = WorkerStep::kNone;
  // Why, as one word for metrics and as a sentence's end for humans; kRevoke and kCutOff only.
  const char* reason = "";
  std::string message;
  // It may get new attempts, as far as this can tell.
  bool takes = false;
  std::optional<Duration> wake_after;
};

WorkerDecision decide_worker(const WorkerFacts& worker);

}  // namespace holdfast::reconciler
