#include "plugin/ui/screens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

const Time kNow = *parse_time("2026-07-01T14:00:00Z");

Json replica(const std::string& name, seconds silent) {
  return {{"metadata", {{"name", name}, {"labels", {{"holdfast.dev/lease", "member"}}}}},
          {"spec",
           {{"holderIdentity", name},
            {"leaseDurationSeconds", 15},
            {"renewTime", format_time(kNow - silent)}}}};
}

Json pool(const char* stalled) {
  return {{"metadata", {{"namespace", "media"}, {"name", "thumbs"}}},
          {"status",
           {{"conditions",
             {{{"type", "Stalled"},
               {"status", stalled},
               {"reason", "WorkersCannotStart"},
               {"message", "3 workers in a row did not start"}}}}}}};
}

Json places(const Surroundings& around) {
  return at(needs_screen(JobTable(), around, kNow), "places");
}

Json with_replicas(std::optional<std::vector<Json>> leases) {
  return places({std::move(leases), {}, kNow - seconds(20)});
}

TEST(UiNeeds, SaysThatNoReplicaOfTheOperatorIsAlive) {
  const Json dead = with_replicas({{replica("a", seconds(60)), replica("b", seconds(45))}});
  ASSERT_EQ(dead.size(), 1);
  EXPECT_THAT(string_at(dead[0], "what"), HasSubstr("No replica of the operator renews its Lease"));
  EXPECT_EQ(string_at(dead[0], "screen"), "operator");
  EXPECT_EQ(with_replicas({std::vector<Json>()}).size(), 1) << "those that stop delete theirs";
  EXPECT_TRUE(with_replicas(std::nullopt).empty()) << "who may not read Leases knows nothing";
}

// They were read 20 s ago, and are not read at each change of a job.
TEST(UiNeeds, AReplicaThatLivedWhenItsLeaseWasReadIsNotDead) {
  EXPECT_TRUE(with_replicas({{replica("a", seconds(60)), replica("b", seconds(22))}}).empty());
}

TEST(UiNeeds, SaysWhichPoolCannotStartItsWorkers) {
  const Json stalled = places({std::nullopt, {pool("True")}, kNow});
  ASSERT_EQ(stalled.size(), 1);
  EXPECT_THAT(string_at(stalled[0], "what"),
              HasSubstr("media/thumbs has no workers for its jobs: 3 workers in a row"));
  EXPECT_NE(string_at(stalled[0], "act"), "");
  EXPECT_TRUE(places({std::nullopt, {pool("False")}, kNow}).empty());
}

TEST(UiQueues, TheCommandForAHeldQueueGoesToThePagesCluster) {
  const Json queue = {{"metadata", {{"namespace", "media"}, {"name", "encode"}}},
                      {"spec", {{"hold", true}}}};
  const Json screen = queues_screen({queue}, JobTable(), kNow, "--context prod");
  EXPECT_THAT(string_at(at(screen, "queues")[0], "command"),
              HasSubstr("kubectl --context prod patch jq encode -n media"));
}

}  // namespace
}  // namespace holdfast::plugin
