#include "operator/runtime/health.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace holdfast::runtime {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;

const SteadyTime kStart{std::chrono::hours(1)};

WatchHealth healthy(const std::string& kind) {
  return {kind, /*synced=*/true, /*live=*/true, seconds(1), minutes(20)};
}

class HealthTest : public testing::Test {
 protected:
  Health health_{kStart};
};

TEST_F(HealthTest, AliveAndNotReadyBeforeTheCachesAre) {
  EXPECT_EQ(health_.healthz(kStart).status, 200);
  EXPECT_EQ(health_.readyz().status, 503);
  EXPECT_THAT(health_.readyz().body, HasSubstr("starting"));
}

TEST_F(HealthTest, ReadyWhenEveryCacheIsSynced) {
  health_.beat(kStart, {healthy("jobs"), healthy("pods")}, kStart);
  EXPECT_EQ(health_.readyz().status, 200);
  EXPECT_EQ(health_.healthz(kStart).status, 200);
}

TEST_F(HealthTest, ReadinessNamesWhatIsNotSynced) {
  WatchHealth pods = healthy("pods");
  pods.synced = false;
  WatchHealth nodes = healthy("nodes");
  nodes.synced = false;
  health_.beat(kStart, {healthy("jobs"), pods, nodes}, kStart);
  EXPECT_EQ(health_.readyz().status, 503);
  EXPECT_THAT(health_.readyz().body, HasSubstr("not yet synced: pods, nodes"));
  EXPECT_EQ(health_.healthz(kStart).status, 200) << "a replica that waits is alive";
}

TEST_F(HealthTest, NotReadyButAliveWhileItStops) {
  health_.beat(kStart, {healthy("jobs")}, kStart);
  health_.stopping();
  EXPECT_EQ(health_.readyz().status, 503);
  EXPECT_EQ(health_.healthz(kStart).status, 200);
}

TEST_F(HealthTest, ALoopThatDoesNotRunIsStuck) {
  health_.beat(kStart, {healthy("jobs")}, kStart);
  EXPECT_EQ(health_.healthz(kStart + Health::kLoopLimit).status, 200);
  const ProbeAnswer answer = health_.healthz(kStart + Health::kLoopLimit + seconds(1));
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.body, HasSubstr("the loop has not run for 31s"));
}

TEST_F(HealthTest, AnOpenWatchThatIsQuietBeyondItsIdleLimitIsStuck) {
  WatchHealth pods = healthy("pods");
  pods.quiet = Health::kWatchQuietLimit;
  health_.beat(kStart, {pods}, kStart);
  EXPECT_EQ(health_.healthz(kStart).status, 200);
  pods.quiet += seconds(1);
  health_.beat(kStart, {pods}, kStart);
  EXPECT_EQ(health_.healthz(kStart).status, 503);
  EXPECT_THAT(health_.healthz(kStart).body, HasSubstr("the watch of pods is open, and silent"));
}

TEST_F(HealthTest, AWatchThatStaysClosedIsStuckOnlyWhileTheServerAnswers) {
  WatchHealth pods = healthy("pods");
  pods.live = false;
  pods.live_age = Health::kWatchDownLimit + seconds(1);
  health_.beat(kStart, {pods}, kStart - minutes(5));
  EXPECT_EQ(health_.healthz(kStart).status, 200) << "an outage is not cured by a restart";
  health_.beat(kStart, {pods}, kStart - seconds(2));
  EXPECT_EQ(health_.healthz(kStart).status, 503);
  EXPECT_THAT(health_.healthz(kStart).body, HasSubstr("while the API server answers"));
}

TEST_F(HealthTest, AWatchThatWasReplacedIsHealthyAgain) {
  WatchHealth pods = healthy("pods");
  pods.quiet = minutes(30);
  health_.beat(kStart, {pods}, kStart);
  EXPECT_EQ(health_.healthz(kStart).status, 503);
  health_.beat(kStart, {healthy("pods")}, kStart);
  EXPECT_EQ(health_.healthz(kStart).status, 200);
}

}  // namespace
}  // namespace holdfast::runtime
