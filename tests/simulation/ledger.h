// Checks the safety rules after every write that the API server accepts. It sees the stored data
// and the sender of each request. The first broken rule ends the run.
//
// Names are those of docs/internals/verification.md: S1 OneOutcome ... S26 WrittenBack. S9 is
// checked on requests that the network delivered twice; S7, S11, S14 and S15 on requests that a
// replica sends.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "reconciler/types.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/ledger_lane.h"
#include "tests/simulation/ledger_rescue.h"
#include "tests/simulation/permits.h"
#include "tests/simulation/receivers.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/warm_workers.h"

namespace holdfast::simulation {

// A replica knows the server's time in whole seconds only, and its clock may drift.
inline constexpr std::chrono::seconds kClockTolerance{4};

class Ledger {
 public:
  Ledger(Scheduler& scheduler, Gateway& gateway, const Cluster& cluster, WarmWorkers& workers)
      : scheduler_(scheduler),
        gateway_(gateway),
        cluster_(cluster),
        workers_(workers),
        permits_(scheduler, gateway, cluster, [this](const auto& what) { complain(what); }),
        lane_(gateway, [this](const auto& what) { complain(what); }),
        rescue_({scheduler, gateway, cluster, [this](const auto& what) { complain(what); },
                 [this] { return fastest_rate(); }}) {}

  // The rate of a replica's steady clock, in parts per million of the world's.
  void clock_rate(int replica, std::int64_t ppm) { rates_[replica] = ppm; }
  void shards(int count) { shards_ = count; }
  // What the targets of notifications took: S23.
  void receivers(const Receivers& receivers) { receivers_ = &receivers; }
  // The replica's life that owns this member Lease; none: unknown.
  using Life = std::pair<int, std::uint64_t>;
  std::optional<Life> life_of(const std::string& member) const;

  // These follow a request from its sending to its answer.
  void sent(const Delivery& delivery);
  void arrives(const Delivery& delivery);
  void handled(const Delivery& delivery, const ApiAnswer& answer);
  void answered(const Delivery& delivery, const ApiAnswer& answer);
  void applied(const Applied& applied);

  // The data were set back: S3 and all counts start again.
  void data_restored();
  // A user removed this pod with its finalizer, or its labels that the watch selects.
  // Of a pod, or of a job whose status a test edits.
  void excuse(const std::string& pod_key) { excused_.insert(pod_key); }
  // A user is deleting this namespace.
  void namespace_deleted(const std::string& name) { gone_namespaces_.insert(name); }

  const std::string& violation() const { return violation_; }
  void complain(const std::string& what);
  std::function<void()> on_violation;

  // Writes of replicas, without Leases.
  std::uint64_t replica_writes() const { return replica_writes_; }
  std::uint64_t checks() const { return checks_; }
  // When a pod, by UID, was first seen to have ended.
  struct PodBook {
    std::string namespace_, name, owner_uid;
    std::int64_t attempt = 0;
    reconciler::PodPhase phase = reconciler::PodPhase::kPending;
    bool made = false;     // a replica made it
    bool of_pool = false;  // it is a worker's
    Duration created{0};
    Time created_at{};  // in the API server's time, as the next one
    Time bound_at{};    // epoch: it never was
    Time ran_until{};   // its kubelet said so last; epoch: it never did
    bool gated = false;
    Duration ended{0};
    Duration removed{0};  // zero: it exists
  };
  const std::map<std::string, PodBook>& pods() const { return pods_; }
  Permits& permits() { return permits_; }
  const Permits& permits() const { return permits_; }

 private:
  struct AttemptBook {
    std::int64_t index = 0;  // of its run
    std::size_t stage = 0;
    Life recorder{-1, 0};  // replica and life that recorded it
  };
  struct JobBook {
    std::set<std::int64_t> ended;
    std::int64_t failures = 0;
    std::int64_t disruptions = 0;
    std::map<std::int64_t, std::string> last_pod;  // by attempt: the UID of its last pod
    std::map<std::int64_t, AttemptBook> attempts;
    std::map<std::int64_t, bool> over;  // indexes that have succeeded (true) or failed
  };
  // An open attempt that a write ends.
  struct RunEnd {
    const reconciler::Run* was;
    const reconciler::Run* now;             // null: the run is over
    const reconciler::HistoryEntry* entry;  // null: history does not record it
  };
  struct StatusWrite {
    const Json& before;
    const Json& after;
    reconciler::Status old;
    reconciler::Status next;
    reconciler::Spec spec;       // of the stage before it, which the decision used
    reconciler::Spec next_spec;  // of the stage after it
    std::vector<reconciler::Stage> stages;
    bool cancel = false;
    bool moves = false;  // to another stage
    std::string uid;
    std::string name;
    bool by_replica = false;
    std::vector<std::string> notify;
  };

