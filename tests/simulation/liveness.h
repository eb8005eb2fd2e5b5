// Checks that the right things happen in time: L1-L7 of docs/internals/verification.md and the
// bounds of the orphan classes. Twice a second it looks at the stored data and notes how long each
// job has been in trouble. A trouble that lasts longer than its bound is a violation.
//
// It is active only while no faults are planned. A bound counts from the beginning of the trouble,
// or from the end of the faults, because all windows start again then.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "operator/codecs/job_codec.h"
#include "operator/codecs/pod_codec.h"
#include "reconciler/types.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/network.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class Replica;

class Liveness {
 public:
  Liveness(Scheduler& scheduler, Gateway& gateway, const Cluster& cluster, const Network& network,
           Ledger& ledger, const WarmWorkers& workers)
      : scheduler_(scheduler),
        gateway_(gateway),
        cluster_(cluster),
        network_(network),
        ledger_(ledger),
        workers_(workers) {}

  void watch(bool on);
  // How much slower a replica's clock may run than the world's, in parts per million.
  void slowest_clock(std::int64_t ppm) { slowest_ppm_ = ppm; }
  // A replica died or started: its memory is gone, and windows start again.
  void replica_changed() { replica_changed_ = scheduler_.now(); }
  // One replica is killed again and again. This doubles the bounds, however often it happens.
  void often_killed() { often_killed_ = true; }

  // Twice a second.
  void look(const std::vector<Replica*>& replicas);

  // A queue's status was written; the ledger has seen it.
  void queue_written(const std::string& name);

  // All that is wrong at rest; empty: nothing.
  std::string unsettled() const;
  std::string untidy() const;
  const std::map<std::string, double>& slowest() const { return slowest_; }

 private:
  struct Trouble {
    Duration since{0};
    Duration bound{0};
    bool seen = false;
  };
  struct Job;  // one job of the truth, decoded
  struct RunOfJob {
    const Job& job;
    const reconciler::Run& run;      // open
    const reconciler::PodView* pod;  // null: it has none
  };
  // Decoded objects by UID, with their versions. Most do not change between two looks.
  template <class T>
  using Decoded = std::map<std::string, std::pair<std::string, std::shared_ptr<const T>>>;

  void look_at_job(const Job& job);
  void look_at_stopping(const Job& job, const char* gone);
  void look_at_opening(const Job& job);
  void look_at_running(const RunOfJob& one);
  void look_at_start(const RunOfJob& one, const reconciler::PodView& pod);
  void look_at_heartbeat(const RunOfJob& one, const reconciler::PodView& pod);
  int silent_holders() const;
  // liveness_workers.cc
  using JobStatus = reconciler::Status;
  // A worker Lease, with the work Lease beside it.
  struct LeasedWorker {
    std::string namespace_, pool, pod_uid, holder;
    Duration duration{0};
    std::optional<Time> renewed;
    WorkerReport report;
    std::optional<Work> work;
  };
  void read_workers();
  void forget_kept_slots();
  bool lacks_pool(const std::string& job_uid) const;
  bool lacks_slot(const std::string& job_uid) const;
  bool is_empty_place(const Job& job, const reconciler::Run& run) const;
  int silent_workers() const;
  void look_at_place(const RunOfJob& one);
  void look_at_waiting(const Job& job);
  bool stops_at_workers(const Job& job);
  // liveness_queues.cc
  using Line = std::vector<const Permits::Job*>;  // the jobs of a queue, in their order
  void look_at_asking(const Job& job);
  void look_at_queues();
  void look_at_words(const Permits::Queue& queue, const Line& line);
  void look_at_admissions(const std::string& name, const Permits::Queue& queue, const Line& line);
  void look_at_numbers(const std::string& name, const Permits::Queue& queue, const Line& line);
  // The numbers in the status that are not true.
  std::vector<std::string> old_numbers(const std::string& name, const Permits::Queue& queue,
                                       const Line& line) const;
  bool has_token(const Permits::Queue& queue) const;
  std::string untidy_queues() const;
  // liveness_lane.cc
  void look_at_batch_jobs();
  void look_at_batch_job(const Json& job);
  bool has_pods(const std::string& durable_uid) const;
  std::string unsettled_batch_jobs() const;
  // liveness_rescue.cc
  void look_at_others();
  void look_at_pods(const Job& job);
  void look_at_orphans();
  void read_the_truth();
  // `trouble` has lasted at least since `since`; none: since it was first seen.
  void holds(const Job& job, const std::string& trouble, Duration bound,
             std::optional<Duration> since = std::nullopt);
  void holds(const RunOfJob& one, const std::string& trouble, Duration bound,
             std::optional<Duration> since = std::nullopt);
  void note(const std::string& key, const std::string& trouble, Duration bound,
            std::optional<Duration> since, const char* rule = "L1");
  void look_at_shards(const std::vector<Replica*>& replicas);
  void forget_what_passed();
  // Until a dead replica's shards are taken over, nobody may work on their jobs.
  Duration taken_over() const;
  Duration own(Duration window) const;  // as the slowest clock measures it
  Duration late(Duration window) const;
  Duration instant(std::optional<Time> wall) const;  // in the world's time
  bool breaker_may_hold(const Cluster::Node& judged, Duration lost_after) const;
  int silent_nodes(Duration since) const;

  Scheduler& scheduler_;
  Gateway& gateway_;
  const Cluster& cluster_;
  const Network& network_;
  Ledger& ledger_;
  const WarmWorkers& workers_;
  bool on_ = false;
  Duration on_since_{0};
  Duration replica_changed_{0};
  bool often_killed_ = false;
  std::int64_t slowest_ppm_ = 1'000'000;
  Decoded<codecs::CachedPod> pods_;
  Decoded<codecs::CachedJob> jobs_;
  std::map<std::string, LeasedWorker> leased_;      // by the UID of the worker Lease
  std::map<std::string, std::int64_t> free_slots_;  // by pool
  // By the UID of the worker Lease: the last renewal of a silence that others shared.
  std::map<std::string, std::optional<Time>> held_back_;
  // By job, attempt and stage: since when its end is known.
  std::map<std::string, Duration> stopping_;
  std::map<std::string, Duration> undelivered_;  // by job: when it last had events to deliver
  std::map<std::string, Trouble> troubles_;      // by job and class
  std::map<std::string, double> slowest_;
};

}  // namespace holdfast::simulation
