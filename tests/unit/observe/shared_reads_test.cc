// One live read of each subject at a time, and never an answer that is older than the question.
#include "operator/observe/shared_reads.h"

#include <gtest/gtest.h>

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/manual_loop.h"

namespace holdfast::observe {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SharedReadsTest : public testing::Test {
 protected:
  struct Sent {
    std::string subject;
    SteadyTime by;
    Callback<Result<>>::Done done;
  };
  using Answer = std::shared_ptr<std::optional<Result<>>>;

  Answer ask(const std::string& subject, Duration within = seconds(30)) {
    const Answer answer = std::make_shared<std::optional<Result<>>>();
    spawn(wait(subject, loop_.now() + within, answer));
    return answer;
  }
  void answer(std::size_t read, Result<> status = Unit{}) {
    loop_.post([done = sent_.at(read).done, status] { done(status); });
    loop_.run_ready();
  }

  test::ManualLoop loop_;
  std::deque<Sent> sent_;
  SharedReads reads_{
      loop_, [this](std::string subject, SteadyTime by) { return read(std::move(subject), by); }};

 private:
  Task<void> wait(std::string subject, SteadyTime by, Answer answer) {
    auto task = reads_.ask(subject, by);
    *answer = co_await task;
  }
  Task<Result<>> read(std::string subject, SteadyTime by) {
    Callback<Result<>> answered([&](auto done) {
      sent_.push_back({subject, by, std::move(done)});
    });
    const Result<> status = co_await answered;
    co_return status;
  }
};

TEST_F(SharedReadsTest, WhoAsksBeforeItIsSentSharesIt) {
  const std::vector<Answer> answers = {ask("a", seconds(9)), ask("a", seconds(7)), ask("b")};
  loop_.advance(milliseconds(1));
  ASSERT_EQ(sent_.size(), 2u) << "one for each subject";
  EXPECT_EQ(sent_[0].by, loop_.now() - milliseconds(1) + seconds(7)) << "the first limit holds";
  answer(0);
  EXPECT_TRUE(*answers[0] && *answers[1]);
  EXPECT_FALSE(*answers[2]);
  answer(1);
  EXPECT_TRUE(*answers[2]);
}

TEST_F(SharedReadsTest, WhoAsksLaterIsServedByTheNext) {
  const Answer first = ask("a");
  loop_.advance(milliseconds(1));
  const std::vector<Answer> later = {ask("a"), ask("a")};
  loop_.advance(milliseconds(500));
  ASSERT_EQ(sent_.size(), 1u) << "one at a time";
  answer(0);
  EXPECT_TRUE(*first);
  EXPECT_FALSE(*later[0] || *later[1]) << "what was read may be older than their question";
  ASSERT_EQ(sent_.size(), 2u);
  answer(1);
  EXPECT_TRUE(*later[0] && *later[1]);
}

TEST_F(SharedReadsTest, OneThatHangsHoldsTheNextUpForASecond) {
  const Answer first = ask("a");
  loop_.advance(milliseconds(1));
  const Answer later = ask("a");
  loop_.advance(milliseconds(998));
  EXPECT_EQ(sent_.size(), 1u);
  loop_.advance(milliseconds(2));
  ASSERT_EQ(sent_.size(), 2u);
  answer(1);
  EXPECT_TRUE(*later);
  EXPECT_FALSE(*first);
  answer(0);
  EXPECT_TRUE(*first);
}

TEST_F(SharedReadsTest, AFailureIsEverybodys) {
  const std::vector<Answer> answers = {ask("a"), ask("a")};
  loop_.advance(milliseconds(1));
  answer(0, make_error(ErrorCode::kTransient, "x"));
  for (const Answer& found : answers) {
    ASSERT_TRUE(*found);
    EXPECT_FALSE((*found)->ok());
  }
  const Answer again = ask("a");
  loop_.advance(milliseconds(1));
  EXPECT_EQ(sent_.size(), 2u);
  answer(1);
  EXPECT_TRUE(*again && (*again)->ok());
}

}  // namespace
}  // namespace holdfast::observe
