#include "core/real_loop.h"

#include <gtest/gtest.h>

#include <future>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(RealLoop, RunsPostedCallbacksInTheirOrder) {
  RealLoop loop;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) loop.post([&order, i] { order.push_back(i); });
  loop.post([&loop] { loop.stop(); });
  loop.run();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(RealLoop, KeepsTheOrderOfEachPostingThread) {
  RealLoop loop;
  std::vector<std::vector<int>> seen(4);
  std::vector<std::thread> threads;
  std::atomic<int> left{4};
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1000; ++i) loop.post([&seen, t, i] { seen[t].push_back(i); });
      loop.post([&] {
        if (--left == 0) loop.stop();
      });
    });
  }
  loop.run();
  for (std::thread& thread : threads) thread.join();
  for (const auto& of_thread : seen) {
    ASSERT_EQ(of_thread.size(), 1000u);
    EXPECT_TRUE(std::is_sorted(of_thread.begin(), of_thread.end()));
  }
}

TEST(RealLoop, RunsTimersByTimeAndEqualTimesByCall) {
  RealLoop loop;
  std::string order;
  loop.post([&] {
    const SteadyTime now = loop.now();
    loop.call_at(now + 3ms, [&] { order += "d"; });
    loop.call_at(now + 1ms, [&] { order += "a"; });
    loop.call_at(now + 2ms, [&] { order += "b"; });
    loop.call_at(now + 2ms, [&] { order += "c"; });
    loop.call_at(now + 4ms, [&] { loop.stop(); });
  });
  loop.run();
  EXPECT_EQ(order, "abcd");
}

TEST(RealLoop, NoTimerRunsBeforeItsTime) {
  RealLoop loop;
  Duration early{1};
  loop.post([&] {
    const SteadyTime due = loop.now() + 5ms;
    loop.call_at(due, [&, due] {
      early = std::max(Duration(0), due - loop.now());
      loop.stop();
    });
  });
  loop.run();
  EXPECT_EQ(early, Duration(0));
}

TEST(RealLoop, ACancelledTimerDoesNotRunAndUnknownOnesAreIgnored) {
  RealLoop loop;
  bool ran = false;
  loop.post([&] {
    const TimerId timer = loop.call_after(1ms, [&] { ran = true; });
    loop.cancel(timer);
    loop.cancel(timer);
    loop.cancel(0);
    loop.cancel(12345);
    loop.call_after(3ms, [&] { loop.stop(); });
  });
  loop.run();
  EXPECT_FALSE(ran);
}

TEST(RealLoop, ATimerMayCancelOneThatIsDueWithIt) {
  RealLoop loop;
  bool ran = false;
  loop.post([&] {
    const SteadyTime when = loop.now() + 1ms;
    auto second = std::make_shared<TimerId>(0);
    loop.call_at(when, [&, second] { loop.cancel(*second); });
    *second = loop.call_at(when, [&] { ran = true; });
    loop.call_at(when + 2ms, [&] { loop.stop(); });
  });
  loop.run();
  EXPECT_FALSE(ran);
}

TEST(RealLoop, ATimerThatRearmsItselfAtOnceDoesNotStarvePostedCallbacks) {
  RealLoop loop;
  std::function<void()> again = [&] { loop.call_after(0ns, again); };
  loop.post([&] {
    again();
    loop.post([&] { loop.post([&] { loop.stop(); }); });
  });
  loop.run();  // comes back
}

TEST(RealLoop, StopEndsItAfterTheTurnInProgressAndLaterPostsAreDropped) {
  RealLoop loop;
  bool ran = false;
  loop.post([&] { loop.stop(); });
  loop.run();
  loop.post([&] { ran = true; });
  loop.run();
  EXPECT_FALSE(ran);
}

TEST(RealLoop, APostWakesASleepingLoop) {
  RealLoop loop;
  std::thread thread([&] { loop.run(); });
  for (int i = 0; i < 50; ++i) {
    std::promise<void> ran;
    loop.post([&ran] { ran.set_value(); });
    ASSERT_EQ(ran.get_future().wait_for(10s), std::future_status::ready);
  }
  loop.stop();
  thread.join();
}

TEST(RealLoop, KnowsItsThreadAndHowLongACallbackHasRun) {
  RealLoop loop;
  EXPECT_FALSE(loop.on_loop());
  std::promise<void> entered, leave;
  std::thread thread([&] { loop.run(); });
  loop.post([&] {
    EXPECT_TRUE(loop.on_loop());
    entered.set_value();
    leave.get_future().wait();
  });
  entered.get_future().wait();
  EXPECT_FALSE(loop.on_loop());
  while (loop.busy_for() == Duration::zero()) std::this_thread::yield();
  EXPECT_GT(loop.busy_for(), Duration::zero());
  leave.set_value();
  while (loop.busy_for() != Duration::zero()) std::this_thread::yield();
  loop.stop();
  thread.join();
}

}  // namespace
}  // namespace holdfast
