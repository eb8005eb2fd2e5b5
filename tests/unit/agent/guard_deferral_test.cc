// "Not yet": the command runs again in the same pod.
#include "tests/unit/agent/guard_fixture.h"

namespace holdfast::agent::testing {
namespace {

using Stop = Orders::Stop;

constexpr int kNotYet = 75;

class GuardDeferralRule : public GuardTest {
 protected:
  void start_deferring(std::int64_t limit = 100, std::int64_t before = 0) {
    guard.emplace(GuardSettings{.duration = kDuration,
                                .progress_deadline = std::nullopt,
                                .attempt = kAttempt,
                                .holder = kHolder,
                                .deferrals = {{kNotYet, seconds(30), limit}},
                                .deferred_before = before},
                  random);
    guard->begin(at(seconds(0)));
    guard->answered(at(seconds(0)), lease());
    ASSERT_TRUE(guard->answered(at(seconds(0)), lease()).start_before);
  }
};

TEST_F(GuardDeferralRule, TheCommandRunsAgainAfterThePause) {
  start_deferring();
  EXPECT_EQ(guard->child_ended(at(seconds(5)), kNotYet).stop, Stop::kKill) << "what it left behind";
  EXPECT_TRUE(guard->resting());
  EXPECT_EQ(guard->all_dead(at(seconds(5))).exit_code, std::nullopt);
  renew(at(seconds(20)));
  EXPECT_FALSE(guard->woke(at(seconds(34))).start_before);
  EXPECT_EQ(guard->woke(at(seconds(34))).wake_at, at(seconds(35)));
  EXPECT_EQ(guard->woke(at(seconds(35))).start_before, at(seconds(20)) + kTerminate);
  EXPECT_FALSE(guard->resting());
}

TEST_F(GuardDeferralRule, RenewalsReportHowOftenAndThatThereIsProgress) {
  start_deferring();
  guard->child_ended(at(seconds(5)), kNotYet);
  guard->all_dead(at(seconds(5)));
  const Orders first = guard->woke(at(seconds(20)));
  ASSERT_TRUE(first.put);
  EXPECT_EQ(first.put->deferrals, 1);
  EXPECT_EQ(first.put->age_seconds, 0);
  guard->answered(at(seconds(20)), lease());
  const std::int64_t mark = first.put->mark;
  ASSERT_TRUE(guard->woke(at(seconds(35))).start_before);
  guard->child_ended(at(seconds(36)), kNotYet);
  guard->all_dead(at(seconds(36)));
  const Orders second = guard->woke(at(seconds(40)));
  ASSERT_TRUE(second.put);
  EXPECT_EQ(second.put->deferrals, 2);
  EXPECT_GT(second.put->mark, mark);
}

TEST_F(GuardDeferralRule, AnotherExitCodeEndsTheAttempt) {
  start_deferring();
  guard->child_ended(at(seconds(5)), 1);
  EXPECT_EQ(guard->phase(), Guard::Phase::kEnding);
}

TEST_F(GuardDeferralRule, ThePodEndsOnceTheLimitIsReached) {
  start_deferring(3, 2);
  guard->child_ended(at(seconds(1)), kNotYet);
  EXPECT_TRUE(guard->resting()) << "the third in a row";
  guard->all_dead(at(seconds(1)));
  renew(at(seconds(20)));
  ASSERT_TRUE(guard->woke(at(seconds(31))).start_before);
  guard->child_ended(at(seconds(32)), kNotYet);
  EXPECT_EQ(guard->phase(), Guard::Phase::kEnding);
  const Orders last = guard->all_dead(at(seconds(32)));
  ASSERT_TRUE(last.put);
  EXPECT_EQ(last.put->ended, kNotYet);
}

TEST_F(GuardDeferralRule, AnAgentThatIsAskedToEndDoesNotWaitForTheNextTime) {
  start_deferring();
  guard->child_ended(at(seconds(5)), kNotYet);
  guard->all_dead(at(seconds(5)));
  EXPECT_EQ(guard->asked_to_end(at(seconds(6))).stop, Stop::kKill);
  const Orders last = guard->all_dead(at(seconds(6)));
  ASSERT_TRUE(last.put);
  EXPECT_EQ(last.put->ended, kNotYet);
  start_deferring();
  guard->asked_to_end(at(seconds(4)));
  guard->child_ended(at(seconds(5)), kNotYet);
  EXPECT_EQ(guard->phase(), Guard::Phase::kEnding) << "nor does it begin to wait";
}

TEST_F(GuardDeferralRule, ACommandWhoseChildrenCannotBeKilledDoesNotRunBesideThem) {
  start_deferring();
  guard->child_ended(at(seconds(5)), kNotYet);
  EXPECT_EQ(guard->woke(at(seconds(6))).stop, Stop::kKill) << "they may have forked";
  renew(at(seconds(20)));
  const Orders orders = guard->woke(at(seconds(35)));
  EXPECT_FALSE(orders.start_before);
  EXPECT_EQ(guard->phase(), Guard::Phase::kEnding);
}

TEST_F(GuardDeferralRule, AnAgentThatRestsFencesItselfAsAnyOther) {
  start_deferring();
  guard->child_ended(at(seconds(5)), kNotYet);
  guard->all_dead(at(seconds(5)));
  guard->woke(at(seconds(20)));
  guard->deadlines(at(kTerminate));
  EXPECT_EQ(guard->phase(), Guard::Phase::kFencing);
  EXPECT_EQ(guard->all_dead(at(kTerminate)).exit_code, kFencedExitCode);
}

}  // namespace
}  // namespace holdfast::agent::testing
