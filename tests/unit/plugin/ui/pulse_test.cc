#include "plugin/ui/pulse.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class PulseTest : public testing::Test {
 protected:
  void pass(seconds time) {
    steady_ += time;
    server_ += time;
  }

  std::optional<Error> answer_;
  int asked_ = 0;
  Time server_{seconds(1'000'000)};
  SteadyTime steady_{seconds(10)};
  Pulse pulse_{[this](Duration) {
                 ++asked_;
                 return answer_;
               },
               {[this] { return server_; }, [this] { return steady_; }}};
};

TEST_F(PulseTest, AsksNowAndThenHoweverOftenItIsAsked) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(pulse_.trouble(), "");
  EXPECT_EQ(asked_, 0);
  pass(seconds(10));
  for (int i = 0; i < 10; ++i) EXPECT_EQ(pulse_.trouble(), "");
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(pulse_.heard(), server_);
}

TEST_F(PulseTest, AServerThatDoesNotAnswerIsSaidWithTheTimeOfItsLastAnswer) {
  const Time heard = pulse_.heard();
  answer_ = make_error(ErrorCode::kTransient, "timed out");
  pass(seconds(10));
  EXPECT_THAT(pulse_.trouble(), HasSubstr("does not answer: timed out"));
  pass(seconds(5));
  EXPECT_THAT(pulse_.trouble(), HasSubstr("does not answer"));
  EXPECT_EQ(pulse_.heard(), heard);
  answer_.reset();
  pass(seconds(10));
  EXPECT_EQ(pulse_.trouble(), "");
  EXPECT_EQ(pulse_.heard(), server_);
}

TEST_F(PulseTest, ARefusalIsAnAnswer) {
  answer_ = make_error(ErrorCode::kForbidden, "may not list");
  pass(seconds(10));
  EXPECT_EQ(pulse_.trouble(), "");
  // A server without its etcd, or a proxy without a server, is none.
  answer_ = make_error(ErrorCode::kTransient, "bad gateway");
  answer_->http_status = 502;
  pass(seconds(10));
  EXPECT_THAT(pulse_.trouble(), HasSubstr("bad gateway"));
  EXPECT_EQ(pulse_.known(), pulse_.trouble());
}

TEST_F(PulseTest, WhileOneScreenWaitsForTheAnswerTheOthersDoNot) {
  std::string other;
  Pulse slow{[&](Duration) {
               other = slow.trouble();  // as another screen's thread would
               pass(seconds(4));
               other += "; " + slow.trouble();
               return std::nullopt;
             },
             {[this] { return server_; }, [this] { return steady_; }}};
  pass(seconds(10));
  EXPECT_EQ(slow.trouble(), "");
  EXPECT_EQ(other, "; the API server does not answer");
}

}  // namespace
}  // namespace holdfast::plugin
