// What the owner of a queue writes: the claim, the admissions, the numbers.
#include "reconciler/queue/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconciler/queue/rate.h"
#include "reconciler/queue/tenure.h"
#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr const char* kSelf = "member-1/4";

QueuedJob job_that(bool holds, const std::string& uid) {
  QueuedJob job;
  job.uid = uid;
  job.name = "job-" + uid;
  job.created = job.since = now();
  job.holds = holds;
  job.waits = !holds;
  job.attempt = holds ? 1 : 0;
  return job;
}

struct Queue {
  QueueView view;
  Line line;

  // So many of its jobs run and wait.
  explicit Queue(int running = 0, int waiting = 0,
                 std::optional<std::int64_t> concurrency = std::nullopt) {
    view.spec.concurrency = concurrency;
    add_running(running);
    add_waiting(waiting);
    view.status.holder = view.self = kSelf;
    view.claimed = view.may_count = true;
    view.since_write = std::chrono::hours(1);
    view.now = now();
    view.generation = 3;
  }
  void add_waiting(int jobs) {
    for (int i = 0; i < jobs; ++i) line.put(job_that(false, "w" + std::to_string(100 + i)));
  }
  void add_running(int jobs) {
    for (int i = 0; i < jobs; ++i) line.put(job_that(true, "r" + std::to_string(100 + i)));
  }
  void pass(Duration time) {
    view.now += time;
    view.since_write += time;
  }
  QueueDecision decide() { return decide_queue(view, line); }
  // decide(), and the write is on record.
  QueueDecision step() {
    QueueDecision decision = decide();
    if (decision.write) {
      view.status = *decision.write;
      view.since_write = Duration::zero();
    }
    return decision;
  }
  std::string reason() const {
    for (const Condition& one : view.status.conditions) {
      if (one.type == "Admitting") return one.reason;
    }
    return "";
  }
};

TEST(QueueAdmission, WithoutTheGuardItAdmitsNobodySpendsNoTokenAndSaysWhy) {
  Queue queue(0, 2);
  queue.view.guard = {true, "there is no policy", "somebody has installed it"};
  EXPECT_TRUE(queue.step().admitted.empty());
  EXPECT_EQ(queue.reason(), "GuardMissing");
  EXPECT_EQ(queue.view.status.waiting, 2);
  queue.view.guard = {};
  queue.pass(seconds(10));
  EXPECT_EQ(queue.step().admitted.size(), 2u);
}

TEST(QueueAdmission, AQueueOfWhichNotAllIsKnownAdmitsNobodyAndSaysWhy) {
  Queue queue(0, 2);
  queue.view.spec.unknown = "spec.rate.burst";
  EXPECT_TRUE(queue.step().admitted.empty());
  EXPECT_EQ(queue.reason(), "NotKnownToThisVersion");
  EXPECT_EQ(queue.view.status.waiting, 2);
  queue.view.spec.unknown.clear();
  queue.pass(seconds(10));
  EXPECT_EQ(queue.step().admitted.size(), 2u);
}

TEST(Admission, GivesAsManyPermitsAsAreFreeInOneWrite) {
  Queue queue(2, 10, 5);
  const QueueDecision decision = queue.step();
  EXPECT_EQ(decision.admitted, (std::vector<std::string>{"w100", "w101", "w102"}));
  EXPECT_EQ(queue.view.status.admitting.size(), 3u);
  EXPECT_EQ(queue.view.status.running, 5);
  EXPECT_EQ(queue.view.status.waiting, 7);
  EXPECT_EQ(queue.view.status.head.size(), 7u);
  EXPECT_EQ(queue.view.status.oldest_since, now());
  EXPECT_EQ(queue.view.status.observed_generation, 3);
  EXPECT_EQ(queue.reason(), "Full");
  EXPECT_TRUE(queue.step().admitted.empty()) << "the admissions are counted";
}

TEST(Admission, TheFirstWriteOfATenureIsAClaimAndAdmitsNobody) {
  Queue queue;
  queue.view.status.holder = "member-0/9";
  queue.view.status.admitting = {{"w100", 0}};
  queue.view.claimed = queue.view.may_count = false;
  queue.add_waiting(3);
  const QueueDecision decision = queue.decide();
  ASSERT_TRUE(decision.write);
  EXPECT_TRUE(decision.claims);
  EXPECT_TRUE(decision.admitted.empty());
  EXPECT_EQ(decision.write->holder, kSelf);
  EXPECT_EQ(decision.write->admitting, queue.view.status.admitting)
      << "what the owner before has promised stays";
}

TEST(Admission, NobodyIsAdmittedBeforeTheCachesAreAsNewAsTheClaim) {
  Queue queue;
  queue.view.may_count = false;
  queue.add_waiting(3);
  const QueueDecision decision = queue.decide();
  EXPECT_FALSE(decision.write);
  EXPECT_TRUE(decision.awaits_caches);
}

