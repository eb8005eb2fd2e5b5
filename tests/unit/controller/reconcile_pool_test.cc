#include "client/controller/reconcile_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/manual_loop.h"

namespace holdfast::controller {
namespace {

using namespace std::chrono_literals;
using test::ManualLoop;

class ReconcilePoolTest : public ::testing::Test {
 protected:
  // Waits until the test finishes it.
  Task<ReconcileResult> wait(std::string key) {
    begun.push_back(key);
    Callback<ReconcileResult> answer([this, key](auto done) { waiting[key] = std::move(done); });
    auto result = co_await answer;
    co_return result;
  }
  // Ends without waiting.
  Task<ReconcileResult> at_once(std::string key) {
    begun.push_back(key);
    if (throws) throw std::runtime_error("boom");
    co_return next_result;
  }

  // Whatever is awaited must complete in the end.
  void TearDown() override {
    if (pool) pool->stop(nullptr);
    while (!waiting.empty()) finish(waiting.begin()->first);
  }

  void make(ReconcilePool::Reconcile reconcile, int workers = 2) {
    ReconcilePool::Metrics metrics;
    metrics.on_active = [this](int count) { most_active = std::max(most_active, count); };
    metrics.on_result = [this](const char* result, Duration took) {
      ++results[result];
      last_took = took;
    };
    metrics.on_exception = [this] { ++exceptions; };
    ReconcilePool::Config config;
    config.workers = workers;
    pool = std::make_unique<ReconcilePool>(ReconcilePool::Dependencies{loop, Log()}, config,
                                           std::move(reconcile), std::move(metrics));
  }
  void make_waiting(int workers = 2) {
    make([this](std::string key) { return wait(std::move(key)); }, workers);
    pool->start();
  }
  void make_at_once(int workers = 2) {
    make([this](std::string key) { return at_once(std::move(key)); }, workers);
    pool->start();
  }
  void add(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) pool->queue().add(key);
    loop.run_ready();
  }
  void finish(std::string key, ReconcileResult result = {}) {
    const auto done = std::move(waiting.at(key));
    waiting.erase(key);
    loop.post([done, result] { done(result); });
    loop.run_ready();
  }
  ReconcileResult failure() { return {make_error(ErrorCode::kTransient, "no"), std::nullopt}; }

