// Decides about one worker of a pool (docs/internals/workers.md): make its Leases, revoke it, cut
// it off, or forget it. Its work is decided elsewhere (work.h). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"
#include "core/worker_protocol.h"
#include "reconciler/pool/work.h"

namespace holdfast::reconciler {

// Whether the echo in the worker Lease is what the work Lease says. A busy worker is always a
// little behind the newest version, so one version is awaited at a time. Who measures the time
// starts again when the lag is another one. Pure.
class EchoLag {
 public:
  enum class Is {
    kNone,   // the echo is the newest version
    kSame,   // the same lag as before
    kOther,  // a lag that has just begun: its last version was echoed, or there was none
  };
  // Either Lease was seen. `work_uid`: empty if there is no work Lease. If an agent ignores its
  // work Lease, it stays in one lag, however that Lease changes. Its echo is of another Lease or is
  // ahead, e.g. because somebody set the work Lease back.
  Is seen(const std::string& work_uid, std::int64_t seq, const WorkerReport& report);

  // Names a lag that has just begun, for records that outlive the process.
  std::uint64_t mark() const;
  // This mark, of another process, is of the lag that is going on here: its version is not echoed
  // yet.
  bool is_of(std::uint64_t mark) const;
  // Such a lag may have begun earlier: it ends with the echo of that version. False: see is_of().
  bool take_over(std::uint64_t mark);

 private:
  bool lags_ = false;
  bool astray_ = false;       // the agent ignores the work Lease
  std::int64_t awaited_ = 0;  // the version; kNever: only the newest one will do
  std::int64_t echoed_ = 0;
  std::uint64_t work_mark_ = 0;  // of the work Lease's UID
};

enum class PodIs {
  kUnknown,  // no pod is there, but the cache may be too old to show it
  kThere,
  kDead,     // its kubelet saw the agent's container terminate, or all of them
  kDoubted,  // it has ended, as somebody else says
  kGone,
};

struct WorkerFacts {
  PodIs pod = PodIs::kUnknown;
  bool out_of_memory = false;  // kDead: the kernel killed the agent's container for its memory
  bool has_pool = true;        // there is its pool, which is not being deleted
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

// A reason of kCutOff. The cut-off's write carries it: the pod may be gone before all of its jobs
// have looked.
inline constexpr const char* kOutOfMemory = "OOMKilled";

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
  // It may get new attempts, as far as this knows.
  bool takes = false;
  std::optional<Duration> wake_after;
};

WorkerDecision decide_worker(const WorkerFacts& worker);

}  // namespace holdfast::reconciler
