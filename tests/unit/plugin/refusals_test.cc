// A verb that waits bears refusals for a minute, and a server that is away for ever.
#include "plugin/base/refusals.h"

#include <gtest/gtest.h>

namespace holdfast::plugin {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

Error answer(ErrorCode code, int status, std::string message = "no") {
  Error error = make_error(code, std::move(message));
  error.http_status = status;
  return error;
}

const Error kRevoked = answer(ErrorCode::kUnauthorized, 401);
const Error kNoRight = answer(ErrorCode::kForbidden, 403);
const Error kNoLogin =
    answer(ErrorCode::kTransient, 0, "the kubeconfig's exec plugin failed: \"x\" ended with 1");
const Error kAway = answer(ErrorCode::kTransient, 0, "no connection");
const Error kBroken = answer(ErrorCode::kTransient, 500);

TEST(PluginRefusals, WhatLastsAMinuteIsFinal) {
  for (const Error& error : {kRevoked, kNoRight, kNoLogin}) {
    Refusals refusals;
    SteadyTime now{};
    EXPECT_FALSE(refusals.note(error, now));
    EXPECT_FALSE(refusals.note(error, now + kRefusedFor - seconds(1)));
    EXPECT_TRUE(refusals.note(error, now + kRefusedFor));
  }
}

TEST(PluginRefusals, ASuccessInBetweenBeginsAnew) {
  Refusals refusals;
  SteadyTime now{};
  EXPECT_FALSE(refusals.note(kRevoked, now));
  EXPECT_FALSE(refusals.note(std::nullopt, now + seconds(30)));
  EXPECT_FALSE(refusals.note(kRevoked, now + kRefusedFor));
}

TEST(PluginRefusals, AServerThatIsAwayIsWaitedForForEver) {
  for (const Error& error : {kAway, kBroken}) {
    Refusals refusals;
    SteadyTime now{};
    EXPECT_FALSE(refusals.note(error, now));
    EXPECT_FALSE(refusals.note(error, now + hours(100)));
  }
}

TEST(PluginRefusals, ALostAnswerInBetweenChangesNothing) {
  Refusals refusals;
  SteadyTime now{};
  EXPECT_FALSE(refusals.note(kRevoked, now));
  EXPECT_FALSE(refusals.note(kAway, now + kRefusedFor));
  EXPECT_TRUE(refusals.note(kNoRight, now + kRefusedFor + seconds(1)));
}

}  // namespace
}  // namespace holdfast::plugin
