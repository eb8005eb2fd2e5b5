// What one replica remembers of one job between reconciles. All of it may be lost at any moment,
// because a crash loses it. Correctness rests on `status` alone; this record makes the operator
// quick and quiet.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/controller/own_writes.h"
#include "client/kube/client.h"
#include "core/time.h"
#include "operator/codecs/job_codec.h"
#include "operator/membership/ownership.h"
#include "reconciler/job/decide.h"
#include "reconciler/refusals.h"
#include "reconciler/run/creations.h"
#include "reconciler/run/sightings.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

// The creation of an attempt's pod that is under way, or whose refusal is not on record yet. The
// shard is not handed over before that, because the next owner would take the attempt for an
// abandoned one.
struct Creation {
  membership::Ownership::Claim claim;
  std::shared_ptr<void> shard;  // keeps the shard
  bool under_way = true;
  std::optional<std::uint64_t> ticket = std::nullopt;  // it waits for its turn (Creations)
  kube::CancellationPtr request = std::make_shared<kube::Cancellation>();
  bool handed_over = false;  // it was cancelled for that; the next owner asks again
  bool reported = false;     // it has ended, and a decision was made on that
  SteadyTime ended_at{};
};

// The requests for an attempt's pod that may still be applied, or were.
struct PodRequests {
  // The version of the pod that this process created, and when. Until the cache has reached it, the
  // pod need not show.
  std::uint64_t created_version = 0;
  SteadyTime created_at{};
  SteadyTime lag_reported{};  // when the watch was last said to lag behind that pod
  // One is under way since then.
  std::optional<SteadyTime> asked_at;
  // One without an answer may be applied until then.
  SteadyTime unanswered_until{};
  int unanswered = 0;  // how many of these there are, at most
  // One of the replica that had the shard before may be applied until then.
  SteadyTime others_until{};
  // A live look has shown that none can succeed any more.
  bool comes_no_more = false;

  void add_unanswered(SteadyTime asked, Duration limit) {
    unanswered = unanswered_until > asked ? unanswered + 1 : 1;
    unanswered_until = asked + limit;
  }
};

// What it remembers of one attempt. The record of another attempt is another record.
struct AttemptMemory {
  // The intents that this process has sent, whatever the answers were. Each try has a stamp of its
  // own. Any of them may have been applied although its answer was lost.
  std::vector<Time> intent_stamps;
  // This process created a pod of the attempt or saw one, and this was its UID. The first one
  // counts. A later pod of the same name is another pod.
  bool pod_existed = false;
  std::string pod_uid;
  reconciler::Sightings pod;
  std::optional<Creation> creation;
  PodRequests requests;
  // The UIDs of pods that had its name and were not its pod: the last few.
  std::vector<std::string> strangers;
  bool creating() const { return creation && creation->under_way; }
  // A pod of it may come that the cache, which has this version, does not show yet.
  bool may_still_show(std::uint64_t shown) const {
    return creating() || requests.created_version > shown;
  }
  std::optional<SteadyTime> look_failed;  // the last live read of its pod that failed
  // The attempt was there when the shard came to us. The replica that recorded it no longer acts.
  bool inherited = false;
  // Since when the attempt has been seen without a pod.
  std::optional<SteadyTime> bare_since;
  reconciler::CreationRefusals refusals;
  // This process has sent a write of the job's Lease for the attempt.
  bool lease_asked = false;
  // The recovery that ends when the attempt's pod exists.
  reconciler::OrphanClass recovers_from = reconciler::OrphanClass::kNone;
  SteadyTime trouble_began{};

  // A pod that existed was made by the only request without an answer. If there are more, or one
  // was answered, another may still make the pod again once it is gone.
  bool pod_was_the_unanswered() const {
    return pod_existed && requests.unanswered == 1 && requests.created_version == 0;
  }
  void inherit(SteadyTime until) {
    inherited = true;
    requests.others_until = until;
    requests.comes_no_more = false;
  }
  // A pod that this process did not make was made by theirs.
  bool others_may_create(SteadyTime now) const {
    return (!pod_existed || requests.created_version > 0) && requests.others_until > now;
  }
  void add_intent(const std::optional<Time>& stamp);
  void add_stranger(const std::string& uid);
  bool is_stranger(const std::string& uid) const;
  // This process recorded it, and has sent all requests for its pod that there are.
  bool is_all_ours() const { return !intent_stamps.empty() && !inherited; }
  bool has_intent(const std::optional<Time>& stamp) const;
};

