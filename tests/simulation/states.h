// How much of the state space a run has seen. Counts the distinct combinations of the states of a
// job, its current pod, its node and its owners. Numbers are reduced to classes.
#pragma once

#include <cstdint>
#include <set>

#include "core/json.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/gateway.h"

namespace holdfast::simulation {

class States {
 public:
  States(Gateway& gateway, const Cluster& cluster) : gateway_(gateway), cluster_(cluster) {}

  // Call it after a write of this job, or of a pod of the job. `replicas`: bits of the running
  // replicas.
  void seen_job(const Json& job, std::uint64_t replicas);
  void seen_pod(const Json& pod, std::uint64_t replicas);
  const std::set<std::uint64_t>& all() const { return states_; }

 private:
  Gateway& gateway_;
  const Cluster& cluster_;
  std::set<std::uint64_t> states_;
};

}  // namespace holdfast::simulation
