// Runs a seed, and finds the shortest script that still fails in the same way.
#pragma once

#include <cstdio>
#include <functional>
#include <string>

#include "core/log.h"
#include "tests/simulation/script.h"
#include "tests/simulation/world.h"

namespace holdfast::simulation {

struct RunRequest {
  std::uint64_t seed = 0;
  std::string profile = "swarm";
  Duration length = std::chrono::minutes(45);  // until the faults stop
  Selection selection;
  std::FILE* trace = nullptr;
  Log log;
  Duration stop_at{0};  // zero: run to the end
  std::function<void(World&)> sabotage = nullptr;
  std::function<void(Script&)> rewrite = nullptr;  // for tests of a certain world
};

inline RunRequest run_request(std::uint64_t seed, const std::string& profile, Duration length) {
  RunRequest run;
  run.seed = seed;
  run.profile = profile;
  run.length = length;
  return run;
}

RunResult run_seed(const RunRequest& request);

// The rule in a violation: "S2 FencedOutcome" of "S2 FencedOutcome: ...".
std::string rule_of(const std::string& violation);

// Leaves out acts, and then single strikes of the rest, as long as the same rule is broken and not
// much later. Delta debugging, at most `runs` runs.
Selection shrink(const RunRequest& failing, const RunResult& failed, int runs);

// The command that reproduces the run.
std::string replay_command(const RunRequest& request, const Selection& selection);

}  // namespace holdfast::simulation
