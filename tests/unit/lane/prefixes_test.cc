// Crash points: a replica may die after any of its writes, and each write may be all that happened.
#include <gtest/gtest.h>

#include "tests/unit/lane/lane_world.h"

namespace holdfast::lane {
namespace {

// Of the n-th decision only the first `kept` writes happen.
struct Crash {
  int decision;
  int kept;
};

void live(World& world, const Crash& crash, int& decisions) {
  for (int idle = 0; idle < 2;) {
    const int most = decisions++ == crash.decision ? crash.kept : 9;
    world.now += std::chrono::seconds(1);
    idle = world.step(most) == 0 ? idle + 1 : 0;
    ASSERT_LT(decisions, 50) << "it does not come to rest";
  }
}

void story(const Crash& crash, bool succeeds) {
  SCOPED_TRACE("decision " + std::to_string(crash.decision) + ", writes " +
               std::to_string(crash.kept));
  int decisions = 0;
  World world;
  live(world, crash, decisions);
  ASSERT_TRUE(world.durable);
  world.run();
  live(world, crash, decisions);
  world.job.spec["suspend"] = true;
  live(world, crash, decisions);
  ASSERT_TRUE(world.durable->spec.suspend);
  world.durable->status.runs.clear();
  world.durable->status.phase = reconciler::Phase::kSuspended;
  live(world, crash, decisions);
  EXPECT_TRUE(holds(world.job.status, "Suspended"));
  world.job.spec["template"]["spec"]["nodeSelector"] = {{"zone", "a"}};
  world.job.spec["suspend"] = false;
  live(world, crash, decisions);
  EXPECT_FALSE(world.durable->spec.suspend);
  EXPECT_FALSE(holds(world.job.status, "Suspended"));
  world.run();
  live(world, crash, decisions);
  world.end(succeeds, succeeds ? "Completed" : "BackoffLimitExceeded");
  live(world, crash, decisions);
  EXPECT_TRUE(holds(world.job.status, succeeds ? "Complete" : "Failed"));
  EXPECT_EQ(world.created, 1);
}

TEST(LanePrefixes, AnyPrefixOfTheWritesLeadsToTheSameEnd) {
  for (const bool succeeds : {true, false}) {
    for (int decision = 0; decision < 25; ++decision) {
      for (int kept = 0; kept < 3; ++kept) story({decision, kept}, succeeds);
    }
  }
}

}  // namespace
}  // namespace holdfast::lane
