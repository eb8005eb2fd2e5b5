// The operator's options from its command line and environment. They are checked as a whole before
// anything else happens.
//
//   Result<Options> options = parse_options(arguments, surroundings);
//   if (!options) { print(options.error().message); exit(2); }
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/result.h"
#include "reconciler/shards.h"

namespace holdfast::runtime {

// Where the probes and metrics are served.
struct ListenAddress {
  bool enabled = true;
  std::string host = "127.0.0.1";  // an IP literal without brackets; empty: all addresses
  std::uint16_t port = 8080;       // 0: any free port
};

struct Options {
  struct Api {
    std::string kubeconfig;  // empty: found as kubectl does, see kube/config.h
    double qps = 0;          // 0: no limit
  };
  struct Logs {
    LogLevel level = LogLevel::kInfo;
    LogFormat format = LogFormat::kText;
  };
  // This replica, and what all replicas of an installation have in common.
  struct Replica {
    std::string namespace_;  // for the operator's own objects
    std::string id;          // this replica's name in Events, logs and Leases
    int shards = 32;         // the same on all replicas
    reconciler::MemberTimings timings;
  };
  Api api;
  Logs log;
  Replica replica;
  ListenAddress metrics_address;
  std::vector<std::string> watch_namespaces;  // sorted, each once; empty: all
  int workers = 16;
  std::string agent_image;    // empty: jobs with `heartbeat` wait for one
  std::string notifications;  // file of targets (notify/targets.h); empty: none
  // Which namespaces' batch/v1 Jobs are run (spec.managedBy): none, "all", or a label selector.
  std::string batch_jobs;
  // What is done for pods of other controllers on silent nodes (docs/rescue.md).
  struct Rescue {
    enum class Mode { kOff, kObserve, kOn };
    Mode mode = Mode::kOff;
    std::vector<std::string> namespaces;  // sorted, each once; empty: watch_namespaces
    std::set<std::string> owners = {"Workflow", "EphemeralRunner", "RayCluster"};
    int most_per_minute = 60;
  };
  Rescue rescue;
  const std::vector<std::string>& rescue_namespaces() const {
    return rescue.namespaces.empty() ? watch_namespaces : rescue.namespaces;
  }
  bool require_guard = false;  // no new attempt starts without it (observe/guard.h)
  bool release_pods = false;   // run the command release-pods instead of the operator
  std::string deployment;      // its --deployment: the operator's Deployment, scaled to zero
  std::string print;           // not empty: --help or --version; print it and end with 0
};

// The sources of the defaults, as a parameter, so that parsing is a pure function.
struct Surroundings {
  std::map<std::string, std::string> environment;
  std::string in_cluster_namespace;  // empty: not in a cluster
  std::string hostname;
};

// Surroundings of this process.
Surroundings read_surroundings();

// `arguments` without the program's name. A flag wins over HOLDFAST_<NAME>, and the variable over
// the default. An empty variable counts as unset. The error says what to do.
Result<Options> parse_options(const std::vector<std::string>& arguments,
                              const Surroundings& surroundings);

}  // namespace holdfast::runtime