TEST(Admission, AQueueWithoutJobsIsClaimedOnceAndThenLeftAlone) {
  Queue queue;
  queue.view.claimed = queue.view.may_count = false;
  queue.view.status.holder = "";
  EXPECT_TRUE(queue.decide().claims) << "its first job need not wait for the claim";
  queue.view.status.holder = "member-0/9";
  queue.view.status.observed_generation = 3;
  EXPECT_FALSE(queue.decide().write) << "a take-over writes nothing to queues at rest";
  queue.view.status.running = 1;
  EXPECT_TRUE(queue.decide().claims) << "nobody else puts right what it says";
}

// A queue that was deleted and made again has forgotten what its owner knows.
TEST(Admission, AClaimKeepsTheAdmissionsOfAnEarlierQueueOfTheName) {
  Queue queue(0, 2);
  queue.view.carried = {{"w101", 0}, {"not in the cache yet", 2}};
  queue.view.claimed = queue.view.may_count = false;
  queue.view.status = QueueStatus();
  queue.view.status.admitting = {{"w101", 1}};
  EXPECT_EQ(queue.decide().write->admitting,
            (std::vector<Admission>{{"w101", 1}, {"not in the cache yet", 2}}));
}

TEST(Admission, HoldAdmitsNobody) {
  Queue queue;
  queue.view.spec.hold = true;
  queue.add_waiting(1);
  EXPECT_TRUE(queue.step().admitted.empty());
  EXPECT_EQ(queue.reason(), "Held");
  queue.view.spec.hold = false;
  EXPECT_EQ(queue.step().admitted.size(), 1u);
  EXPECT_EQ(queue.reason(), "PermitsFree");
}

TEST(Admission, ALowerLimitStopsNothingAndAdmitsNobody) {
  Queue queue(4, 1, 2);
  EXPECT_TRUE(queue.step().admitted.empty());
  EXPECT_EQ(queue.view.status.running, 4);
}

TEST(Admission, AtMostFiveHundredAreOpen) {
  Queue queue(0, 700);
  EXPECT_EQ(queue.step().admitted.size(), kAdmissionLimit);
  EXPECT_EQ(queue.reason(), "AdmissionsOpen");
  EXPECT_TRUE(queue.step().admitted.empty());
}

TEST(Admission, NumbersAloneAreWrittenAfterAPauseAndOnlyIfTheyChange) {
  Queue queue(1, 1, 1);
  ASSERT_TRUE(queue.step().write);
  EXPECT_FALSE(queue.decide().write) << "nothing has changed";
  EXPECT_FALSE(queue.decide().wake_after) << "at rest nobody looks";
  queue.line.put(job_that(false, "w200"));
  queue.view.since_write = seconds(2);
  const QueueDecision early = queue.decide();
  EXPECT_FALSE(early.write);
  EXPECT_EQ(early.wake_after, kQueueRefresh - seconds(2));
  queue.view.since_write = kQueueRefresh;
  EXPECT_EQ(queue.decide().write->waiting, 2);
}

TEST(Admission, ARateGivesABurstAndThenOneJobAtATime) {
  Queue queue;
  queue.view.spec.rate = Rate{3, seconds(60)};
  queue.add_waiting(9);
  EXPECT_EQ(queue.step().admitted.size(), 3u);
  EXPECT_EQ(queue.reason(), "RateLimited");
  EXPECT_THAT(queue.view.status.conditions.at(0).message,
              ::testing::EndsWith("comes at " + format_time(now() + seconds(20))));
  const QueueDecision later = queue.decide();
  EXPECT_TRUE(later.admitted.empty());
  ASSERT_TRUE(later.wake_after);
  EXPECT_EQ(*later.wake_after, seconds(20));
  queue.pass(seconds(20));
  EXPECT_EQ(queue.step().admitted.size(), 1u);
  queue.pass(seconds(19));
  EXPECT_TRUE(queue.step().admitted.empty());
}

// The record is all that an owner knows, so a new one neither bursts nor stalls.
TEST(Admission, TheRateGoesOnFromTheRecord) {
  Queue queue;
  queue.view.spec.rate = Rate{2, seconds(10)};
  queue.view.status.tokens = Tokens{0, now() - seconds(4)};
  queue.add_waiting(5);
  EXPECT_TRUE(queue.step().admitted.empty());
  queue.pass(seconds(1));
  EXPECT_EQ(queue.step().admitted.size(), 1u);
}

TEST(Rate, RefillsByWholeTokensUpToTheLimit) {
  const Rate rate{10, seconds(60)};
  EXPECT_EQ(refill(std::nullopt, rate, now()), (Tokens{10, now()}));
  EXPECT_EQ(refill(Tokens{2, now()}, rate, now() + seconds(13)), (Tokens{4, now() + seconds(12)}));
  EXPECT_EQ(refill(Tokens{2, now()}, rate, now() + seconds(600)),
            (Tokens{10, now() + seconds(600)}));
  EXPECT_EQ(refill(Tokens{50, now()}, rate, now()).count, 10) << "the limit was lowered";
  EXPECT_EQ(refill(Tokens{0, now() + seconds(900)}, rate, now()), (Tokens{0, now()}))
      << "a record from the future does not stall the queue";
}

