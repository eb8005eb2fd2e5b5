// What a refused write means, and which refusal makes an Event.
#include "reconciler/refusals.h"

#include <gtest/gtest.h>

namespace holdfast::reconciler {
namespace {

using enum ErrorCode;
using Kind = CreationRefusal::Kind;

TEST(Refusals, OnlyWhatAHumanCanFixMakesALeaseRefused) {
  for (const ErrorCode code : {kForbidden, kInvalid}) EXPECT_TRUE(lease_is_refused(code));
  for (const ErrorCode code :
       {kConflict, kGone, kThrottled, kTransient, kUnauthorized, kNotFound}) {
    EXPECT_FALSE(lease_is_refused(code)) << to_string(code);
    EXPECT_FALSE(lease_event(make_error(code, "no"))) << to_string(code);
  }
}

TEST(Refusals, ARefusedLeaseHasAnEventThatAlwaysSaysSomething) {
  EXPECT_EQ(lease_event(make_error(kForbidden, "quota"))->reason, "LeaseRefused");
  EXPECT_EQ(lease_event(make_error(kForbidden, "quota"))->note, "quota");
  EXPECT_NE(lease_event(make_error(kForbidden, ""))->note, "");
}

TEST(Refusals, ARefusedCreationHasAnEventUnlessTheJobFailsOrNobodyRefusedIt) {
  const Error error = make_error(kForbidden, "quota");
  for (const Kind kind : {Kind::kRefused, Kind::kNameTaken, Kind::kTemplateRefused}) {
    EXPECT_EQ(creation_event(kind, error)->reason, "PodRejected");
    EXPECT_EQ(creation_event(kind, error)->note, "quota");
    EXPECT_FALSE(creation_event(kind, make_error(kCancelled, "handed over")));
  }
  EXPECT_FALSE(creation_event(Kind::kTemplateInvalid, error));
}

TEST(Refusals, ADeletionHasAnEventOnceTheJobGoesOnWithoutIt) {
  Error kept = make_error(kForbidden, "kept");
  kept.http_status = 403;
  EXPECT_EQ(deletion_event(kept, false)->reason, "PodDeletionRefused");
  EXPECT_FALSE(deletion_event(make_error(kTransient, "500"), false)) << "it is tried again first";
  EXPECT_EQ(deletion_event(make_error(kTransient, "500"), true)->note, "500");
}

TEST(Refusals, ADeletionIsRefusedByEveryAnswerThatBlamesTheRequestButFour) {
  Error error;
  for (const int status : {400, 402, 403, 405, 408, 410, 413, 418, 422, 451}) {
    error.http_status = status;
    EXPECT_TRUE(deletion_is_refused(error)) << status;
  }
  for (const int status : {0, 401, 404, 409, 429, 500, 502, 503, 504}) {
    error.http_status = status;
    EXPECT_FALSE(deletion_is_refused(error)) << status;
  }
}

TEST(Refusals, ACreationMayStillSucceedUnlessTheApiServerHasAnsweredIt) {
  Error error = make_error(ErrorCode::kTransient, "broke");
  EXPECT_FALSE(may_still_create(error)) << "it was not sent";
  error.maybe_applied = true;
  EXPECT_TRUE(may_still_create(error));
  for (const int status : {408, 502, 503, 504, 500}) {
    error.http_status = status;
    EXPECT_TRUE(may_still_create(error)) << status;
  }
  error.reason = "InternalError";
  EXPECT_FALSE(may_still_create(error)) << "a webhook failed";
  for (const int status : {400, 403, 409, 422, 429}) {
    error = make_error(ErrorCode::kForbidden, "no");
    error.http_status = status;
    EXPECT_FALSE(may_still_create(error)) << status;
  }
  EXPECT_TRUE(may_still_create(make_error(ErrorCode::kCancelled, "given up")));
}

TEST(Refusals, ARefusedWriteIsTriedAgainAfterFiveToThirtySeconds) {
  EXPECT_EQ(retry_delay(0), seconds(5));
  EXPECT_EQ(retry_delay(1), seconds(10));
  EXPECT_EQ(retry_delay(2), seconds(20));
  EXPECT_EQ(retry_delay(3), seconds(30));
  EXPECT_EQ(retry_delay(1000), seconds(30));
}

}  // namespace
}  // namespace holdfast::reconciler