  ManualLoop loop;
  std::vector<std::string> begun;
  std::map<std::string, std::function<void(ReconcileResult)>> waiting;
  ReconcileResult next_result;
  bool throws = false;
  std::map<std::string, int> results;
  int most_active = 0, exceptions = 0;
  Duration last_took{};
  std::unique_ptr<ReconcilePool> pool;
};

using Keys = std::vector<std::string>;

TEST_F(ReconcilePoolTest, KeysWaitUntilItIsStarted) {
  make([this](std::string key) { return at_once(std::move(key)); });
  add({"a"});
  EXPECT_TRUE(begun.empty());
  pool->start();
  loop.run_ready();
  EXPECT_EQ(begun, (Keys{"a"}));
}

TEST_F(ReconcilePoolTest, AtMostSoManyReconcilesAreInFlight) {
  make_waiting(2);
  add({"a", "b", "c"});
  EXPECT_EQ(begun, (Keys{"a", "b"}));
  EXPECT_EQ(pool->active(), 2);
  finish("b");
  EXPECT_EQ(begun, (Keys{"a", "b", "c"}));
  EXPECT_EQ(most_active, 2);
}

TEST_F(ReconcilePoolTest, AReconcileThatWaitsHoldsUpNoOtherKey) {
  make_waiting(2);
  add({"slow"});
  for (int i = 0; i < 50; ++i) {
    const std::string key = "k" + std::to_string(i);
    add({key});
    ASSERT_EQ(begun.back(), key);
    finish(key);
  }
  EXPECT_EQ(pool->active(), 1);
}

TEST_F(ReconcilePoolTest, AKeyIsReconciledOnceAtATime) {
  make_waiting(2);
  add({"a"});
  add({"a"});
  EXPECT_EQ(begun, (Keys{"a"}));
  finish("a");
  EXPECT_EQ(begun, (Keys{"a", "a"}));
}

TEST_F(ReconcilePoolTest, SuccessIsNotRepeated) {
  make_at_once();
  add({"a"});
  loop.advance(1h);
  EXPECT_EQ(begun.size(), 1u);
  EXPECT_EQ(results, (std::map<std::string, int>{{"success", 1}}));
}

TEST_F(ReconcilePoolTest, AnErrorIsRetriedWithDoublingDelays) {
  make_at_once();
  next_result = failure();
  add({"a"});
  loop.advance(5ms);
  EXPECT_EQ(begun.size(), 2u);
  loop.advance(9ms);
  EXPECT_EQ(begun.size(), 2u);
  loop.advance(1ms);
  EXPECT_EQ(begun.size(), 3u);
  EXPECT_EQ(results["error"], 3);
}

TEST_F(ReconcilePoolTest, AReconcileThatDecidedNothingForgetsNoFailure) {
  make_at_once();
  next_result = failure();
  add({"a"});
  loop.advance(5ms);
  ASSERT_EQ(begun.size(), 2u);
  next_result = {std::nullopt, 1ms, Priority::kFresh, false};
  loop.advance(10ms);
  ASSERT_EQ(begun.size(), 3u);
  next_result = failure();
  loop.advance(1ms);
  ASSERT_EQ(begun.size(), 4u);
  loop.advance(19ms);
  EXPECT_EQ(begun.size(), 4u) << "the third failure waits 20 ms";
  loop.advance(1ms);
  EXPECT_EQ(begun.size(), 5u);
}

TEST_F(ReconcilePoolTest, WakeAfterForgetsFailuresAndThenWaits) {
  make_at_once();
  next_result = failure();
  add({"a"});
  loop.advance(5ms);
  next_result = {std::nullopt, Duration(10s)};
  loop.advance(10ms);
  ASSERT_EQ(begun.size(), 3u);
  EXPECT_EQ(results["requeue_after"], 1);
  loop.advance(9s);
  EXPECT_EQ(begun.size(), 3u);
  next_result = failure();
  loop.advance(1s);
  EXPECT_EQ(begun.size(), 4u);
  loop.advance(5ms);
  EXPECT_EQ(begun.size(), 5u) << "the failure is the first again";
}

TEST_F(ReconcilePoolTest, AnErrorBeatsWakeAfter) {
  make_at_once();
  next_result = failure();
  next_result.wake_after = 1h;
  add({"a"});
  loop.advance(5ms);
  EXPECT_EQ(begun.size(), 2u);
  EXPECT_EQ(results["error"], 2);
}

TEST_F(ReconcilePoolTest, AfterManyErrorsWhatIsDueIsNotLate) {
  make_at_once();
  next_result = failure();
  add({"a"});
  loop.advance(1h);  // by now it is retried each 30 s
  std::size_t before = begun.size();
  loop.advance(30s);
  EXPECT_EQ(begun.size(), before + 1);
  next_result.wake_after = Duration(2s);
  loop.advance(30s);
  before = begun.size();
  loop.advance(20s);
  EXPECT_EQ(begun.size(), before + 10);
  next_result.wake_after = Duration(1ms);
  loop.advance(2s);
  before = begun.size();
  loop.advance(20s);
  EXPECT_EQ(begun.size(), before + 20) << "once a second at most";
}

TEST_F(ReconcilePoolTest, AWakeTimeThatHasPassedComesBackWithoutSpinning) {
  make_at_once();
  next_result = {std::nullopt, Duration::zero()};
  add({"a"});
  loop.advance(1s);
  EXPECT_EQ(begun.size(), 8u) << "5 ms doubling: 8 within a second";
  EXPECT_EQ(results["requeue"], 8);
}

TEST_F(ReconcilePoolTest, AnExceptionIsARetryAndHurtsNoOtherKey) {
  make_at_once();
  throws = true;
  add({"a"});
  EXPECT_EQ(exceptions, 1);
  throws = false;
  add({"b"});
  loop.advance(5ms);
  EXPECT_EQ(begun, (Keys{"a", "b", "a"}));
  EXPECT_EQ(results, (std::map<std::string, int>{{"error", 1}, {"success", 2}}));
  EXPECT_EQ(pool->active(), 0);
}

TEST_F(ReconcilePoolTest, AnExceptionBeforeTheFirstStepOrOfAnyTypeIsARetryToo) {
  bool first = true;
  make([&](std::string key) -> Task<ReconcileResult> {
    if (std::exchange(first, false)) throw 42;
    return at_once(std::move(key));
  });
  pool->start();
  add({"a"});
  EXPECT_EQ(exceptions, 1);
  loop.advance(5ms);
  EXPECT_EQ(begun, (Keys{"a"}));
}

TEST_F(ReconcilePoolTest, OneTurnStartsSoManyReconcilesThatOthersGetTheirTurn) {
  make_at_once(4);
  for (int i = 0; i < 100; ++i) pool->queue().add("k" + std::to_string(i));
  std::size_t begun_before_other = 0;
  // Posted after the turn that hands out the first keys.
  loop.post([&] { loop.post([&] { begun_before_other = begun.size(); }); });
  loop.run_ready();
  EXPECT_EQ(begun.size(), 100u);
  EXPECT_LT(begun_before_other, 20u);
}

TEST_F(ReconcilePoolTest, ReportsHowLongAReconcileTook) {
  make_waiting();
  add({"a"});
  loop.advance(3s);
  finish("a");
  EXPECT_EQ(last_took, Duration(3s));
}

TEST_F(ReconcilePoolTest, StopWaitsForWhatIsInFlightOnly) {
  make_waiting(1);
  add({"a", "b"});
  int idle = 0;
  pool->stop([&] { ++idle; });
  EXPECT_EQ(idle, 0) << "in a later turn";
  loop.run_ready();
  EXPECT_EQ(idle, 0);
  finish("a", failure());
  EXPECT_EQ(idle, 1);
  loop.advance(1h);
  EXPECT_EQ(begun, (Keys{"a"}));
  EXPECT_EQ(idle, 1);
}

TEST_F(ReconcilePoolTest, StopWithNothingInFlightIsIdleInTheNextTurn) {
  make([this](std::string key) { return at_once(std::move(key)); });
  add({"a"});
  int idle = 0;
  pool->stop([&] { ++idle; });
  EXPECT_EQ(idle, 0);
  loop.run_ready();
  EXPECT_EQ(idle, 1);
  pool->start();
  loop.run_ready();
  EXPECT_TRUE(begun.empty());
}

TEST_F(ReconcilePoolTest, SaysOnceWhenNothingIsInFlightAndGoesOn) {
  make_waiting(2);
  add({"a"});
  int idle = 0;
  pool->when_idle([&] { ++idle; });
  loop.run_ready();
  EXPECT_EQ(idle, 0);
  finish("a");
  EXPECT_EQ(idle, 1);
  add({"b"});
  finish("b");
  EXPECT_EQ(idle, 1);
  EXPECT_EQ(begun, (Keys{"a", "b"}));
}

TEST_F(ReconcilePoolTest, ReconcilesThatHangLeaveRoomForOtherTenants) {
  make_waiting(4);
  Keys hanging;
  for (const char* tenant : {"a/", "b/", "c/"}) {
    for (int i = 0; i < 10; ++i) hanging.push_back(tenant + std::to_string(i));
  }
  add(hanging);
  EXPECT_EQ(pool->active(), 6) << "two each of the three, and two stay free";
  for (int i = 0; i < 20; ++i) {
    const std::string key = "d/" + std::to_string(i);
    add({key});
    ASSERT_EQ(begun.back(), key);
    finish(key);
  }
}

TEST_F(ReconcilePoolTest, AnErrorThatSaysHowLongToWaitIsNotRetriedBeforeUnlessSomethingIsDue) {
  make_at_once();
  next_result = failure();
  next_result.error->retry_after = Duration(20s);
  add({"a"});
  loop.advance(19s);
  EXPECT_EQ(begun.size(), 1u);
  next_result.wake_after = Duration(5s);
  loop.advance(1s);
  EXPECT_EQ(begun.size(), 2u);
  loop.advance(5s);
  EXPECT_EQ(begun.size(), 3u);
}

TEST_F(ReconcilePoolTest, MayBeDestroyedWhileReconcilesAreInFlight) {
  make_waiting(2);
  add({"a"});
  pool.reset();
  finish("a", failure());
  loop.advance(1h);
  EXPECT_EQ(begun, (Keys{"a"}));
}

}  // namespace
}  // namespace holdfast::controller