TEST(Rate, NeverExceedsItsPaceOverManyRefills) {
  const Rate rate{7, seconds(60)};
  Tokens tokens{0, now()};
  std::int64_t given = 0;
  for (int millis = 0; millis <= 600'000; millis += 37) {
    tokens = refill(tokens, rate, now() + std::chrono::milliseconds(millis));
    given += tokens.count;
    tokens.count = 0;
  }
  EXPECT_EQ(given, 69) << "70 in 600 s, of which the last comes a moment later";
}

TEST(QueueTenure, CountsOnlyAfterItsOwnClaimAndAsNewAsIt) {
  QueueTenure tenure;
  EXPECT_FALSE(tenure.may_count(1'000'000));
  EXPECT_FALSE(tenure.holds("", ""));
  tenure.claimed(kSelf, "queue-1", 70);
  EXPECT_TRUE(tenure.holds(kSelf, "queue-1"));
  EXPECT_FALSE(tenure.holds("member-1/5", "queue-1")) << "a later tenure claims anew";
  EXPECT_FALSE(tenure.holds(kSelf, "queue-2")) << "another queue of the name, too";
  EXPECT_FALSE(tenure.may_count(69));
  EXPECT_TRUE(tenure.may_count(70));
  tenure.lost();
  EXPECT_FALSE(tenure.may_count(1'000'000));
}

// Whoever changed it looks at once.
TEST(Admission, AChangedSpecIsAnsweredAtOnce) {
  Queue queue(1, 1, 1);
  queue.step();
  EXPECT_EQ(queue.reason(), "Full");
  queue.view.spec.hold = true;
  EXPECT_FALSE(queue.decide().write) << "only numbers and reasons";
  queue.view.generation = 4;
  EXPECT_TRUE(queue.step().write);
  EXPECT_EQ(queue.reason(), "Held");
  EXPECT_FALSE(queue.step().write);
}

// Each write costs the API server more than a job's.
TEST(Admission, ManyPermitsShareAWriteAndAFewDoNotWait) {
  Queue queue(20, 1, 50);
  queue.view.since_write = std::chrono::milliseconds(30);
  QueueDecision decision = queue.decide();
  EXPECT_FALSE(decision.write);
  EXPECT_EQ(decision.wake_after, Duration(std::chrono::milliseconds(70)));
  queue.view.since_write = std::chrono::milliseconds(100);
  EXPECT_EQ(queue.step().admitted.size(), 1u);
  Queue large(5000, 1);
  large.view.since_write = kAdmissionPause;
  EXPECT_EQ(large.step().admitted.size(), 1u) << "nobody waits for longer";
  Queue single(0, 1, 1);
  single.view.since_write = Duration::zero();
  EXPECT_EQ(single.step().admitted.size(), 1u);
}

TEST(CouldAdmit, IsTrueOnlyIfNothingStandsInTheWay) {
  Line line;
  const QueueSpec open;
  EXPECT_FALSE(could_admit(open, std::nullopt, now(), line));
  line.put(job_that(false, "a"));
  EXPECT_TRUE(could_admit(open, std::nullopt, now(), line));
  QueueSpec held;
  held.hold = true;
  EXPECT_FALSE(could_admit(held, std::nullopt, now(), line));
  QueueSpec slow;
  slow.rate = Rate{1, seconds(60)};
  EXPECT_FALSE(could_admit(slow, Tokens{0, now()}, now(), line));
  QueueSpec full;
  full.concurrency = 1;
  line.put(job_that(true, "b"));
  EXPECT_FALSE(could_admit(full, std::nullopt, now(), line));
  for (std::size_t i = 0; i < kAdmissionLimit; ++i) {
    const std::string uid = "c" + std::to_string(i);
    line.put(job_that(false, uid));
    line.admit(uid);
  }
  EXPECT_TRUE(line.next());
  EXPECT_FALSE(could_admit(open, std::nullopt, now(), line)) << "the admitted must start first";
}

TEST(Admission, ConditionsOfOthersDoNotStopAQueue) {
  Queue queue(0, 1);
  for (std::size_t i = 0; i < kConditionLimit; ++i) {
    queue.view.status.conditions.push_back({"Foreign" + std::to_string(i), true, "r", "", now()});
  }
  EXPECT_EQ(queue.step().admitted.size(), 1u);
  EXPECT_EQ(queue.view.status.conditions.size(), kConditionLimit);
  EXPECT_EQ(queue.reason(), "PermitsFree");
}

}  // namespace
}  // namespace holdfast::reconciler::testing
