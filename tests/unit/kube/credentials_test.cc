#include "client/kube/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/manual_loop.h"
#include "tests/unit/kube/memory_files.h"

namespace holdfast::kube {
namespace {

using std::chrono::seconds;

class TokenFileTest : public testing::Test {
 protected:
  std::string ask(Credentials& credentials) {
    std::optional<Result<std::string>> answer;
    credentials.authorization([&answer](Result<std::string> value) { answer = std::move(value); });
    EXPECT_FALSE(answer) << "answered from inside the call";
    loop_.run_ready();
    EXPECT_TRUE(answer);
    if (!answer) return "no answer";
    return answer->ok() ? **answer : std::string(to_string(answer->error().code));
  }

  test::ManualLoop loop_;
  test::MemoryFiles files_;
  TokenFileCredentials credentials_{loop_, Log(), files_, "/token"};
};

TEST_F(TokenFileTest, WhiteSpaceAroundTheTokenIsDropped) {
  files_.files["/token"] = " one\n";
  EXPECT_EQ(ask(credentials_), "Bearer one");
}

TEST_F(TokenFileTest, TheFileIsReadAnewAfterAMinuteAndNotBefore) {
  files_.files["/token"] = "one";
  EXPECT_EQ(ask(credentials_), "Bearer one");
  files_.files["/token"] = "two";
  loop_.advance(seconds(59));
  EXPECT_EQ(ask(credentials_), "Bearer one");
  EXPECT_EQ(files_.reads, 1);
  loop_.advance(seconds(1));
  EXPECT_EQ(ask(credentials_), "Bearer two");
}

TEST_F(TokenFileTest, TheTokenIsKeptWhileTheFileCannotBeRead) {
  files_.files["/token"] = "one";
  ask(credentials_);
  files_.broken["/token"] = true;
  loop_.advance(seconds(60));
  EXPECT_EQ(ask(credentials_), "Bearer one");
  files_.broken.clear();
  files_.files["/token"] = "two";
  loop_.advance(kFileRetry);
  EXPECT_EQ(ask(credentials_), "Bearer two");
}

TEST_F(TokenFileTest, AnEmptyFileIsAReadFailure) {
  files_.files["/token"] = "one";
  ask(credentials_);
  files_.files["/token"] = "\n";
  loop_.advance(seconds(60));
  EXPECT_EQ(ask(credentials_), "Bearer one");
}

TEST_F(TokenFileTest, ARefusedTokenIsReadAnewAtOnceAndKeptWhenThatFails) {
  files_.files["/token"] = "one";
  ask(credentials_);
  files_.files["/token"] = "two";
  credentials_.invalidate();
  EXPECT_EQ(ask(credentials_), "Bearer two");
  files_.broken["/token"] = true;
  credentials_.invalidate();
  EXPECT_EQ(ask(credentials_), "Bearer two");
}

TEST_F(TokenFileTest, WithoutAnyReadingYetTheErrorIsWorthAnotherTry) {
  EXPECT_EQ(ask(credentials_), to_string(ErrorCode::kTransient));
  files_.files["/token"] = "one";
  EXPECT_EQ(ask(credentials_), to_string(ErrorCode::kTransient));
  loop_.advance(kFileRetry);
  EXPECT_EQ(ask(credentials_), "Bearer one");
}

TEST_F(TokenFileTest, TheTokenOfTheKubeconfigServesUntilTheFileIsThere) {
  TokenFileCredentials credentials(loop_, Log(), files_, "/token", "first");
  EXPECT_EQ(ask(credentials), "Bearer first");
  files_.files["/token"] = "one";
  credentials.invalidate();
  EXPECT_EQ(ask(credentials), "Bearer one");
}

TEST_F(TokenFileTest, AFixedHeaderStaysWhatItIs) {
  FixedCredentials none(loop_, "");
  EXPECT_EQ(ask(none), "");
  FixedCredentials token(loop_, "Bearer x");
  token.invalidate();
  EXPECT_EQ(ask(token), "Bearer x");
}

TEST_F(TokenFileTest, TheAnswerComesAlsoWhenTheCredentialsAreGone) {
  files_.files["/token"] = "one";
  std::string answer;
  {
    TokenFileCredentials credentials(loop_, Log(), files_, "/token");
    credentials.authorization([&answer](Result<std::string> value) { answer = *value; });
  }
  loop_.run_ready();
  EXPECT_EQ(answer, "Bearer one");
}

TEST(Bearer, WhatCannotStandInAHeaderIsRefusedAndNotShown) {
  for (const char* const token :
       {"", " \n", "hunter2\r\nX-Evil: 1", "hunter2 hunter2", "hunter2\x01", "hunter2\xc3\xa4"}) {
    const Result<std::string> header = bearer(token, "the token");
    ASSERT_FALSE(header.ok()) << token;
    EXPECT_EQ(header.error().message.find("hunter2"), std::string::npos);
  }
}

}  // namespace
}  // namespace holdfast::kube
