// Users: they create jobs, change their minds, and delete what they should not.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/json.h"
#include "tests/simulation/acts.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/ledger.h"

namespace holdfast::simulation {

// As whom they write.
inline constexpr const char* kUser = "user";
inline constexpr const char* kNamespaces[] = {"team-a", "team-b"};

class Users {
 public:
  Users(Scheduler& scheduler, Gateway& gateway, Ledger& ledger, Strikes& strikes)
      : scheduler_(scheduler), gateway_(gateway), ledger_(ledger), strikes_(strikes) {}

  // The features of the jobs that are drawn.
  struct Work {
    bool heartbeats = false;
    bool many_runs = false;  // some of them
    bool queues = false;     // most of them, and the queues are there
    bool pools = false;      // most of them, and the pools are there
    bool lane = false;       // most of them are batch/v1 Jobs
  };
  void start(Work work);
  // False: not an act of users.
  bool act(const ScriptEvent& event);
  void end(const ScriptEvent& event);
  // Removes all obstacles: suspended jobs go on, and queues are there and not held.
  void make_peace();

  // One job of so many runs. A few of them fail for good.
  void create_large_job(int runs, std::uint64_t seed);
  // Of a drawn job: drawn_spec(), a heartbeat and a queue if jobs have one, many runs if jobs may.
  Json spec_of(std::uint64_t seed) const;
  static void draw_heartbeat(std::uint64_t seed, Json& spec);
  // By key. False: the server refused.
  bool create(const std::string& namespace_, const std::string& name, const Json& spec);
  bool patch(const std::string& namespace_, const std::string& name, const Json& spec);
  bool is_of_a_batch_job(const std::string& namespace_, const std::string& name) const;
  // Gives a suspended job of many runs another number of them. False: it is no such job, or the
  // write failed.
  bool change_runs(const std::string& namespace_, const std::string& name, std::uint64_t seed);
  bool create_queue(const std::string& namespace_, const std::string& name, const Json& spec);
  bool patch_queue(const std::string& namespace_, const std::string& name, const Json& spec);
  bool delete_queue(const std::string& namespace_, const std::string& name);
  bool delete_pod(const std::string& key, bool force, std::uint64_t seed = 0);
  void hold_job(const std::string& key, Duration time);
  void release_job(const std::string& key);
  void delete_job(const std::string& key, std::uint64_t seed, bool recreate);
  // For the pod of one of the job's runs. False: its UID is not recorded yet.
  bool strip_owner(const std::string& job_key, std::uint64_t seed = 0);
  // users_pools.cc
  bool create_pool(const std::string& namespace_, const std::string& name, const Json& spec);
  bool patch_pool(const std::string& namespace_, const std::string& name, const Json& spec);
  bool delete_pool(const std::string& namespace_, const std::string& name);
  // The job's attempts run in a pool, if it is one of those.
  void draw_pool(std::uint64_t seed, Json& spec) const;
  // users_newer.cc. False: no object has a status, or the write failed.
  bool write_as_newer(std::uint64_t seed);
  // No spec has a field of a newer version any more.
  void make_known();
  // users_lane.cc
  void create_batch_job(const std::string& namespace_, const std::string& name, std::uint64_t seed);
  // If this Job has ended: another DurableJob of it, as a replica creates after a long pause.
  void create_stray(const std::string& namespace_, const std::string& name, std::uint64_t seed);
  void ensure_namespaces();
  std::vector<std::string> jobs(bool unfinished_only) const;  // keys

 private:
  void create_drawn(const std::string& name, std::uint64_t seed);
  bool act_on_queue(const ScriptEvent& event);
  bool act_on_pool(const ScriptEvent& event);
  bool act_on_batch_job(const ScriptEvent& event);
  bool patch_batch_job(const std::string& namespace_, const std::string& name, const Json& spec);
  void resume_batch_jobs();
  // Kubernetes' own deletions of Jobs that have ended.
  void clean_up_batch_jobs();
  void ensure_pools();
  bool delete_worker_lease(std::uint64_t seed);
  // False: no such Lease, or the write failed.
  bool edit_holder(std::uint64_t seed);
  bool edit_work(std::uint64_t seed);
  void touch_leases(std::uint64_t number);
  void ensure_queues();
  void release_queues();
  static Json one_run(const Json& job, std::uint64_t seed);  // of its status; empty: none
  void strip_labels(const std::string& key, std::uint64_t seed);
  // False: no job has a Lease.
  bool delete_lease(std::uint64_t seed);
  // False: there was nothing to forge.
  bool forge_pod(const std::string& key, std::uint64_t seed);
  std::string pick_job(std::uint64_t seed) const;  // empty: there is none
  std::string pick_pod(std::uint64_t seed) const;
  void later(Duration delay, std::function<void()> what);

  Scheduler& scheduler_;
  Gateway& gateway_;
  Ledger& ledger_;
  Strikes& strikes_;
  Work work_;
  // Queues and pools by key: deleted, and not to be made again yet.
  std::set<std::string> away_;
  std::set<std::string> pools_away_;
  bool touches_ = false;
  bool at_peace_ = false;         // the faults are over
  std::set<std::string> squats_;  // keys of foreign pods with our names
};

std::string job_target(const std::string& namespace_, const std::string& name = "");
std::string queue_target(const std::string& namespace_, const std::string& name = "");
std::string pool_target(const std::string& namespace_, const std::string& name = "");
Json drawn_pool(std::uint64_t seed, const Json& over = Json::object());
// A spec with short windows; the worker behaves as `plan` says.
Json drawn_spec(std::uint64_t seed);
// The same, with nothing that ends the job or holds up its pods.
Json lasting_spec(std::uint64_t seed);

}  // namespace holdfast::simulation