// What it remembers of one run, whatever its attempt.
struct RunMemory {
  // The last write of the run's Lease was refused; empty: it was not.
  std::string lease_refusal;
  int lease_refusals = 0;
  SteadyTime lease_retry_at{};
  // The last holder of the run's Lease whose worker this process saw terminate. Its pod may be
  // gone.
  std::string stopped_holder;
  // A live read has shown that this attempt, which is no longer open, has no pod that may still
  // run. Zero: none has.
  std::int64_t over = 0;
};

// The versions of our own writes for one job: of the job, its pods and its Leases. The job is
// looked at again when the caches show them.
struct OwnVersions {
  std::uint64_t job = 0;
  std::uint64_t pod = 0;
  std::uint64_t lease = 0;
  controller::OwnWriteWait wait;

  // The server's data was set back.
  void forget() { job = pod = lease = 0; }
};

struct KeptTexts {
  // Texts too large for the cache: creations in flight hold them. `of`: their generation and stage.
  std::weak_ptr<const codecs::JobTexts> shared;
  std::pair<std::int64_t, std::size_t> of;
  // Those of a job that has just left its queue, until one of its pods is created or refused.
  std::shared_ptr<const codecs::JobTexts> fresh;
};

// Deletions that did not succeed, by the pod's name.
struct PodDeletions {
  std::map<std::string, reconciler::DeletionTrouble> troubles;  // of the last one
  std::map<std::string, SteadyTime> failing_since;              // of pods of ended attempts
  std::map<std::string, SteadyTime> stay_until;  // refused: none is asked for before this time
};

struct JobMemory {
  std::string uid;

  OwnVersions own;

  struct Leaving {
    bool status_is_sent = false;  // a write of the status is under way
    // The job as our write has settled it (left_jobs.h). Null: none has.
    kube::ObjectPtr left;
  };
  Leaving leaving;
  std::optional<SteadyTime> last_write;
  std::uint64_t status_writes = 0;      // that the API server has accepted
  std::optional<SteadyTime> last_look;  // the end of its last reconcile

  // By number: the attempts of open runs, and those whose intents were sent.
  std::map<std::int64_t, AttemptMemory> attempts;
  std::map<std::int64_t, RunMemory> runs;  // by index
  // The highest attempt that a pod of the job has shown, and that the status may reach.
  std::int64_t highest_attempt = 0;
  bool knows_highest = false;

  // A pod of the job has this attempt. If it is far ahead of the status (kMostAhead), no operator
  // made the pod, and it is ignored.
  void remember_highest(const reconciler::Status& status, std::int64_t attempt);

  // Keeps what concerns open runs, intents, and pods that may still show. `shown`: the version of
  // the cache of pods. `podless`: reconciler::podless_attempts().
  void keep_only(const reconciler::Status& status, std::uint64_t shown,
                 const std::vector<reconciler::PodlessAttempt>& podless, SteadyTime now);
  // Null: nothing is remembered of it.
  const AttemptMemory* find_attempt(std::int64_t number) const;
  AttemptMemory* find_attempt(std::int64_t number);

  bool creating() const;
  // A creation is under way, or has ended with a refusal that is not on record.
  bool has_creation() const;
  // A decision is made on the creations that have ended by now.
  void report_ended_creations();
  // Their refusals are on record, or cannot be.
  void forget_ended_creations(const std::function<bool(const Creation&)>& which);

  // The API server has asked for a pause until these times: for each kind of write, and for live
  // reads.
  std::array<SteadyTime, std::variant_size_v<reconciler::Write>> writes_not_before{};
  SteadyTime looks_not_before{};

  KeptTexts texts;

  // A write of a Lease that is over was refused: none is asked for before this time.
  SteadyTime leases_stay_until{};

  PodDeletions deletions;
};

}  // namespace holdfast::jobs
