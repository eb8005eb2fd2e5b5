// One look at a namespace serves all who ask within its time.
#include "operator/observe/namespace_looks.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/manual_loop.h"

namespace holdfast::observe {
namespace {

using std::chrono::milliseconds;

class NamespaceLooksTest : public testing::Test {
 protected:
  using Answer = std::shared_ptr<std::optional<bool>>;

  Answer ask(const std::string& ns) {
    const Answer answer = std::make_shared<std::optional<bool>>();
    spawn(wait(ns, answer));
    loop_.run_ready();
    return answer;
  }
  void answer(bool goes) {
    loop_.post([done = sent_.front().second, goes] { done(goes); });
    sent_.pop_front();
    loop_.run_ready();
  }

  test::ManualLoop loop_;
  std::deque<std::pair<std::string, Callback<bool>::Done>> sent_;  // looks without an answer
  NamespaceLooks looks_{loop_, [this](std::string ns) { return look(std::move(ns)); }};

 private:
  Task<void> wait(std::string ns, Answer answer) {
    auto task = looks_.goes(ns);
    *answer = co_await task;
  }
  Task<bool> look(std::string ns) {
    Callback<bool> answered([&](auto done) { sent_.emplace_back(ns, std::move(done)); });
    const bool goes = co_await answered;
    co_return goes;
  }
};

TEST_F(NamespaceLooksTest, ManyHeldJobsOfANamespaceShareOneLook) {
  std::vector<Answer> held;
  for (int i = 0; i < 1000; ++i) held.push_back(ask("media"));
  const Answer other = ask("proofs");
  ASSERT_EQ(sent_.size(), 2U) << "one of each namespace";
  answer(true);
  for (const Answer& one : held) EXPECT_EQ(*one, true);
  EXPECT_FALSE(other->has_value());
  answer(false);
  EXPECT_EQ(*other, false);
  loop_.advance(NamespaceLooks::kValid - milliseconds(1));
  EXPECT_EQ(*ask("media"), true) << "the answer is young enough";
  EXPECT_EQ(*ask("proofs"), false);
  EXPECT_TRUE(sent_.empty());
}

TEST_F(NamespaceLooksTest, AnAnswerCountsFromItsQuestion) {
  const Answer first = ask("media");
  loop_.advance(NamespaceLooks::kValid / 2);
  answer(false);
  EXPECT_EQ(*first, false);
  loop_.advance(NamespaceLooks::kValid / 2);
  const Answer next = ask("media");
  ASSERT_EQ(sent_.size(), 1U);
  answer(true);
  EXPECT_EQ(*next, true);
}

}  // namespace
}  // namespace holdfast::observe
