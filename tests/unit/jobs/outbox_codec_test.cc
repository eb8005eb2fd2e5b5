// spec.notify and status.outbox: what is written is read again, and what does not fit is left out.
#include "operator/jobs/outbox_codec.h"

#include <gtest/gtest.h>

#include "tests/support/json_document.h"

namespace holdfast::controller {
namespace {

reconciler::Status decoded(const Json& json) {
  reconciler::Status status;
  decode_outbox(document(json), status);
  return status;
}

Json entry(int number) {
  return {{"number", number},
          {"event", "StageEnded"},
          {"time", "2026-01-02T03:04:05Z"},
          {"stage", "main"},
          {"reason", "Succeeded"},
          {"message", "done"},
          {"targets", Json::array({"chat", "tickets"})}};
}

TEST(OutboxCodec, WhatIsWrittenIsReadAgain) {
  const Json json = {{"notifications", 7}, {"outbox", Json::array({entry(3), entry(7)})}};
  const reconciler::Status status = decoded(json);
  ASSERT_EQ(status.outbox.size(), 2U);
  EXPECT_EQ(status.outbox[1].number, 7);
  EXPECT_EQ(status.outbox[1].event, reconciler::NotifyEvent::kStageEnded);
  EXPECT_EQ(status.outbox[1].targets.size(), 2U);
  Json encoded = Json::object();
  encode_outbox(status, encoded);
  EXPECT_EQ(encoded, json);
}

TEST(OutboxCodec, AJobWithoutEventsHasNoFields) {
  Json encoded = Json::object();
  encode_outbox({}, encoded);
  EXPECT_EQ(encoded, Json::object());
}

TEST(OutboxCodec, WhatIsNoEventIsLeftOut) {
  Json unknown = entry(1);
  unknown["event"] = "Started";
  Json without_time = entry(2);
  without_time.erase("time");
  Json without_targets = entry(3);
  without_targets["targets"] = Json::array();
  const Json too_high = entry(9);
  const Json json = {{"notifications", 5},
                     {"outbox", Json::array({unknown, without_time, without_targets, too_high,
                                             entry(5), entry(4), entry(4)})}};
  const reconciler::Status status = decoded(json);
  ASSERT_EQ(status.outbox.size(), 2U);
  EXPECT_EQ(status.outbox[0].number, 4);
  EXPECT_EQ(status.outbox[1].number, 5);
}

TEST(OutboxCodec, TargetsAreEachOnceAndFourAtMost) {
  const Json names = Json::array({"a", "a", "", "b", "c", "d", "e", std::string(64, 'x'), 7});
  EXPECT_EQ(decode_notify(document(names)), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_TRUE(decode_notify(document(Json("chat"))).empty());
}

}  // namespace
}  // namespace holdfast::controller
