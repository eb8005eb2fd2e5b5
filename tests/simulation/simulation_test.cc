// The simulated world itself, and the seeds that once found something.
#include <gtest/gtest.h>

#include "tests/simulation/run.h"

namespace holdfast::simulation {
namespace {

RunRequest request(std::uint64_t seed, const std::string& profile, int minutes) {
  RunRequest run;
  run.seed = seed;
  run.profile = profile;
  run.length = std::chrono::minutes(minutes);
  return run;
}

TEST(Simulation, OneSeedIsOneTrace) {
  const RunResult first = run_seed(request(7, "everything", 10));
  const RunResult second = run_seed(request(7, "everything", 10));
  EXPECT_EQ(first.trace_hash, second.trace_hash);
  EXPECT_EQ(first.violation, "");
  EXPECT_NE(run_seed(request(8, "everything", 10)).trace_hash, first.trace_hash);
}

}  // namespace
}  // namespace holdfast::simulation
