// spec.notify and status.outbox: what is written is read again, and what does not fit is left out.
#include "operator/codecs/outbox_codec.h"

#include <gtest/gtest.h>

#include "operator/codecs/job_codec.h"
#include "tests/support/json_document.h"

namespace holdfast::codecs {
namespace {

reconciler::Status decoded(const Json& json) { return decode_status({}, document(json)); }

// The fields of the events alone.
Json encoded(const reconciler::Status& status) {
  const Json whole = encode_status({}, status);
  Json json = Json::object();
  for (const char* name : {"notifications", "outbox"}) {
    if (whole.contains(name)) json[name] = whole[name];
  }
  return json;
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
  EXPECT_EQ(encoded(status), json);
}

TEST(OutboxCodec, AJobWithoutEventsHasNoFields) { EXPECT_EQ(encoded({}), Json::object()); }

TEST(OutboxCodec, WhatIsNoEventIsLeftOut) {
  Json without_event = entry(1);
  without_event.erase("event");
  Json without_time = entry(2);
  without_time.erase("time");
  Json without_targets = entry(3);
  without_targets["targets"] = Json::array();
  const Json too_high = entry(9);
  const Json json = {{"notifications", 5},
                     {"outbox", Json::array({without_event, without_time, without_targets, too_high,
                                             entry(5), entry(4), entry(4)})}};
  const reconciler::Status status = decoded(json);
  ASSERT_EQ(status.outbox.size(), 2U);
  EXPECT_EQ(status.outbox[0].number, 4);
  EXPECT_EQ(status.outbox[1].number, 5);
}

TEST(OutboxCodec, AnEventOfANewerVersionIsKeptAsItIs) {
  Json newer = entry(2);
  newer["event"] = "Progressed";
  newer["percent"] = 50;
  const Json json = {{"notifications", 3}, {"outbox", Json::array({entry(1), newer, entry(3)})}};
  reconciler::Status status = decoded(json);
  ASSERT_EQ(status.outbox.size(), 3U);
  EXPECT_FALSE(status.outbox[1].unknown.empty());
  EXPECT_EQ(encoded(status), json);
  status.outbox[1].targets.pop_back();
  newer["targets"] = Json::array({"chat"});
  EXPECT_EQ(encoded(status)["outbox"][1], newer);
  newer["message"] = std::string(9000, 'x');
  EXPECT_TRUE(decoded({{"notifications", 3}, {"outbox", Json::array({newer})}}).outbox.empty());
}

TEST(OutboxCodec, TargetsAreEachOnceAndFourAtMost) {
  const Json names = Json::array({"a", "a", "", "b", "c", "d", "e", std::string(64, 'x'), 7});
  EXPECT_EQ(api::target_names(document(names)), (std::vector<std::string>{"a", "b", "c", "d"}));
  EXPECT_TRUE(api::target_names(document(Json("chat"))).empty());
}

}  // namespace
}  // namespace holdfast::codecs
