// One run of one scenario, with one mishap or none: a small world with the real operator in it.
//
//   const Trial::Result calm = Trial({&scenario, 2}).run();
//   Trial::Result result = Trial({&scenario, 2, Point{0, 17, Mishap::kCrashApplied}}).run();
//   if (!result.violation.empty()) ...
//
// The safety rules are checked after each write, the liveness rules from the mishap's end on. At
// the end the job is as the scenario says, its budgets are spent exactly, and nothing is left over.
// Only member Leases are still written.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/log.h"
#include "tests/simulation/api_server.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/crash_point.h"
#include "tests/simulation/crash_scenarios.h"
#include "tests/simulation/crash_wire.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/liveness.h"
#include "tests/simulation/network.h"
#include "tests/simulation/others.h"
#include "tests/simulation/receivers.h"
#include "tests/simulation/replica.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/users.h"

namespace holdfast::simulation {

class Trial : private WireTap {
 public:
  struct Options {
    const Scenario* scenario = nullptr;
    int replicas = 1;
    std::optional<Point> point;
    std::FILE* trace = nullptr;
    Log log;
    bool hashes = false;  // of all that happens
  };
  struct Result {
    std::string violation;
    bool struck = false;  // the point was reached
    // The requests of each replica, until everything was over.
    std::vector<std::vector<Call>> calls;
    // How many of them came before the first job.
    std::vector<std::size_t> before_jobs;
    Duration simulated{0};
    std::uint64_t trace_hash = 0;           // zero: not asked for
    std::map<std::string, double> slowest;  // recovery by class, as a share of its bound
  };
  explicit Trial(Options options);
  ~Trial() override;

  Result run();

  // ---- For scenarios. The job as last seen; null: never seen.
  Json status(int job = 0) const;
  std::string phase(int job = 0) const { return string_at(status(job), "phase"); }
  int ended_with(const std::string& outcome, int job = 0) const;
  bool pod_runs(int job = 0) const;
  // The same, and its agent has renewed the job's Lease.
  bool worker_runs() const;
  void patch(const Json& spec);  // all jobs
  void patch(int job, const Json& spec);
  // Its queue has put it on record as admitted, and it has not moved.
  bool is_admitted(int job) const;
  void make_queue(const Json& spec);
  void delete_jobs(const std::string& policy);
  void delete_pod(bool force);
  void strip_owner();
  void delete_lease();
  // Complains if the worker runs sooner than this after the Lease was deleted.
  void check_waited(Duration least);
  // The node of the first job's current pod.
  void power_off();
  void remove_node();
  void bring_back();
  void crash_owner();
  void stop_owner();
  void start_replica(int replica);
  // The node of a pod that may be freed.
  void power_off_others();
  // A pod that may be freed is on a node that is dead.
  bool others_hang() const;
  Gateway& gateway() { return gateway_; }
  Cluster& cluster() { return cluster_; }

 private:
  struct Seat {
    std::unique_ptr<Replica> replica;
    std::uint64_t lives = 0;
    bool awaited = false;  // it will start soon
  };

  std::optional<Mishap> leaves(int replica, const std::string& method,
                               const std::string& target) override;
  void goes_out(int replica, Mishap mishap, const std::string& target) override;
  void dies(int replica) override;
  void is_over() override;

  void wire_up();
  void set_up();
  void tick();
  void applied(const Applied& applied);
  void arrived(const Delivery& delivery);
  void handled(const Delivery& delivery);
  void duplicate(Duration delay);
  void crash(int replica);
  void vacated(int replica);
  int owner() const;  // the replica with the first job's shard; -1: none
  int node_of_pod() const;

  void take_steps();
  bool job_is_over(int job) const;  // it ended as the scenario says
  std::string unfinished() const;
  std::string unheld() const;
  Json spec_of(int job) const;
  WarmWorker::Plan next_plan();
  void check_end();
  void check_job(int job);
  void check_rest();
  bool run_part(Duration length);
  void complain(const std::string& what) { ledger_.complain(what); }
  bool traces() const { return options_.trace || options_.hashes; }
  void trace(const std::string& line);

  const Options options_;
  const Scenario& scenario_;
  Scheduler scheduler_;
  Strikes strikes_{Selection{}};
  bool built_ = false;
  ApiServer server_;
  Gateway gateway_;
  Receivers receivers_;
  Network network_;
  Cluster cluster_;
  WarmWorkers workers_;
  Ledger ledger_;
  Users users_;
  OtherControllers others_;
  Liveness liveness_;
  std::vector<Seat> seats_;
  std::vector<std::vector<Call>> calls_;
  std::vector<std::size_t> before_jobs_;

  std::size_t next_step_ = 0;
  bool step_pending_ = false;
  int dead_node_ = -1;
  Duration lease_deleted_at_{0};
  std::map<std::string, Json> jobs_;         // by name, as last seen
  std::map<std::string, int> pods_started_;  // by job
  std::size_t commands_started_ = 0;         // by workers

  bool struck_ = false;
  bool mishap_over_ = false;
  bool on_lease_ = false;    // the point's request is about a Lease
  bool marks_next_ = false;  // the request that the network gets now is the point's
  std::optional<Delivery> marked_;
  std::string marked_watch_;
  std::uint64_t version_at_mark_ = 0;
  const Delivery* arriving_ = nullptr;
  std::uint64_t restless_writes_ = 0;  // replicas' writes, without member Leases
  std::string last_restless_;
  std::uint64_t trace_hash_ = 0;
};

}  // namespace holdfast::simulation
