// While the child runs: renewals, what refuses them, and the two deadlines.
#include "tests/unit/agent/guard_fixture.h"

namespace holdfast::agent::testing {
namespace {

using Kind = LeaseRefusal::Kind;
using Stop = Orders::Stop;

class GuardRunningRule : public GuardTest {};

TEST_F(GuardRunningRule, ItRenewsAtAThirdOfTheDurationLessUpToATenthOfThat) {
  start();
  SteadyTime now = at(seconds(0));
  bool jitter = false;
  for (int i = 0; i < 50; ++i) {
    const SteadyTime last = now;
    ASSERT_TRUE(next_renewal(now).put);
    EXPECT_GE(now - last, seconds(18));
    EXPECT_LE(now - last, seconds(20));
    jitter = jitter || (now - last < seconds(19));
    guard->answered(now + seconds(2), lease());
    EXPECT_EQ(guard->renewed(), now);
  }
  EXPECT_TRUE(jitter);
}

TEST_F(GuardRunningRule, AFailedRenewalIsTriedAgainAfterASecond) {
  start();
  SteadyTime now = at(seconds(0));
  ASSERT_TRUE(next_renewal(now).put);
  const Orders failed = guard->answered(now, answer(Kind::kNone));
  EXPECT_FALSE(failed.put);
  EXPECT_GE(failed.wake_at - now, milliseconds(900));
  EXPECT_LE(failed.wake_at - now, milliseconds(1100));
  EXPECT_TRUE(guard->woke(failed.wake_at).put);
}

TEST_F(GuardRunningRule, ARenewalThatTheApiServerPutsOffIsSentThen) {
  start();
  SteadyTime now = at(seconds(0));
  ASSERT_TRUE(next_renewal(now).put);
  const Orders put_off = guard->answered(now, try_again_in(seconds(5)));
  EXPECT_FALSE(put_off.put || put_off.get);
  EXPECT_GE(put_off.wake_at - now, seconds(5));
  EXPECT_LE(put_off.wake_at - now, milliseconds(5500)) << "spread, as agents are many";
  EXPECT_FALSE(guard->progressed(put_off.wake_at - milliseconds(1), "more").put);
  EXPECT_TRUE(guard->woke(put_off.wake_at).put);
}

TEST_F(GuardRunningRule, BeforeTheFenceThereIsAlwaysTimeForOneMoreTry) {
  start();
  SteadyTime now = at(seconds(0));
  ASSERT_TRUE(next_renewal(now).put);
  const Orders put_off = guard->answered(now, try_again_in(seconds(3600)));
  EXPECT_EQ(put_off.wake_at, at(kTerminate - seconds(10)));
  ASSERT_TRUE(guard->woke(put_off.wake_at).put);
  guard->answered(at(kTerminate) - milliseconds(1), lease());
  EXPECT_EQ(guard->phase(), Guard::Phase::kRunning);
  EXPECT_EQ(guard->woke(at(kTerminate)).stop, Stop::kNone);
}

TEST_F(GuardRunningRule, OnceThereIsTimeForOneTryAloneItTriesEverySecond) {
  start();
  SteadyTime now = at(kTerminate - seconds(10));
  ASSERT_TRUE(guard->woke(now).put);
  int tries = 0;
  for (Orders orders; orders.stop == Stop::kNone; ++tries) {
    now = guard->answered(now, try_again_in(seconds(3600))).wake_at;
    orders = guard->woke(now);
  }
  EXPECT_EQ(now, at(kTerminate));
  EXPECT_GE(tries, 9);
  EXPECT_LE(tries, 12);
}

TEST_F(GuardRunningRule, NoPauseKeepsTheChildsEndFromTheLease) {
  for (const Duration asked : {seconds(1), seconds(8), seconds(3600)}) {
    start();
    SteadyTime now = at(seconds(0));
    ASSERT_TRUE(next_renewal(now).put);
    guard->answered(now, try_again_in(asked));
    guard->child_ended(now + milliseconds(100), 3);
    const SteadyTime dead = now + milliseconds(150);
    now = dead;
    Orders orders = guard->all_dead(now);
    if (!orders.put) {
      now = orders.wake_at;
      orders = guard->woke(now);
    }
    ASSERT_TRUE(orders.put);
    EXPECT_EQ(orders.put->ended, 3);
    EXPECT_LE(now - dead, seconds(1)) << "the last renewal may take two seconds in all";
    EXPECT_EQ(guard->answered(now, lease()).exit_code, 3);
  }
}

TEST_F(GuardRunningRule, ARequestGetsASixthOfTheDuration) {
  start();
  SteadyTime now = at(seconds(0));
  ASSERT_TRUE(next_renewal(now).put);
  EXPECT_EQ(guard->woke(now).wake_at, now + seconds(10));
  EXPECT_TRUE(guard->woke(now + seconds(10)).abort_request);
}

TEST_F(GuardRunningRule, ARequestForALongLeaseHangsForTenSecondsAtMost) {
  GuardSettings settings;
  settings.duration = seconds(3600);
  guard.emplace(settings, random);
  ASSERT_TRUE(guard->begin(at(seconds(0))).get);
  EXPECT_FALSE(guard->woke(at(seconds(10)) - milliseconds(1)).abort_request);
  EXPECT_TRUE(guard->woke(at(seconds(10))).abort_request);
}

TEST_F(GuardRunningRule, ThatTheChildMustDieIsDecidedByTheLastAcknowledgedSending) {
  start();
  renew(at(seconds(20)));
  SteadyTime now = at(seconds(20));
  ASSERT_TRUE(next_renewal(now).put);
  EXPECT_EQ(guard->woke(at(seconds(20) + kTerminate) - milliseconds(1)).stop, Stop::kNone);
  const Orders orders = guard->woke(at(seconds(20) + kTerminate));
  EXPECT_EQ(orders.stop, Stop::kTerminate);
  EXPECT_TRUE(orders.abort_request || orders.wake_at <= at(seconds(20) + kKill));
  EXPECT_EQ(orders.wake_at, at(seconds(20) + kKill));
  EXPECT_EQ(guard->woke(at(seconds(20) + kKill) - milliseconds(1)).stop, Stop::kNone);
  EXPECT_EQ(guard->woke(at(seconds(20) + kKill)).stop, Stop::kKill);
}

TEST_F(GuardRunningRule, WhatIsKilledIsKilledAgainUntilNothingIsLeft) {
  start();
  SteadyTime now = at(kKill);
  EXPECT_EQ(guard->woke(now).stop, Stop::kKill);
  for (int i = 0; i < 9; ++i) {
    const Orders orders = guard->woke(now);
    EXPECT_EQ(orders.stop, Stop::kNone);
    EXPECT_LE(orders.wake_at - now, milliseconds(50));
    now = orders.wake_at;
    EXPECT_EQ(guard->woke(now).stop, Stop::kKill);
  }
  const Orders dead = guard->all_dead(now);
  EXPECT_EQ(dead.exit_code, kFencedExitCode);
  EXPECT_EQ(dead.last_words, seconds(2)) << "whoever is dead does not hurry";
  EXPECT_NE(dead.fenced.find("no renewal was acknowledged"), std::string::npos) << dead.fenced;
}

TEST_F(GuardRunningRule, WhatCannotBeKilledDoesNotKeepItBeyondFiveSixths) {
  start();
  SteadyTime now = at(kKill);
  Orders orders = guard->woke(now);
  for (int i = 0; i < 100 && !orders.exit_code; ++i, orders = guard->woke(now)) {
    now = orders.wake_at;
  }
  EXPECT_LT(now, at(kEnd));
  EXPECT_EQ(now, at(kKill) + milliseconds(500));
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
  // Its end kills what is left, so its last words may not put that off.
  EXPECT_LE(now + orders.last_words, at(kEnd));
  EXPECT_GT(orders.last_words, milliseconds(0));
  EXPECT_NE(orders.fenced.find("no renewal was acknowledged"), std::string::npos) << orders.fenced;
  EXPECT_EQ(guard->phase(), Guard::Phase::kDone);
}

TEST_F(GuardRunningRule, AfterALongPauseToo) {
  start();
  SteadyTime now = at(seconds(300));
  Orders orders = guard->woke(now);
  EXPECT_FALSE(orders.exit_code) << "what can be killed is not given the time to die";
  for (int i = 0; i < 100 && !orders.exit_code; ++i, orders = guard->woke(now)) {
    now = orders.wake_at;
  }
  EXPECT_EQ(now, at(seconds(300)) + milliseconds(500));
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
}

TEST_F(GuardRunningRule, AFencedChildsLeftoversThatCannotBeKilledDoNotKeepItEither) {
  start();
  EXPECT_EQ(guard->woke(at(kTerminate)).stop, Stop::kTerminate);
  SteadyTime now = at(seconds(41));
  Orders orders = guard->child_ended(now, 0);
  for (int i = 0; i < 100 && !orders.exit_code; ++i, orders = guard->woke(now)) {
    now = orders.wake_at;
  }
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
  EXPECT_EQ(now, at(seconds(41)) + milliseconds(500));
}

TEST_F(GuardRunningRule, AfterALongPauseItKillsBeforeAnythingElse) {
  const std::vector<std::function<Orders(SteadyTime)>> first_words = {
      [&](SteadyTime now) { return guard->woke(now); },
      [&](SteadyTime now) { return guard->deadlines(now); },
      [&](SteadyTime now) { return guard->answered(now, lease()); },
      [&](SteadyTime now) { return guard->progressed(now, "more"); },
      [&](SteadyTime now) { return guard->asked_to_end(now); },
  };
  for (const auto& first_word : first_words) {
    start();
    ASSERT_TRUE(guard->woke(at(seconds(20))).put);
    const Orders orders = first_word(at(seconds(300)));
    EXPECT_EQ(orders.stop, Stop::kKill);
    EXPECT_TRUE(orders.abort_request);
    EXPECT_FALSE(orders.put || orders.get || orders.start_before || orders.exit_code);
    EXPECT_EQ(guard->renewed(), at(seconds(0)));
  }
}

TEST_F(GuardRunningRule, AnAnswerBetweenTheTwoDeadlinesChangesNothing) {
  start();
  ASSERT_TRUE(guard->woke(at(seconds(39))).put);
  const Orders orders = guard->answered(at(kTerminate), lease());
  EXPECT_EQ(orders.stop, Stop::kTerminate);
  EXPECT_EQ(guard->phase(), Guard::Phase::kFencing);
  EXPECT_EQ(guard->renewed(), at(seconds(0)));
}

TEST_F(GuardRunningRule, ALeaseThatIsLostEndsTheChildAtOnceAndKillsItWithinASixth) {
  const std::vector<std::pair<LeaseReading, std::string>> verdicts = {
      {answer(Kind::kFenced, "not the holder"), "not the holder"},
      {lease(kAttempt, kHolder, "lease-2"), "created again"},
  };
  for (const auto& [verdict, words] : verdicts) {
    start();
    ASSERT_TRUE(guard->woke(at(seconds(20))).put);
    const Orders orders = guard->answered(at(seconds(21)), verdict);
    EXPECT_EQ(orders.stop, Stop::kTerminate);
    EXPECT_FALSE(orders.exit_code);
    EXPECT_EQ(orders.wake_at, at(seconds(30)));
    EXPECT_EQ(guard->woke(at(seconds(30))).stop, Stop::kKill);
    EXPECT_NE(guard->all_dead(at(seconds(30))).fenced.find(words), std::string::npos) << words;
  }
}

TEST_F(GuardRunningRule, ALeaseThatIsGoneLeavesTheChildTheTimeOfItsLastRenewal) {
  start();
  ASSERT_TRUE(guard->woke(at(seconds(20))).put);
  EXPECT_EQ(guard->answered(at(seconds(20)), answer(Kind::kGone, "it is gone")).stop, Stop::kNone);
  // Asked again and again, with the same answer.
  ASSERT_TRUE(guard->woke(at(seconds(22))).put);
  ASSERT_TRUE(guard->answered(at(seconds(22)), answer(Kind::kConflict)).get);
  EXPECT_EQ(guard->answered(at(seconds(22)), answer(Kind::kGone, "it is gone")).stop, Stop::kNone);
  EXPECT_EQ(guard->woke(at(kTerminate) - milliseconds(1)).stop, Stop::kNone);
  EXPECT_EQ(guard->woke(at(kTerminate)).stop, Stop::kTerminate);
  EXPECT_EQ(guard->woke(at(kKill)).stop, Stop::kKill);
  const Orders orders = guard->all_dead(at(kKill));
  EXPECT_EQ(orders.exit_code, kFencedExitCode);
  EXPECT_NE(orders.fenced.find("it is gone"), std::string::npos) << orders.fenced;
}

TEST_F(GuardRunningRule, ALeaseThatIsGoneLeavesAWorkerThatWasAskedToEndThePodsGrace) {
  start();
  SteadyTime now = at(seconds(20));
  ASSERT_TRUE(guard->woke(now).put);
  // Before the kubelet's word and after it, for much longer than a duration.
  guard->answered(now, answer(Kind::kGone, "it is gone"));
  EXPECT_EQ(guard->asked_to_end(at(milliseconds(20500))).stop, Stop::kNone);
  SteadyTime sent{};
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(next_renewal(now).put);
    sent = now;
    now += milliseconds(300);
    ASSERT_EQ(guard->answered(now, answer(Kind::kGone, "it is gone")).stop, Stop::kNone);
  }
  ASSERT_GT(now - at(seconds(20)), 3 * kDuration);
  // An answer counts from its sending, and the next that is none does not.
  next_renewal(now);
  guard->answered(now, answer(Kind::kNone));
  EXPECT_EQ(guard->woke(sent + kTerminate - milliseconds(1)).stop, Stop::kNone);
  EXPECT_EQ(guard->woke(sent + kTerminate).stop, Stop::kTerminate);
  EXPECT_EQ(guard->woke(sent + kKill).stop, Stop::kKill);
}

TEST_F(GuardRunningRule, EveryOtherVerdictFencesAWorkerThatWasAskedToEndAtOnce) {
  for (const LeaseReading& verdict :
       std::vector<LeaseReading>{answer(Kind::kFenced), lease(kAttempt, kHolder, "lease-2"),
                                 lease(kAttempt + 1, ""), lease(kAttempt, "job-3-abcde/other")}) {
    start();
    guard->asked_to_end(at(seconds(5)));
    ASSERT_TRUE(guard->woke(at(seconds(20))).put);
    const Orders orders = guard->answered(at(seconds(21)), verdict);
    EXPECT_EQ(orders.stop, Stop::kTerminate);
    EXPECT_EQ(orders.wake_at, at(seconds(30)));
  }
}

TEST_F(GuardRunningRule, ALateRefusalDoesNotPutOffTheKill) {
  start();
  ASSERT_TRUE(guard->woke(at(seconds(39))).put);
  const Orders orders = guard->answered(at(milliseconds(39900)), answer(Kind::kFenced));
  EXPECT_EQ(orders.stop, Stop::kTerminate);
  EXPECT_LE(orders.wake_at, at(kKill));
}

TEST_F(GuardRunningRule, AfterAConflictTheLeaseIsReadAndRenewedAtOnceWhereItIsStillTheirs) {
  start();
  ASSERT_TRUE(guard->woke(at(seconds(20))).put);
  ASSERT_TRUE(guard->answered(at(seconds(20)), answer(Kind::kConflict)).get);
  const Orders orders = guard->answered(at(seconds(21)), lease());
  EXPECT_TRUE(orders.put);
  EXPECT_EQ(orders.stop, Stop::kNone);
  // Reading it is no renewal.
  EXPECT_EQ(guard->renewed(), at(seconds(0)));
  guard->answered(at(seconds(22)), lease());
  EXPECT_EQ(guard->renewed(), at(seconds(21)));
}

TEST_F(GuardRunningRule, AfterAConflictAnotherHolderAttemptOrUidFencesIt) {
  const std::vector<LeaseReading> others = {
      lease(kAttempt, ""), lease(kAttempt, "job-3-abcde/other"), lease(kAttempt + 1),
      lease(kAttempt - 1), lease(kAttempt, kHolder, "lease-2")};
  for (const LeaseReading& other : others) {
    start();
    ASSERT_TRUE(guard->woke(at(seconds(20))).put);
    ASSERT_TRUE(guard->answered(at(seconds(20)), answer(Kind::kConflict)).get);
    EXPECT_EQ(guard->answered(at(seconds(20)), other).stop, Stop::kTerminate);
  }
}

TEST_F(GuardRunningRule, SomebodyWhoWritesAllTheTimeMakesNoHotLoop) {
  start();
  SteadyTime now = at(seconds(20));
  int requests = 0;
  Orders orders = guard->woke(now);
  while (now < at(seconds(39)) && requests <= 60) {
    if (orders.put || orders.get) ++requests;
    orders = orders.put   ? guard->answered(now, answer(Kind::kConflict))
             : orders.get ? guard->answered(now, lease())
                          : guard->woke(now = orders.wake_at);
  }
  EXPECT_LE(requests, 60);
  EXPECT_GE(requests, 30);
}

TEST_F(GuardRunningRule, WhatIsNoVerdictIsTriedAgainUntilTheDeadline) {
  start();
  SteadyTime now = at(seconds(0));
  int tries = 0;
  for (Orders orders; orders.stop == Stop::kNone; ++tries) {
    orders = next_renewal(now);
    if (orders.put) guard->answered(now, answer(Kind::kNone, "401 Unauthorized"));
  }
  EXPECT_EQ(now, at(kTerminate));
  EXPECT_GE(tries, 18);
  EXPECT_NE(guard->all_dead(now).fenced.find("401 Unauthorized"), std::string::npos);
}

TEST_F(GuardRunningRule, AChildThatEndsOnTheWayDownIsStillFenced) {
  start();
  EXPECT_EQ(guard->woke(at(kTerminate)).stop, Stop::kTerminate);
  // What it left is killed at once.
  EXPECT_EQ(guard->child_ended(at(seconds(41)), 0).stop, Stop::kKill);
  EXPECT_EQ(guard->all_dead(at(seconds(41))).exit_code, kFencedExitCode);
}

}  // namespace
}  // namespace holdfast::agent::testing