  // ledger_owners.cc
  // `keys`: each of them decides a shard, whose holder may act.
  void owner_acts(const Delivery& delivery, const std::vector<std::string>& keys);
  std::string lease_holder(const std::string& shard_lease) const;
  std::vector<std::string> releasers_of(const ApiRequest& request) const;
  // Keys as reconciler::own_shard_key(). The first one is the job's; the others were, or may be.
  std::vector<std::string> shard_keys_of_job(const std::string& uid) const;
  void check_shard(const StatusWrite& write, const std::string& job);
  // Of the status of the job that is written; empty: none.
  std::string recorded_shard(const ApiRequest& request) const;
  // Its Lease; empty: the job's status says none.
  std::string said_shard(const std::string& job_uid) const;
  bool is_jobs_shard(const std::string& label, const std::string& job_uid) const;
  // Of the request's job or queue; empty: unknown.
  std::vector<std::string> shard_keys_of(const ApiRequest& request, const Json& body) const;
  std::string job_uid_of(const ApiRequest& request, const Json& body) const;
  // ledger.cc
  void job_written(const Applied& applied);
  // ledger_status.cc
  void status_written(const StatusWrite& write);
  void check_deadline(const StatusWrite& write, const std::string& job);
  void check_success(const StatusWrite& write, const std::string& job);
  void check_stages(const StatusWrite& write, const std::string& job);
  void check_outbox(const StatusWrite& write, const std::string& job);
  void check_indexes(const StatusWrite& write, JobBook& book);
  std::vector<RunEnd> ends_of(const StatusWrite& write);
  void attempts_ended(const StatusWrite& write, JobBook& book);
  void attempt_ended(const StatusWrite& write, JobBook& book,
                     const reconciler::HistoryEntry& entry);
  static void count_unrecorded(const StatusWrite& write, const RunEnd& end, JobBook& book);
  void attempts_started(const StatusWrite& write, JobBook& book);
  bool gives_back(const StatusWrite& write) const;
  void attempt_started(const StatusWrite& write, const reconciler::Run& run, JobBook& book);
  // Its UID is empty: it was never made.
  std::pair<std::string, PodBook> truth_of(const std::string& job_uid, const std::string& pod_name,
                                           const std::string& pod_uid) const;
  static reconciler::PolicyAction action_of(const reconciler::Spec& spec,
                                            std::optional<int> exit_code);
  // ledger_newer.cc
  void check_written_back(const Applied& applied);
  void check_known(const StatusWrite& write);
  // ledger_workers.cc
  void check_places(const StatusWrite& write);
  void attempt_placed(const StatusWrite& write, const reconciler::Run& run);
  void worker_attempt_ended(const StatusWrite& write, JobBook& book,
                            const reconciler::HistoryEntry& entry, const reconciler::Run& run);
  bool succeeded_at_worker(const StatusWrite& write, const reconciler::Run& run) const;
  void check_mark(const Json& before, const Json& after);
  void check_hung(const StatusWrite& write, const reconciler::HistoryEntry& entry,
                  const WarmWorkers::Truth* truth);
  void see_pooled(const Applied& applied);
  void pool_written(const Json& pool);
  bool may_lack_pool(const std::string& namespace_, const std::string& pool) const;
  void worker_lease_written(const Applied& applied);
  void work_lease_written(const Json& before, const Json& after);
  void check_entries(const Json& lease, const Work& was, const Work& now);
  void worker_pod_written(const Json& pod);
  void check_pool_size(const Json& pod);
  void check_worker_deleted(const Json& pod);
  bool is_over(const std::string& namespace_, const WorkEntry& entry,
               const std::string& lease_uid) const;
  bool is_past_start(const Json& pod) const;
  bool gets_attempts(const Json& pod, const std::string& hash) const;
  // ledger_times.cc
  void check_loss(const StatusWrite& write, const reconciler::HistoryEntry& entry);
  void check_heartbeat(const StatusWrite& write, const reconciler::HistoryEntry& entry,
                       const std::string& pod_uid);
  void check_times(const StatusWrite& write, const reconciler::HistoryEntry& entry,
                   const std::string& pod_uid, const PodBook& pod);
  bool all_gated(const StatusWrite& write) const;
  void check_start_timeout(const StatusWrite& write, const PodBook& pod);
  void check_taken_back(const StatusWrite& write, const reconciler::HistoryEntry& entry,
                        const PodBook& pod);
  void check_shared_metadata(const StatusWrite& write);
  void job_removed(const Json& job, bool by_replica);
  // ledger_pods.cc
  void pod_written(const Applied& applied);
  void pod_created(const Json& pod);
  void check_not_over(const Json& job, const Json& pod);
  void check_all_stopped(const StatusWrite& write);
  bool may_be_left(const StatusWrite& write, const PodBook& pod, const Json& object) const;
  void pod_template_kept(const Json& job, const Json& body);
  void pod_touched(const Json& before, const Json* after);
  void second_copy(const Delivery& delivery);
  std::optional<Duration> last_read(const std::string& target) const;
  bool by_replica(const Applied& applied) const;
  std::int64_t rate() const;
  // A window may have been counted by any replica, on its own clock.
  std::int64_t fastest_rate() const;
  Time wall() const { return gateway_.wall_clock(); }

