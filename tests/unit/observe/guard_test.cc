// Whether a new attempt may start, by what the API server says of the guard's policies.
#include "operator/observe/guard.h"

#include <gtest/gtest.h>

#include "core/json.h"
#include "operator/codecs/guard_policies.h"
#include "tests/unit/kube/client_fixture.h"

namespace holdfast::observe {
namespace {

class GuardTest : public kube::ClientTest {
 protected:
  void start(bool required = true) {
    guard_ = std::make_unique<Guard>(
        Guard::Dependencies{loop_, client_, Log(), "0.4.0",
                            [this](const std::string& fault) { told_.push_back(fault); },
                            [this] { ++news_; }},
        required);
    guard_->start();
    loop_.run_ready();
  }
  void TearDown() override {
    guard_->stop();
    client_.shut_down();
    loop_.run_ready();
  }
  // The next policy or binding that is asked for is as it was shipped.
  void answer_shipped() {
    ASSERT_EQ(transport_.pending(), 1U);
    const std::string target = transport_.request().target;
    for (const codecs::GuardObject& object : codecs::guard_objects()) {
      if (!target.ends_with(std::string(object.resource) + "/" + object.name)) continue;
      transport_.answer(
          200,
          Json{{"metadata", {{"name", object.name}}}, {"spec", *parse_json(object.spec)}}.dump());
      return loop_.run_ready();
    }
    FAIL() << target;
  }
  void answer_all_shipped() {
    for (std::size_t i = 0; i < codecs::guard_objects().size(); ++i) answer_shipped();
    ASSERT_EQ(transport_.pending(), 0U);
  }
  void answer(int code) {
    ASSERT_EQ(transport_.pending(), 1U);
    transport_.answer(code, R"({"kind":"Status","code":)" + std::to_string(code) + "}");
    loop_.run_ready();
  }
  void next_look() {
    ASSERT_EQ(transport_.pending(), 0U);
    loop_.advance(Guard::kLook);
  }
  void next_short_look() {
    ASSERT_EQ(transport_.pending(), 0U);
    loop_.advance(Guard::kShortLook);
  }
  void answer_rest_shipped(std::size_t answered) {
    for (std::size_t i = answered; i < codecs::guard_objects().size(); ++i) answer_shipped();
  }
  bool holds() const { return guard_->view().holds; }

  std::unique_ptr<Guard> guard_;
  std::vector<std::string> told_;
  int news_ = 0;
};

TEST_F(GuardTest, NothingStartsBeforeThePoliciesWereRead) {
  start();
  EXPECT_TRUE(holds());
  EXPECT_EQ(guard_->view().fault, "") << "nothing is known to be wrong";
  answer_all_shipped();
  EXPECT_FALSE(holds());
  EXPECT_TRUE(told_.empty());
  EXPECT_EQ(news_, 1) << "who waited goes on";
}

TEST_F(GuardTest, UntilTheyWereReadItLooksOften) {
  start();
  answer(500);
  answer_rest_shipped(1);
  EXPECT_TRUE(holds());
  next_short_look();
  answer_all_shipped();
  EXPECT_FALSE(holds());
}

TEST_F(GuardTest, APolicyThatIsMissingHoldsAttemptsUntilItIsBack) {
  start();
  answer_all_shipped();
  next_look();
  answer_shipped();
  answer(404);
  EXPECT_TRUE(holds());
  EXPECT_EQ(told_.size(), 1U);
  next_short_look();
  answer_all_shipped();
  EXPECT_TRUE(holds()) << "the API servers may not hold anybody to it yet";
  next_short_look();
  answer_all_shipped();
  EXPECT_FALSE(holds());
  EXPECT_EQ(told_.size(), 2U);
  EXPECT_EQ(news_, 3) << "known; it holds; it does not";
}

TEST_F(GuardTest, JobsSayAFaultOnlyOnceThreeLooksHaveSeenIt) {
  start();
  answer_all_shipped();
  next_look();
  for (int look = 1; look <= Guard::kToldLooks; ++look) {
    EXPECT_EQ(guard_->view().fault, "");
    answer(404);
    EXPECT_TRUE(holds());
    EXPECT_NE(guard_->fault(), "") << "the metric and the Event say it at once";
    if (look < Guard::kToldLooks) next_short_look();
  }
  EXPECT_EQ(guard_->view().fault, guard_->fault());
  EXPECT_NE(guard_->view().remedy, "");
  EXPECT_EQ(news_, 3) << "known; it holds; it says why";
  next_short_look();
  answer(404);
  EXPECT_EQ(news_, 3);
}

TEST_F(GuardTest, IfNobodyCanReadItItSaysSo) {
  start();
  Duration passed{0};
  while (passed <= Guard::kStale) {
    EXPECT_TRUE(holds());
    EXPECT_EQ(guard_->fault(), "");
    answer(500);
    answer_rest_shipped(1);
    next_short_look();
    passed += Guard::kShortLook;
  }
  for (int look = 0; look < Guard::kToldLooks; ++look) {
    answer(500);
    answer_rest_shipped(1);
    next_short_look();
  }
  EXPECT_NE(guard_->view().fault.find("could not be read"), std::string::npos);
  EXPECT_EQ(guard_->view().fault, guard_->fault());
  EXPECT_FALSE(told_.empty());
  answer_all_shipped();
  next_short_look();
  answer_all_shipped();
  EXPECT_FALSE(holds());
}

TEST_F(GuardTest, WhoMayNotReadItDoesNotTakeItForThere) {
  start();
  answer_all_shipped();
  next_look();
  for (int look = 1; look <= Guard::kForbiddenLooks; ++look) {
    EXPECT_FALSE(holds()) << "the API server may have just started";
    answer(403);
    answer_rest_shipped(1);
    if (look < Guard::kForbiddenLooks) next_short_look();
  }
  EXPECT_NE(guard_->fault().find("may not read"), std::string::npos);
}

TEST_F(GuardTest, AnAnswerThatSaysNothingChangesNothing) {
  start();
  answer_all_shipped();
  next_look();
  answer(500);
  answer_rest_shipped(1);
  EXPECT_FALSE(holds()) << "an outage makes no policy go";
  next_short_look();
  answer(404);
  EXPECT_TRUE(holds());
  for (int i = 0; i < 3; ++i) {
    next_short_look();
    answer(500);
    answer_rest_shipped(1);
    EXPECT_TRUE(holds()) << "the one that was not read may be missing still";
  }
}

TEST_F(GuardTest, WhatWasReadLongAgoIsNotKnownAnyMore) {
  start();
  answer_all_shipped();
  next_look();
  for (Duration passed = Guard::kLook; passed <= Guard::kStale; passed += Guard::kShortLook) {
    EXPECT_FALSE(holds());
    answer(500);
    answer_rest_shipped(1);
    next_short_look();
  }
  answer(500);
  answer_rest_shipped(1);
  EXPECT_TRUE(holds());
  EXPECT_NE(guard_->fault(), "");
  next_short_look();
  answer_all_shipped();
  next_short_look();
  answer_all_shipped();
  EXPECT_FALSE(holds());
}

TEST_F(GuardTest, IfItIsNotRequiredItsFaultIsKnownAndHoldsNothing) {
  start(/*required=*/false);
  EXPECT_FALSE(holds());
  answer(404);
  EXPECT_FALSE(holds());
  EXPECT_NE(guard_->fault(), "");
}

}  // namespace
}  // namespace holdfast::observe
