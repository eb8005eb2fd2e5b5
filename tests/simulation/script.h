// The plan of a run, drawn from its seed: the size of the world, and which acts happen, when, and
// for how long. A profile names the kinds of act that its runs may have. "swarm" draws a new subset
// of all kinds for each seed, because a fault that is always on hides other behaviour.
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/acts.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

struct Profile {
  std::string name;
  std::vector<Act> acts;
  bool draws_subset = false;
  // One replica is killed this often, to the end of the run, and restarts at once. Zero: none.
  Duration kills_every{0};
  bool heartbeats = false;  // each job has one
  bool many_runs = false;   // jobs of 1 to 50 runs
  int volume = 0;           // the runs of one job that is there from the start
  bool queues = false;      // most jobs have a queue
  bool pools = false;       // most jobs have a pool
  bool lane = false;        // most jobs are batch/v1 Jobs
  bool guard = false;       // replicas require the guard
  bool rescue = false;      // other controllers have pods, which replicas free
};

const std::vector<Profile>& profiles();
const Profile* find_profile(const std::string& name);

struct Script {
  std::uint64_t seed = 0;
  std::string profile;
  int nodes = 3;
  int replicas = 1;
  int shards = 1;
  bool by_namespace = false;       // a watch for each namespace
  bool heartbeats = false;         // the profile's
  bool many_runs = false;          // the profile's; of "swarm" every third world has such jobs
  int volume = 0;                  // the profile's
  bool queues = false;             // the profile's; of a drawn subset every fourth world has
  bool pools = false;              // the same
  bool lane = false;               // the profile's
  bool guard = false;              // the profile's
  bool rescue = false;             // the profile's
  bool guard_is_readable = false;  // and no fault keeps a replica from reading it
  Duration kills_every{0};         // the profile's
  // A second API server behind the same address has a clock that is this much slower. Zero: none.
  Duration slower_server{0};
  bool own_versions = false;           // each resource has its own, as with an etcd for each
  std::vector<SimLoop::Clock> clocks;  // one for each replica
  Duration length{0};                  // the faults stop after it
  std::vector<ScriptEvent> events;     // by time
};

Script draw_script(std::uint64_t seed, const Profile& profile, Duration length);

}  // namespace holdfast::simulation
