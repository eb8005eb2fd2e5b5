#include "core/task.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "tests/support/manual_loop.h"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::ManualLoop;

Task<int> after(Loop& loop, Duration delay, int value) {
  Callback<int> waited([&loop, delay, value](Callback<int>::Done done) {
    loop.call_after(delay, [done, value] { done(value); });
  });
  const int result = co_await waited;
  co_return result;
}

Task<void> add_up(Loop& loop, int& sum) {
  for (int i = 1; i <= 3; ++i) {
    Task<int> next = after(loop, 1s, i);
    sum += co_await next;
  }
}

TEST(Task, StartsWhenItIsAwaitedAndGoesOnWhenTheCallbackComes) {
  ManualLoop loop;
  int sum = 0;
  bool done = false;
  Task<void> task = add_up(loop, sum);
  loop.run_ready();
  EXPECT_EQ(loop.timers(), 0u);
  spawn(std::move(task), [&done](std::exception_ptr exception) { done = exception == nullptr; });
  EXPECT_EQ(sum, 0);
  loop.advance(1s);
  EXPECT_EQ(sum, 1);
  loop.advance(2s);
  EXPECT_EQ(sum, 6);
  EXPECT_TRUE(done);
}

Task<int> failing(Loop& loop) {
  Task<int> waited = after(loop, 1s, 0);
  co_await waited;
  throw std::runtime_error("broken");
}

Task<void> catching(Loop& loop, std::string& message) {
  Task<int> task = failing(loop);
  try {
    co_await task;
  } catch (const std::exception& exception) {
    message = exception.what();
  }
}

TEST(Task, AnExceptionReachesTheOneWhoAwaits) {
  ManualLoop loop;
  std::string message;
  spawn(catching(loop, message));
  loop.advance(1s);
  EXPECT_EQ(message, "broken");
}

TEST(Task, AnExceptionThatNobodyCatchesReachesDone) {
  ManualLoop loop;
  std::exception_ptr seen;
  const auto discard = [](Task<int> task) -> Task<void> { co_await task; };
  spawn(discard(failing(loop)), [&seen](std::exception_ptr exception) { seen = exception; });
  loop.advance(1s);
  ASSERT_NE(seen, nullptr);
  EXPECT_THROW(std::rethrow_exception(seen), std::runtime_error);
}

Task<void> many(Loop& loop, int count, int& done) {
  for (int i = 0; i < count; ++i) {
    Task<int> next = after(loop, 1ms, i);
    co_await next;
    ++done;
  }
}

TEST(Task, LongChainsDoNotGrowTheStack) {
  ManualLoop loop;
  int done = 0;
  spawn(many(loop, 200'000, done));
  loop.advance(200s);
  EXPECT_EQ(done, 200'000);
}

Task<void> keep(Loop& loop, std::shared_ptr<int> object) {
  Task<int> waited = after(loop, 1s, 0);
  co_await waited;
  *object += 1;
}

TEST(Task, TheFrameAndWhatItHoldsAreFreedAtTheEnd) {
  ManualLoop loop;
  auto object = std::make_shared<int>(0);
  spawn(keep(loop, object));
  EXPECT_GT(object.use_count(), 1);
  loop.advance(1s);
  EXPECT_EQ(*object, 1);
  EXPECT_EQ(object.use_count(), 1);
}

TEST(Task, OneThatNeverRanIsFreedToo) {
  ManualLoop loop;
  auto object = std::make_shared<int>(0);
  { const Task<void> task = keep(loop, object); }
  EXPECT_EQ(object.use_count(), 1);
}

}  // namespace
}  // namespace holdfast
