#include "client/controller/work_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/random.h"
#include "tests/support/manual_loop.h"

namespace holdfast::controller {
namespace {

using namespace std::chrono_literals;
using test::ManualLoop;

class QueueTest : public ::testing::Test {
 protected:
  std::string take() { return queue.take().value_or(""); }

  ManualLoop loop;
  int ready_calls = 0;
  int adds = 0, retries = 0;
  Duration queued{}, worked{};
  WorkQueue queue{
      loop, WorkQueue::Config{}, [this] { ++ready_calls; },
      WorkQueue::Metrics{[this] { ++adds; }, [this] { ++retries; },
                         [this](Duration d) { queued = d; }, [this](Duration d) { worked = d; }}};
};

TEST_F(QueueTest, AddsOfAWaitingKeyCoalesce) {
  queue.add("a");
  queue.add("a");
  EXPECT_EQ(queue.depth(), 1u);
  EXPECT_EQ(adds, 1);
  EXPECT_EQ(take(), "a");
  EXPECT_EQ(take(), "");
}

TEST_F(QueueTest, AKeyIsProcessedOnceAtATimeAndComesBackWhenAddedMeanwhile) {
  queue.add("a");
  ASSERT_EQ(take(), "a");
  queue.add("a");
  queue.add("a");
  EXPECT_EQ(take(), "") << "still being processed";
  EXPECT_EQ(queue.processing(), 1u);
  queue.done("a");
  EXPECT_EQ(take(), "a");
  queue.done("a");
  EXPECT_EQ(take(), "");
  EXPECT_EQ(queue.processing(), 0u);
}

TEST_F(QueueTest, OnReadyRunsInALaterTurnOnceForManyKeys) {
  queue.add("a");
  queue.add("b");
  EXPECT_EQ(ready_calls, 0);
  loop.run_ready();
  EXPECT_EQ(ready_calls, 1);
}

TEST_F(QueueTest, OnReadyRunsWhenAKeyComesBackAfterProcessing) {
  queue.add("a");
  loop.run_ready();
  ASSERT_EQ(take(), "a");
  queue.add("a");
  loop.run_ready();
  EXPECT_EQ(ready_calls, 1) << "nothing can be taken yet";
  queue.done("a");
  loop.run_ready();
  EXPECT_EQ(ready_calls, 2);
}

TEST_F(QueueTest, FreshKeysAreHandedOutInTheOrderOfTheirAdds) {
  for (const char* key : {"c", "a", "b"}) queue.add(key);
  EXPECT_EQ(take(), "c");
  EXPECT_EQ(take(), "a");
  EXPECT_EQ(take(), "b");
}

TEST_F(QueueTest, LowKeysGoBehindFreshOnes) {
  queue.add("low", Priority::kLow);
  queue.add("fresh");
  EXPECT_EQ(take(), "fresh");
  EXPECT_EQ(take(), "low");
}

TEST_F(QueueTest, AFreshAddRaisesALowKeyAndALowAddLowersNothing) {
  queue.add("a", Priority::kLow);
  queue.add("b", Priority::kLow);
  queue.add("c");
  queue.add("b");
  queue.add("c", Priority::kLow);
  EXPECT_EQ(take(), "c");
  EXPECT_EQ(take(), "b");
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, AKeyThatIsRaisedWhileItIsProcessedComesBackAsFresh) {
  queue.add("a");
  ASSERT_EQ(take(), "a");
  queue.add("a", Priority::kLow);
  queue.add("a");
  queue.add("b", Priority::kLow);
  queue.done("a");
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, ALowKeyDoesNotStarveBehindFreshOnesThatNeverEnd) {
  queue.add("low", Priority::kLow);
  bool taken = false;
  for (int i = 0; i < 100 && !taken; ++i) {
    queue.add("fresh" + std::to_string(i));
    queue.add("other" + std::to_string(i));
    taken = take() == "low";
    loop.advance(100ms);
  }
  EXPECT_TRUE(taken);
}

TEST_F(QueueTest, ADelayedKeyIsReadyAtItsTimeAndNotBefore) {
  queue.add_after("a", 10s);
  loop.advance(9999ms);
  EXPECT_EQ(take(), "");
  loop.advance(1ms);
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, OfTwoDelaysTheEarlierWins) {
  queue.add_after("a", 10s);
  queue.add_after("a", 5s);
  queue.add_after("a", 20s);
  loop.advance(5s);
  EXPECT_EQ(take(), "a");
  queue.done("a");
  loop.advance(1h);
  EXPECT_EQ(take(), "") << "the later ones were given up";
}

TEST_F(QueueTest, APendingDelayOutlivesAnAddAtOnce) {
  queue.add_after("a", 10s);
  queue.add("a");
  ASSERT_EQ(take(), "a");
  queue.done("a");
  loop.advance(10s);
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, ADelayThatEndsDuringProcessingBringsTheKeyBack) {
  queue.add("a");
  ASSERT_EQ(take(), "a");
  queue.add_after("a", 1s);
  loop.advance(2s);
  EXPECT_EQ(take(), "");
  queue.done("a");
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, FailuresDoubleFromFiveMillisecondsToTheCap) {
  Duration expected = 5ms;
  for (int i = 0; i < 60; ++i) {
    queue.add_rate_limited("a");
    loop.advance(expected - 1ns);
    ASSERT_EQ(take(), "") << "failure " << i;
    loop.advance(1ns);
    ASSERT_EQ(take(), "a") << "failure " << i;
    queue.done("a");
    expected = std::min<Duration>(expected * 2, 30s);
  }
  EXPECT_EQ(retries, 60);
}

TEST_F(QueueTest, SuccessForgetsTheFailures) {
  for (int i = 0; i < 8; ++i) {
    queue.add_rate_limited("a");
    loop.advance(30s);
    ASSERT_EQ(take(), "a");
    queue.done("a");
  }
  queue.forget("a");
  queue.add_rate_limited("a");
  loop.advance(5ms);
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, FailuresOfManyKeysShareOneBucket) {
  for (int i = 0; i < 300; ++i) queue.add_rate_limited("k" + std::to_string(i));
  loop.advance(5ms);
  std::size_t taken = 0;
  while (queue.take()) ++taken;
  EXPECT_EQ(taken, 200u) << "the burst";
  loop.advance(1s);
  while (queue.take()) ++taken;
  EXPECT_NEAR(static_cast<double>(taken), 250, 1) << "50 a second after it";
  loop.advance(2s);
  while (queue.take()) ++taken;
  EXPECT_EQ(taken, 300u);
}

TEST_F(QueueTest, ATenantsFailuresDelayNoOthers) {
  for (int i = 0; i < 10'000; ++i) queue.add_rate_limited("a/k" + std::to_string(i));
  queue.add_rate_limited("b/k");
  loop.advance(5ms);
  std::set<std::string> ready;
  while (const auto key = queue.take()) ready.insert(*key);
  EXPECT_EQ(ready.count("b/k"), 1u);
  EXPECT_LT(ready.size(), 300u) << "of the one that fails";
}

TEST_F(QueueTest, FailuresOfManyTenantsComeNoFasterThanOnes) {
  for (int i = 0; i < 1'000; ++i) {
    for (const char* tenant : {"a", "b", "c", "d", "e"}) {
      queue.add_rate_limited(tenant + std::string("/k") + std::to_string(i));
    }
  }
  loop.advance(5s);
  while (queue.take()) continue;
  std::size_t taken = 0;
  loop.advance(10s);
  while (queue.take()) ++taken;
  EXPECT_NEAR(static_cast<double>(taken), 500, 25) << "50 a second of all";
}

TEST_F(QueueTest, ShutDownAtOnceHandsOutNothingMore) {
  queue.add("a");
  queue.add("b");
  queue.add_after("c", 1s);
  ASSERT_EQ(take(), "a");
  queue.add("a");
  queue.shut_down();
  EXPECT_EQ(take(), "");
  EXPECT_EQ(queue.depth(), 0u);
  EXPECT_EQ(loop.timers(), 0u);
  queue.done("a");
  queue.add("d");
  queue.add_rate_limited("e");
  loop.advance(1h);
  EXPECT_EQ(take(), "");
  EXPECT_EQ(queue.processing(), 0u);
}

TEST_F(QueueTest, TenantsTakeTurnsEachInItsOwnOrder) {
  for (const char* key : {"a/1", "a/2", "a/3", "b/1", "c/1", "b/2"}) queue.add(key);
  std::vector<std::string> order;
  while (auto key = queue.take()) order.push_back(*key);
  EXPECT_EQ(order, (std::vector<std::string>{"a/1", "b/1", "c/1", "a/2", "b/2", "a/3"}));
}

TEST_F(QueueTest, ATenantThatIsNotAdmittedHoldsUpNoOther) {
  for (const char* key : {"a/1", "a/2", "b/1"}) queue.add(key);
  queue.add("b/2", Priority::kLow);
  const auto not_a = [](const std::string& tenant) { return tenant != "a"; };
  EXPECT_EQ(queue.take(not_a), "b/1");
  EXPECT_EQ(queue.take(not_a), "b/2");
  EXPECT_EQ(queue.take(not_a), std::nullopt);
  EXPECT_EQ(queue.depth(), 2u);
  EXPECT_EQ(take(), "a/1");
}

TEST_F(QueueTest, VerdictsGoBeforeStartsAndStartsBeforeLists) {
  queue.add("low", Priority::kLow);
  queue.add_after("start", 1s, Priority::kStart);
  queue.add_after("both", 2s, Priority::kStart);
  queue.add_after("both", 3s);
  loop.advance(2s);
  queue.add("verdict");
  std::vector<std::string> order;
  while (auto key = queue.take()) order.push_back(*key);
  EXPECT_EQ(order, (std::vector<std::string>{"both", "verdict", "start", "low"}));
}

TEST_F(QueueTest, AFailureThatAsksForMoreWaitsForMore) {
  queue.add_rate_limited("a", 20s);
  loop.advance(19s);
  EXPECT_EQ(take(), "");
  loop.advance(1s);
  EXPECT_EQ(take(), "a");
}

TEST_F(QueueTest, ReportsHowLongKeysWaitAndAreWorkedOn) {
  queue.add("a");
  loop.advance(2s);
  ASSERT_EQ(take(), "a");
  EXPECT_EQ(queued, Duration(2s));
  loop.advance(3s);
  queue.add("b");
  ASSERT_EQ(take(), "b");
  loop.advance(1s);
  EXPECT_EQ(queue.unfinished_work(), Duration(5s));
  EXPECT_EQ(queue.longest_running(), Duration(4s));
  queue.done("a");
  EXPECT_EQ(worked, Duration(4s));
  EXPECT_EQ(queue.longest_running(), Duration(1s));
}

TEST_F(QueueTest, PostsAndTimersOfADestroyedQueueDoNothing) {
  int calls = 0;
  {
    WorkQueue short_lived(loop, {}, [&] { ++calls; });
    short_lived.add("a");
    short_lived.add_after("b", 1s);
  }
  loop.advance(2s);
  EXPECT_EQ(calls, 0);
}

// Random adds, delays, failures, takes and dones against what must hold: a key is never out twice
// at once, and whatever was asked for is handed out after it was asked for and became due.
class QueueModel {
 public:
  explicit QueueModel(std::uint64_t seed) : random_(seed) {}

  void step() {
    const std::string key(1, static_cast<char>('a' + random_.below(6)));
    switch (random_.below(7)) {
      case 0:
      case 1:
        queue_.add(key, random_.below(2) == 0 ? Priority::kFresh : Priority::kLow);
        at_once_.insert(key);
        break;
      case 2: {
        const Duration delay = std::chrono::milliseconds(1 + random_.below(2000));
        queue_.add_after(key, delay);
        expect_after(key, delay);
        break;
      }
      case 3:
        queue_.add_rate_limited(key);
        expect_after(key, 5ms * (1 << std::min(failures_[key]++, 12)));
        break;
      case 4:
        queue_.forget(key);
        failures_.erase(key);
        break;
      case 5:
        loop_.advance(std::chrono::milliseconds(random_.below(2) * random_.below(500)));
        take();
        break;
      default:
        if (!out_.empty()) done(*out_.begin());
    }
  }

  void finish() {
    loop_.advance(1h);
    while (!out_.empty()) done(*out_.begin());
    while (take()) done(*out_.begin());
    EXPECT_TRUE(at_once_.empty()) << *at_once_.begin() << " was lost";
    EXPECT_TRUE(due_.empty()) << due_.begin()->first << " was lost";
    EXPECT_EQ(queue_.depth() + queue_.processing(), 0u);
  }

 private:
  void expect_after(const std::string& key, Duration delay) {
    const SteadyTime due = loop_.now() + std::min<Duration>(delay, 30s);
    const auto old = due_.find(key);
    if (old != due_.end() && old->second <= loop_.now()) {  // has fired, waits to be taken
      due_.erase(old);
      at_once_.insert(key);
    }
    const auto [entry, added] = due_.emplace(key, due);
    if (!added) entry->second = std::min(entry->second, due);  // the earlier wins
  }
  bool take() {
    const auto key = queue_.take();
    if (!key) return false;
    EXPECT_TRUE(out_.insert(*key).second) << *key << " is out twice";
    at_once_.erase(*key);
    const auto found = due_.find(*key);
    if (found != due_.end() && found->second <= loop_.now()) due_.erase(found);
    return true;
  }
  void done(std::string key) {
    queue_.done(key);
    out_.erase(key);
  }

  ManualLoop loop_;
  SeededRandom random_;
  WorkQueue queue_{loop_, WorkQueue::Config{}, nullptr};
  std::set<std::string> out_, at_once_;
  std::map<std::string, SteadyTime> due_;
  std::map<std::string, int> failures_;
};

TEST(QueueProperty, NoKeyIsOutTwiceAtOnceAndNoneIsLost) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    QueueModel model(seed);
    for (int step = 0; step < 400; ++step) model.step();
    model.finish();
  }
}

}  // namespace
}  // namespace holdfast::controller