  Scheduler& scheduler_;
  Gateway& gateway_;
  const Cluster& cluster_;
  WarmWorkers& workers_;
  Permits permits_;
  LaneLedger lane_;
  RescueLedger rescue_;
  std::string violation_;
  std::map<std::string, JobBook> jobs_;
  // Where attempts of each job fell silent, by its UID. A restore takes none away.
  std::map<std::string, std::set<std::string>> lost_on_;
  std::map<std::string, PodBook> pods_;
  std::multimap<std::string, std::string> pods_by_name_;  // to their UIDs
  std::set<std::string> excused_;
  std::set<std::string> undeletable_;  // pods by target: a rule has forbidden their deletion
  // Workers that are cut off, by the UID of their worker Lease: the report that counts.
  std::map<std::string, WorkerReport> cut_off_;
  // The limits of pools, by UID.
  struct PoolSize {
    std::int64_t most = 0;
    std::int64_t before = 0;
    Duration changed{0};
    Duration start_deadline{0};  // the shortest that it had
  };
  std::map<std::string, PoolSize> pool_sizes_;
  std::set<std::string> once_missing_;  // pools by namespace and name; a stale watch shows it late
  // Workers' pods that could not start, by UID: until when. A stale watch still shows that.
  std::map<std::string, Duration> could_not_start_;
  std::map<std::string, Duration> began_;  // by a worker's UID: its first renewal
  // Of all jobs with a stage in a pool that ever were, by UID: whether the job is gone.
  std::map<std::string, std::pair<std::string, bool>> pooled_jobs_;
  std::map<std::string, std::vector<Duration>> node_renewals_;
  std::set<std::string> gone_namespaces_;
  std::map<int, std::int64_t> rates_;
  const Delivery* current_ = nullptr;
  std::uint64_t version_before_ = 0;
  Duration restored_at_{-1};
  // The server's version after a request's first delivery, by the request's number.
  std::map<std::uint64_t, std::uint64_t> first_copies_;
  // For each life of a replica: its last live read of each path, and the last version that it wrote
  // of each job and queue. Also when it sent its last acknowledged renewal.
  std::map<std::pair<Life, std::string>, Duration> reads_;
  std::map<std::pair<Life, std::string>, std::uint64_t> own_writes_;
  std::map<Life, Duration> renewals_;
  std::map<std::string, Life> members_;
  int shards_ = 1;
  const Receivers* receivers_ = nullptr;
  std::uint64_t replica_writes_ = 0;
  std::uint64_t checks_ = 0;
};

}  // namespace holdfast::simulation
