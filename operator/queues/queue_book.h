// One queue as one replica knows it: its jobs, the admissions on record, and whether the replica
// may count. All of it can be lost: the next owner makes it from the caches. Loop only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "client/controller/own_writes.h"
#include "core/time.h"
#include "operator/codecs/job_codec.h"
#include "operator/queues/queue_codec.h"
#include "reconciler/queue/admission.h"
#include "reconciler/queue/line.h"
#include "reconciler/queue/tenure.h"

namespace holdfast::queues {

// The pods of a job with podReplacementPolicy Failed that have not ended, as the cache shows them.
enum class OldPods {
  kNone,
  kThere,
  kUnknown,  // the cache is older than the job
};

class QueueBook {
 public:
  // The job as the cache has it now.
  void put(const codecs::CachedJob& job, OldPods pods, Time now);
  void erase(const std::string& uid);
  // decide() says that the job could start if it were admitted, or not.
  void ask(const codecs::CachedJob& job, bool wants, OldPods pods, SteadyTime at, Time now);

  // An owner has put the job on record as admitted for the attempt after this one. That stays true
  // until the job has another attempt (docs/queues.md), also with a new owner.
  bool is_admitted(const std::string& uid, std::int64_t attempt) const;
  // Since the job first asked; zero: it has not, or says so in its status.
  Duration waited(const std::string& uid, SteadyTime now) const;
  // Pods matter: a job keeps its permit until its pod has ended.
  bool counts_pods() const { return !strict_.empty(); }

  // The newest state that is known: the cache's, or the one of our own last write.
  struct Current {
    const reconciler::QueueStatus* status;
    std::uint64_t version;
  };
  Current current(const CachedQueue& queue);
  const std::vector<reconciler::Admission>& carried() const { return carried_; }
  // Our write was acknowledged. False: meanwhile the queue became another one, or the server's time
  // went back, so the write says nothing.
  bool written(const CachedQueue& queue, reconciler::QueueStatus status, std::uint64_t version,
               SteadyTime now);
  // Our write failed, or may have: the line is as the last known status says. `queue`: as cached.
  void not_written(const CachedQueue& queue);
  // The names of jobs whose admissions were not known before the last call.
  std::vector<std::string> take_admitted();
  // After a restore: forgets the queue's status, all admissions and the claim.
  void time_travelled();

  // Called when something has changed: for how long a job could have been admitted and was not.
  void watch_lag(const CachedQueue* queue, Time now, SteadyTime steady);
  void admitted_some() { admissible_since_.reset(); }
  Duration lag(SteadyTime now) const;

  // Throws if what is kept twice disagrees (core/invariant.h). Checked as Line::check() is, which
  // it does not call.
  void check() const;

  reconciler::Line line;
  reconciler::QueueTenure tenure;
  std::optional<SteadyTime> last_write;

 private:
  void set_admissions(const reconciler::QueueStatus& status);
  bool is_sound() const;

  std::unordered_map<std::string, SteadyTime> asked_;  // not yet in their status
  std::unordered_set<std::string> strict_;             // with podReplacementPolicy Failed
  std::unordered_map<std::string, std::int64_t> admitted_;
  std::vector<std::string> news_;  // UIDs, see take_admitted()
  std::string uid_;                // of the queue whose status is known
  std::uint64_t seen_version_ = 0;
  controller::OwnWrite<reconciler::QueueStatus> own_;
  // From an earlier queue of this name, until a claim has them.
  std::vector<reconciler::Admission> carried_;
  std::vector<reconciler::Admission> recorded_;  // all that are known
  std::optional<SteadyTime> admissible_since_;
};

}  // namespace holdfast::queues
