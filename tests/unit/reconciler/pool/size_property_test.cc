// A pool in thousands of random histories: its bounds hold at each step, and when the trouble is
// over it comes to rest with as many workers as it needs, all of the current template.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/pool_world.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr std::uint64_t kHistories = 4000;
constexpr int kSteps = 60;

// Until nothing was done for a while in which each timer would have fired.
bool comes_to_rest(PoolWorld& world) {
  int quiet = 0;
  for (int step = 0; step < 1000 && quiet < 30; ++step) {
    world.pass(seconds(25));
    quiet = world.act() ? 0 : quiet + 1;
  }
  return quiet >= 30;
}

void at_rest(const PoolWorld& world, std::int64_t workers) {
  const PoolState& state = world.state();
  EXPECT_EQ(state.status.workers.busy + state.status.workers.idle, workers);
  EXPECT_EQ(state.status.workers.total, workers) << "none is left over";
  EXPECT_EQ(state.status.starts.failed, 0);
  EXPECT_FALSE(plan_pool(state).wake_after) << "a pool at rest needs no look";
  EXPECT_EQ(plan_pool(state).status, state.status);
  for (const PoolWorker& worker : state.workers) EXPECT_EQ(worker.pod.hash, state.hash);
}

TEST(PoolProperty, BoundsHoldAndThePoolComesToRest) {
  for (std::uint64_t seed = 1; seed <= kHistories; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PoolWorld world(seed);
    Rng pace(seed + kHistories);
    for (int step = 0; step < kSteps; ++step) {
      world.disturb();
      world.pass(seconds(1 + pace.below(20)));
      world.act();
    }
    world.calm_down();
    // More waits than there are slots: each worker that may be there is busy.
    world.run_forever(500);
    EXPECT_TRUE(comes_to_rest(world));
    EXPECT_EQ(world.state().status.workers.busy, world.state().spec.max_workers);
    EXPECT_EQ(world.state().status.busy_slots, world.state().status.slots);
    // Nothing waits: only the minimum is left.
    world.end_all_runs();
    EXPECT_TRUE(comes_to_rest(world));
    at_rest(world, world.state().spec.min_workers);
    // One busy worker, which may have free slots, and one more for each run that needs its own.
    world.run_forever(1);
    EXPECT_TRUE(comes_to_rest(world));
    world.run_alone_forever(world.state().spec.max_workers - 1);
    EXPECT_TRUE(comes_to_rest(world));
    EXPECT_EQ(world.state().status.workers.busy, world.state().spec.max_workers);
    world.end_all_runs();
    EXPECT_TRUE(comes_to_rest(world));
    at_rest(world, world.state().spec.min_workers);
    for (const std::string& violation : world.violations) ADD_FAILURE() << violation;
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast::reconciler::testing
