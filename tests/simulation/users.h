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

inline constexpr const char* kNamespaces[] = {"team-a", "team-b"};

class Users {
 public:
  Users(Scheduler& scheduler, Gateway& gateway, Ledger& ledger, Strikes& strikes)
      : scheduler_(scheduler), gateway_(gateway), ledger_(ledger), strikes_(strikes) {}

  // `heartbeats`: the jobs that are drawn have one.
  void start(bool heartbeats);
  // False: not an act of users.
  bool act(const ScriptEvent& event);
  void end(const ScriptEvent& event);
  // Removes all obstacles: suspended jobs go on.
  void make_peace();

  // Of a drawn job: drawn_spec(), and a heartbeat if jobs have one.
  Json spec_of(std::uint64_t seed) const;
  // By key. False: the server refused.
  bool create(const std::string& namespace_, const std::string& name, const Json& spec);
  bool patch(const std::string& namespace_, const std::string& name, const Json& spec);
  bool delete_pod(const std::string& key, bool force);
  void delete_job(const std::string& key, std::uint64_t seed, bool recreate);
  // For the job's current pod. False: its UID is not recorded yet.
  bool strip_owner(const std::string& job_key);
  void ensure_namespaces();
  std::vector<std::string> jobs(bool unfinished_only) const;  // keys

 private:
  void create_drawn(const std::string& name, std::uint64_t seed);
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
  bool heartbeats_ = false;
  std::set<std::string> squats_;  // keys of foreign pods with our names
};

std::string job_target(const std::string& namespace_, const std::string& name = "");
// A spec with short windows; the worker behaves as `plan` says.
Json drawn_spec(std::uint64_t seed);

}  // namespace holdfast::simulation
