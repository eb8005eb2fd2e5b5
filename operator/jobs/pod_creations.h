// The creations of jobs' pods. No worker waits for them. Each runs beside the reconciles, with a
// slot of its namespace (Creations), and keeps its shard until its result is on record. Loop only.
// Destroy it when the client is idle.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_set>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/jobs/creations.h"
#include "operator/jobs/executor.h"
#include "operator/jobs/job_caches.h"
#include "operator/jobs/job_memories.h"
#include "operator/membership/membership.h"

namespace holdfast::jobs {

class PodCreations {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    const JobCaches& caches;
    membership::Membership& membership;
    Executor& executor;
    JobMemories& memories;
    // The job has its turn to create a pod. Runs in a later turn of the loop.
    std::function<void(const std::string& key)> on_turn;
    // A creation has ended, and the job must be looked at.
    std::function<void(const std::string& key)> on_end;
    // A creation has begun, or one has ended and is on record.
    std::function<void()> on_change;
  };
  // `each`: see Creations.
  PodCreations(Dependencies dependencies, int each);
  ~PodCreations();

  // A reconcile of a job. If it has a turn to create a pod and does not use it, another job gets
  // the turn. A turn that comes meanwhile is the next reconcile's.
  class Look {
   public:
    Look(PodCreations& creations, const std::string& key)
        : turns_(creations.turns_), key_(key), has_turn_(turns_.has_turn(key)) {}
    ~Look() {
      if (has_turn_) turns_.looked_at(key_);
    }
    // It decides nothing: the next reconcile follows soon, and has the turn.
    void keep_turn() { has_turn_ = false; }
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;

   private:
    Creations& turns_;
    const std::string& key_;
    bool has_turn_;
  };

  Creations& turns() { return turns_; }
  const Creations& turns() const { return turns_; }

  // `turn`: see Creations; null: it waits in line for its own.
  void begin(codecs::JobPtr job, membership::Ownership::Claim claim, JobMemories::Ptr memory,
             Creations::Slot turn, const reconciler::CreatePod& write, const Log& log);
  // The turn for the first pod that this decision creates. Null: it creates none, or must wait.
  Creations::Slot take_turn(const std::string& key, const reconciler::Decision& decision);
  // Those in line whose attempts this decision ends are not sent any more.
  void withdraw(const reconciler::Decision& decision, JobMemory& memory);
  // The results of its creations that have ended are on record, or will not be.
  void settle(const JobMemories::Ptr& memory);
  // Nobody remembers the job any more.
  void drop(const JobMemories::Ptr& memory);
  // No creation is in progress, nor has ended without being on record.
  bool empty() const { return creating_.empty(); }

  // The shard goes to another replica: its jobs begin nothing.
  bool hands_over(int shard) const;
  // A shard will be handed over. Creations that take too long are cancelled.
  void hand_over_soon();
  // All shards will be handed over.
  void hand_all_over();
  // This replica has lost the shard.
  void lost(int shard);
  // Another replica has the job, which has this shard by now. Its creations are cancelled, and what
  // they bring is nobody's to put on record.
  void let_go(const JobMemories::Ptr& memory, int shard);
  // Begins nothing and cancels nothing more. `idle`: see Creations::stop().
  void stop(std::function<void()> idle);

 private:
  void withdraw(const reconciler::Status& next, JobMemory& memory);
  // The cache shows that the attempt has ended, or that its job is gone.
  bool is_over(const codecs::CachedJob& job, std::int64_t attempt) const;
  Task<void> create(codecs::JobPtr job, membership::Ownership::Claim claim, JobMemories::Ptr memory,
                    Creations::Slot slot, reconciler::CreatePod write, Log log);
  using IsMeant = std::function<bool(int shard)>;
  void cancel(const IsMeant& is_meant, bool hands_over);
  void cancel(JobMemory& memory, const IsMeant& is_meant, bool hands_over);

  Dependencies deps_;
  Creations turns_;
  // Jobs with a creation that is in progress, or has ended and is not on record.
  std::unordered_set<JobMemories::Ptr> creating_;
  bool hands_all_over_ = false;
  bool stopped_ = false;
  TimerId hand_over_timer_ = 0;
};

}  // namespace holdfast::jobs
