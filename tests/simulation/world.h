// The whole operator in an unreliable world: replicas, a network that fails, an API server, a
// cluster, and users, all on one virtual clock. The same script and selection give the same run,
// bit for bit.
//
//   World world({script, selection});
//   RunResult result = world.run();
//   if (!result.violation.empty()) ...
//
// A run has four parts:
// 1. The script, with its faults.
// 2. All faults stop, and everything must recover.
// 3. An exam: troubles come one by one, and the operator must handle each within its bound.
// 4. Rest, in which nothing may be written.
#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/acts.h"
#include "tests/simulation/api_server.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/guard_policies.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/liveness.h"
#include "tests/simulation/network.h"
#include "tests/simulation/others.h"
#include "tests/simulation/receivers.h"
#include "tests/simulation/replica.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/script.h"
#include "tests/simulation/states.h"
#include "tests/simulation/users.h"

namespace holdfast::simulation {

struct RunResult {
  std::string violation;  // empty: every rule held
  Duration violated_at{0};
  std::uint64_t trace_hash = 0;
  Duration simulated{0};
  std::uint64_t events = 0;    // the scheduler's
  std::uint64_t requests = 0;  // the replicas'
  std::uint64_t writes = 0;    // accepted by the API server, without Leases
  std::uint64_t checks = 0;
  std::map<Act, std::uint64_t> fired;
  std::set<Act> scheduled;
  std::map<int, std::vector<std::uint64_t>> struck;
  std::set<std::uint64_t> states;
  std::size_t jobs = 0;
  std::map<std::string, double> slowest;  // recovery by class, as a share of its bound
};

class World {
 public:
  struct Options {
    Script script;
    Selection selection;
    std::FILE* trace = nullptr;  // a line for each event
    Log log;                     // the replicas'
    Duration stop_at{0};         // zero: run to the end
    // For tests of the checkers: called once the world runs.
    std::function<void(World&)> sabotage = nullptr;
  };
  explicit World(Options options);
  ~World();

  RunResult run();

  // Begins and ends a script's acts by hand, for tests.
  void stop_replica(int index, Duration down_for) { stop_cleanly(index, down_for); }
  void crash_replica(int index, Duration down_for) { crash(index, down_for); }

  // Null: the seat is empty.
  Replica* replica(int index) { return seats_[static_cast<std::size_t>(index)].replica.get(); }

  Scheduler& scheduler() { return scheduler_; }
  ApiServer& server() { return server_; }
  Gateway& gateway() { return gateway_; }
  Network& network() { return network_; }
  Cluster& cluster() { return cluster_; }
  WarmWorkers& workers() { return workers_; }
  Ledger& ledger() { return ledger_; }
  Users& users() { return users_; }
  Strikes& strikes() { return strikes_; }

 private:
  struct Seat {  // a place for a replica, whose process changes
    std::unique_ptr<Replica> replica;
    std::uint64_t lives = 0;
    Duration vacant_until{0};
  };

  void set_up();
  void tick();
  void applied(const Applied& applied);
  void start_replica(int index);
  void crash(int index, Duration down_for);
  void kill_often();
  bool is_often_killed(int index) const;
  void stop_cleanly(int index, Duration down_for);

  // world_acts.cc
  void begin(const ScriptEvent& event);
  void end(const ScriptEvent& event);
  void act_on_server(const ScriptEvent& event);
  void act_on_workers(const ScriptEvent& event);
  void act_on_nodes(const ScriptEvent& event);
  void act_on_replicas(const ScriptEvent& event);
  Gateway::Fate fate_of(const ApiRequest& request);
  void restore(const ScriptEvent& event);
  void heal();

  bool run_part(Duration length);
  bool settle(Duration limit, const char* what);
  void examine();
  void rest();
  void trace(const std::string& line);

  const Options options_;
  Scheduler scheduler_;
  Strikes strikes_;
  bool built_ = false;  // the gateway, whose clock the server asks
  ApiServer server_;
  Gateway gateway_;
  Receivers receivers_;
  Network network_;
  Cluster cluster_;
  WarmWorkers workers_;
  Ledger ledger_;
  GuardPolicies guard_;
  Users users_;
  OtherControllers others_;
  Liveness liveness_;
  States states_;
  std::vector<Seat> seats_;
  std::map<int, std::string> snapshots_;
  std::map<int, ScriptEvent> tenants_;  // open acts on one namespace
  bool healthy_ = false;                // no more faults are planned
  std::uint64_t trace_hash_ = 14695981039346656037u;
  std::uint64_t writes_ = 0;
  Duration violated_at_{0};
  std::set<Act> scheduled_;
};

}  // namespace holdfast::simulation
