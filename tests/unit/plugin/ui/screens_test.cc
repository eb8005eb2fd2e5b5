#include "plugin/ui/screens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

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

TEST(UiNeeds, SaysThatNoReplicaOfTheOperatorIsAlive) {
  const Json dead = places({{replica("a", seconds(60)), replica("b", seconds(40))}, {}});
  ASSERT_EQ(dead.size(), 1);
  EXPECT_THAT(string_at(dead[0], "what"), HasSubstr("No replica of the operator renews its Lease"));
  EXPECT_EQ(string_at(dead[0], "screen"), "operator");
  EXPECT_TRUE(places({{replica("a", seconds(60)), replica("b", seconds(2))}, {}}).empty());
  EXPECT_TRUE(places({}).empty()) << "who may not read Leases knows nothing of replicas";
}

TEST(UiNeeds, SaysWhichPoolCannotStartItsWorkers) {
  const Json stalled = places({{}, {pool("True")}});
  ASSERT_EQ(stalled.size(), 1);
  EXPECT_THAT(string_at(stalled[0], "what"),
              HasSubstr("media/thumbs has no workers for its jobs: 3 workers in a row"));
  EXPECT_NE(string_at(stalled[0], "act"), "");
  EXPECT_TRUE(places({{}, {pool("False")}}).empty());
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
