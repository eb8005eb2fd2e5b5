#include "operator/events/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "api/docs_link.h"
#include "core/json.h"
#include "operator/events/lru_map.h"
#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"

namespace holdfast::events {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr const char* kEvents = "/apis/events.k8s.io/v1/namespaces/media/events";

class EventsTest : public testing::Test {
 protected:
  EventsTest() {
    transport_.date = *parse_time("2026-01-02T03:04:05Z");
    learn_time();
  }
  ~EventsTest() override {
    recorder_.stop();
    client_.shut_down();
    loop_.run_ready();
  }

  // The client's first answer gives the server's time.
  void learn_time() {
    spawn([](kube::Client& client) -> Task<void> {
      auto call = client.get("/version");
      co_await call;
    }(client_));
    loop_.run_ready();
    transport_.answer(200, "{}");
    loop_.run_ready();
    transport_.history.clear();
  }
  void record(const std::string& note = "the node is silent", const std::string& uid = "u-1",
              bool warning = true) {
    recorder_.record({.namespace_ = "media", .name = "encode", .uid = uid}, warning, "AttemptLost",
                     "StartNextAttempt", note);
  }
  void record_end(const std::string& uid = "u-1") {
    recorder_.record({.namespace_ = "media", .name = "encode", .uid = uid}, true,
                     "BackoffLimitExceeded", "Finish", "the last one");
  }
  void record_in(const std::string& namespace_, const std::string& uid = "u") {
    recorder_.record({.namespace_ = namespace_, .name = "encode", .uid = uid + "-" + namespace_},
                     true, "AttemptLost", "StartNextAttempt", "note");
  }
  // The namespaces of the requests under way, oldest first.
  std::vector<std::string> under_way() {
    loop_.run_ready();
    std::vector<std::string> namespaces;
    for (std::size_t i = 0; i < transport_.pending(); ++i) {
      const std::string& target = transport_.request(i).target;
      const std::size_t begin = target.find("/namespaces/") + 12;
      namespaces.push_back(target.substr(begin, target.find('/', begin) - begin));
    }
    return namespaces;
  }
  void answer_in(const std::string& namespace_, int status = 201) {
    const std::vector<std::string> all = under_way();
    const auto found = std::find(all.begin(), all.end(), namespace_);
    ASSERT_NE(found, all.end());
    transport_.answer_at(static_cast<std::size_t>(found - all.begin()), status, "{}");
    loop_.run_ready();
  }
  Json sent() {
    loop_.run_ready();
    EXPECT_EQ(transport_.pending(), 1U);
    return transport_.pending() == 0 ? Json() : Json::parse(transport_.request().body);
  }
  // Without the link at its end.
  std::string sent_note() {
    return std::string(api::without_reason_link(sent()["note"].get<std::string>()));
  }
  void answer(int status, const std::string& body = "{}") {
    loop_.run_ready();
    ASSERT_GE(transport_.pending(), 1U);
    transport_.answer(status, body);
    loop_.run_ready();
  }
  // One a second; how many were written.
  int record_each_second(int count) {
    int written = 0;
    for (int i = 0; i < count; ++i) {
      record("note " + std::to_string(i));
      written += drain();
      loop_.advance(seconds(1));
    }
    return written;
  }
  // Answers 201 to whatever comes; how many came.
  int drain() {
    int count = 0;
    loop_.run_ready();
    while (transport_.pending() > 0) {
      transport_.answer(201, "{}");
      loop_.run_ready();
      ++count;
    }
    return count;
  }
  std::string refusal(int code, const std::string& reason, const std::string& message = "no") {
    return Json{{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}}
        .dump();
  }

  test::ManualLoop loop_;
  test::FakeTransport transport_{loop_};
  test::NoCredentials credentials_{loop_};
  SeededRandom random_{7};
  kube::Client client_{{.loop = loop_,
                        .transport = transport_,
                        .credentials = credentials_,
                        .random = random_,
                        .log = Log(),
                        .observer = {}}};
  EventRecorder recorder_{loop_, client_, "operator-7", Log()};
};

TEST_F(EventsTest, AnEventSaysWhatHappenedToWhomAndWhoSaysSo) {
  record();
  EXPECT_EQ(transport_.pending(), 0U) << "nothing is sent from inside record()";
  const Json event = sent();
  EXPECT_EQ(transport_.request().method, "POST");
  EXPECT_EQ(transport_.request().target, kEvents);
  EXPECT_EQ(event["apiVersion"], "events.k8s.io/v1");
  EXPECT_EQ(event["kind"], "Event");
  EXPECT_EQ(event["metadata"]["namespace"], "media");
  EXPECT_THAT(event["metadata"]["name"].get<std::string>(), MatchesRegex("encode\\.[0-9a-f]{16}"));
  EXPECT_THAT(event["eventTime"].get<std::string>(),
              MatchesRegex("2026-01-02T03:04:0[45]\\.[0-9]{6}Z"));
  EXPECT_EQ(event["reportingController"], "holdfast.dev/operator");
  EXPECT_EQ(event["reportingInstance"], "operator-7");
  EXPECT_EQ(event["regarding"]["apiVersion"], "holdfast.dev/v1alpha1");
  EXPECT_EQ(event["regarding"]["kind"], "DurableJob");
  EXPECT_EQ(event["regarding"]["namespace"], "media");
  EXPECT_EQ(event["regarding"]["name"], "encode");
  EXPECT_EQ(event["regarding"]["uid"], "u-1");
  EXPECT_EQ(event["type"], "Warning");
  EXPECT_EQ(event["reason"], "AttemptLost");
  EXPECT_EQ(event["action"], "StartNextAttempt");
  EXPECT_EQ(event["note"], "the node is silent More: " + api::reason_link("AttemptLost"));
  EXPECT_FALSE(event.contains("series")) << "one is no series";
}

TEST_F(EventsTest, ARepeatIsASeriesOfTheSameObject) {
  record();
  const std::string name = sent()["metadata"]["name"];
  answer(201);
  loop_.advance(seconds(10));
  record();
  const Json patch = sent();
  EXPECT_EQ(transport_.request().method, "PATCH");
  EXPECT_EQ(transport_.request().target, kEvents + ("/" + name));
  EXPECT_EQ(test::header(transport_.request().headers, "Content-Type"),
            "application/merge-patch+json");
  EXPECT_EQ(patch.size(), 1U) << "everything else is immutable";
  EXPECT_EQ(patch["series"]["count"], 2);
  EXPECT_THAT(patch["series"]["lastObservedTime"].get<std::string>(),
              StartsWith("2026-01-02T03:04:1"));
}

TEST_F(EventsTest, RepeatsThatWaitAreOneWrite) {
  for (int i = 0; i < 5; ++i) record();
  EXPECT_EQ(sent()["series"]["count"], 5);
  record();
  record();
  answer(201);
  EXPECT_EQ(transport_.pending(), 0U) << "one second, one write";
  loop_.advance(seconds(1));
  EXPECT_EQ(sent()["series"]["count"], 7) << "what came while it was written";
  answer(200);
  EXPECT_EQ(transport_.pending(), 0U);
}

TEST_F(EventsTest, AnotherNoteReasonTypeOrObjectIsAnotherEvent) {
  record("a");
  record("b");
  record("a", "u-2");
  record("a", "u-1", /*warning=*/false);
  int written = drain();
  for (int i = 0; i < 3; ++i) {
    loop_.advance(seconds(1));
    written += drain();
  }
  EXPECT_EQ(written, 4);
  std::set<std::string> names;
  for (const auto& one : transport_.history) {
    names.insert(Json::parse(one.body)["metadata"]["name"].get<std::string>());
  }
  EXPECT_EQ(names.size(), 4U);
}

TEST_F(EventsTest, ASeriesBegunByAnotherReplicaOrBeforeARestartIsContinued) {
  record();
  const std::string name = sent()["metadata"]["name"];
  answer(409, refusal(409, "AlreadyExists"));
  EXPECT_EQ(transport_.request().method, "GET");
  EXPECT_EQ(transport_.request().target, kEvents + ("/" + name));
  answer(200, R"({"series": {"count": 7}})");
  EXPECT_EQ(sent()["series"]["count"], 8);
  answer(200);
  loop_.advance(seconds(1));
  record();
  EXPECT_EQ(sent()["series"]["count"], 9);
}

TEST_F(EventsTest, AnEventWithoutASeriesCountsAsOne) {
  record();
  answer(409, refusal(409, "AlreadyExists"));
  answer(200, "{}");
  EXPECT_EQ(sent()["series"]["count"], 2);
}

TEST_F(EventsTest, ASeriesThatTheServerHasForgottenBeginsAnew) {
  record();
  answer(201);
  loop_.advance(minutes(70));
  record();
  answer(404, refusal(404, "NotFound"));
  const Json event = sent();
  EXPECT_EQ(transport_.request().method, "POST");
  EXPECT_FALSE(event.contains("series"));
  EXPECT_THAT(event["eventTime"].get<std::string>(), StartsWith("2026-01-02T04:14:"));
}

TEST_F(EventsTest, AFailedWriteIsCountedAndNothingElse) {
  record();
  answer(403, refusal(403, "Forbidden"));
  EXPECT_EQ(recorder_.dropped(), 1U);
  EXPECT_EQ(transport_.pending(), 0U) << "not tried again";
  loop_.advance(seconds(1));
  record("another");
  EXPECT_EQ(sent_note(), "another") << "the next one is written";
}

TEST_F(EventsTest, ARepeatAfterAFailedWriteCarriesTheFullCount) {
  record();
  answer(500, refusal(500, "InternalError"));
  loop_.advance(seconds(1));
  record();
  EXPECT_EQ(sent()["series"]["count"], 2);
  EXPECT_EQ(transport_.request().method, "POST");
}

TEST_F(EventsTest, OneObjectMayCause25AtOnceAndOneEachFiveMinutes) {
  EXPECT_EQ(record_each_second(40), 25);
  EXPECT_EQ(recorder_.dropped(), 15U);
  record("another object", "u-2");
  EXPECT_EQ(drain(), 1) << "the limit is each object's own";
}

TEST_F(EventsTest, OneObjectCausesOneEventASecond) {
  for (int i = 1; i <= 5; ++i) record("note " + std::to_string(i));
  EXPECT_EQ(sent_note(), "note 1");
  answer(201);
  loop_.advance(milliseconds(900));
  record("note 6");
  EXPECT_EQ(drain(), 0);
  loop_.advance(milliseconds(100));
  EXPECT_EQ(sent_note(), "the last of 5 such Events: note 6");
  answer(201);
  EXPECT_EQ(recorder_.dropped(), 0U);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(EventsTest, ObjectsDoNotWaitForEachOther) {
  record("a", "u-1");
  record("b", "u-1");
  record("a", "u-2");
  EXPECT_EQ(drain(), 2);
  loop_.advance(milliseconds(500));
  record("c", "u-3");
  record("d", "u-3");
  EXPECT_EQ(drain(), 1);
  loop_.advance(milliseconds(500));
  EXPECT_EQ(drain(), 1) << "b";
  loop_.advance(milliseconds(500));
  EXPECT_EQ(drain(), 1) << "d";
}

TEST_F(EventsTest, AStopDropsWhatComesTooEarly) {
  record("a");
  record("b");
  EXPECT_EQ(drain(), 1);
  recorder_.stop();
  EXPECT_EQ(recorder_.dropped(), 1U);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(EventsTest, AnObjectThatMakesRoomTellsHowItEndsAndDropsTheRest) {
  record("begins");
  record("comes too early");
  record_end();
  int written = 0;
  for (int i = 0; i < 4095; ++i) {
    record_in("others", std::to_string(i));
    if (i % 500 == 0) written += drain();
  }
  EXPECT_EQ(written + drain(), 4096);
  EXPECT_EQ(recorder_.dropped(), 0U);
  record_in("another");
  EXPECT_EQ(drain(), 2) << "how it ends does not wait for its second to be over";
  EXPECT_EQ(recorder_.dropped(), 1U);
  loop_.advance(minutes(1));
  EXPECT_EQ(drain(), 0);
}

TEST_F(EventsTest, AGracefulStopWritesHowJobsEndAndNothingElse) {
  record("in flight");
  loop_.run_ready();
  record("waits to be written", "u-2");
  record_end("u-2");
  record("comes too early", "u-2");
  record_end("u-3");
  bool finished = false;
  recorder_.finish([&] { finished = true; });
  record("late", "u-4");
  record_end("u-5");
  answer(201);
  std::vector<std::string> reasons;
  while (transport_.pending() > 0) {
    EXPECT_FALSE(finished);
    reasons.push_back(sent()["reason"]);
    answer(201);
  }
  EXPECT_EQ(reasons, (std::vector<std::string>{"BackoffLimitExceeded", "BackoffLimitExceeded"}));
  EXPECT_TRUE(finished);
  EXPECT_EQ(recorder_.dropped(), 4U);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(EventsTest, AGracefulStopWaitsThreeSecondsAtMost) {
  record_end();
  record_end("u-2");
  loop_.run_ready();
  int finished = 0;
  recorder_.finish([&] { ++finished; });
  loop_.advance(seconds(3) - milliseconds(1));
  EXPECT_EQ(finished, 0);
  loop_.advance(milliseconds(1));
  EXPECT_EQ(finished, 1);
  EXPECT_EQ(recorder_.dropped(), 1U);
  answer(201);
  EXPECT_EQ(transport_.pending(), 0U);
  EXPECT_EQ(finished, 1);
}

TEST_F(EventsTest, AGracefulStopWithNothingToWriteIsOverAtOnce) {
  bool finished = false;
  recorder_.finish([&] { finished = true; });
  loop_.run_ready();
  EXPECT_TRUE(finished);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(EventsTest, HowAJobEndsIsReportedWhateverCameBefore) {
  EXPECT_EQ(record_each_second(40), 25);
  loop_.advance(seconds(1));
  record_end();
  EXPECT_EQ(drain(), 1);
}

TEST_F(EventsTest, AtMostAThousandWait) {
  for (int i = 0; i < 1500; ++i) record("note", "u-" + std::to_string(i));
  EXPECT_EQ(recorder_.dropped(), 500U);
  EXPECT_EQ(drain(), 1000);
  record("note", "u-1501");
  EXPECT_EQ(drain(), 1) << "and there is room again";
}

// ---- Namespaces beside each other.

using Namespaces = std::vector<std::string>;

TEST_F(EventsTest, ANamespaceWhoseWritesHangHoldsUpNoOther) {
  record_in("hangs", "1");
  record_in("hangs", "2");
  record_in("web", "1");
  record_in("web", "2");
  EXPECT_EQ(under_way(), (Namespaces{"hangs", "web"}));
  answer_in("web");
  EXPECT_EQ(under_way(), (Namespaces{"hangs", "web"}));
  answer_in("web");
  EXPECT_EQ(under_way(), Namespaces{"hangs"});
}

TEST_F(EventsTest, AtMostEightNamespacesHaveAWriteInFlightAndTheyTakeTurns) {
  for (int i = 0; i < 12; ++i) {
    record_in("n" + std::to_string(i), "1");
    record_in("n" + std::to_string(i), "2");
  }
  EXPECT_EQ(under_way(), (Namespaces{"n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"}));
  for (int i = 0; i < 4; ++i) answer_in("n" + std::to_string(i));
  EXPECT_EQ(under_way(), (Namespaces{"n4", "n5", "n6", "n7", "n8", "n9", "n10", "n11"}));
  answer_in("n4");
  EXPECT_EQ(under_way().back(), "n0") << "the second round";
}

TEST_F(EventsTest, AfterAWriteItsNamespaceWaitsThreeTimesAsLong) {
  record_in("hangs", "1");
  record_in("hangs", "2");
  loop_.advance(seconds(10));
  transport_.lose();
  EXPECT_EQ(under_way(), Namespaces{});
  EXPECT_EQ(recorder_.dropped(), 1U);
  record_in("web");
  EXPECT_EQ(under_way(), Namespaces{"web"});
  answer_in("web");
  record_in("web", "2");
  EXPECT_EQ(under_way(), Namespaces{"web"}) << "a quick one may go on at once";
  loop_.advance(seconds(29));
  EXPECT_EQ(under_way(), Namespaces{"web"});
  loop_.advance(seconds(1));
  EXPECT_EQ(under_way(), (Namespaces{"web", "hangs"}));
}

TEST_F(EventsTest, AnEventWaitsForAsLongAsTheServerAsks) {
  record_in("media");
  record_in("web");
  loop_.run_ready();
  ASSERT_EQ(under_way(), (Namespaces{"media", "web"}));
  transport_.answer(429, refusal(429, "TooManyRequests"), {{"Retry-After", "20"}});
  EXPECT_EQ(under_way(), Namespaces{"web"});
  answer_in("web");
  record_in("media");
  loop_.advance(seconds(19));
  EXPECT_EQ(under_way(), Namespaces{});
  record_in("web");
  EXPECT_EQ(under_way(), Namespaces{"web"}) << "it was not asked to";
  answer_in("web");
  loop_.advance(seconds(1));
  ASSERT_EQ(under_way(), Namespaces{"media"});
  EXPECT_EQ(sent()["series"]["count"], 2);
  answer_in("media");
  EXPECT_EQ(recorder_.dropped(), 0U);
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(EventsTest, AStopEndsTheWaitToo) {
  record_in("media");
  loop_.run_ready();
  transport_.answer(429, refusal(429, "TooManyRequests"), {{"Retry-After", "20"}});
  loop_.run_ready();
  recorder_.stop();
  EXPECT_EQ(recorder_.dropped(), 1U);
  EXPECT_EQ(loop_.timers(), 0U);
  loop_.advance(minutes(1));
  EXPECT_EQ(under_way(), Namespaces{});
}

TEST_F(EventsTest, AFullQueueOfOneNamespaceLeavesRoomForOthers) {
  for (int i = 0; i < 1500; ++i) record_in("noisy", std::to_string(i));
  EXPECT_EQ(recorder_.dropped(), 500U);
  for (int i = 0; i < 100; ++i) record_in("web", std::to_string(i));
  EXPECT_EQ(recorder_.dropped(), 500U);
}

TEST_F(EventsTest, OneWriteOfANamespaceIsInFlightAtATime) {
  for (int i = 0; i < 10; ++i) record("note", "u-" + std::to_string(i));
  loop_.run_ready();
  EXPECT_EQ(transport_.pending(), 1U);
}

TEST_F(EventsTest, ANoteEndsWithTheLinkOfItsReasonIfThereIsRoom) {
  recorder_.record({.namespace_ = "media", .name = "encode", .uid = "u"}, true, "AttemptLost",
                   "Retry", "the node is silent");
  const std::string link = " More: " + api::reason_link("AttemptLost");
  EXPECT_EQ(sent()["note"], "the node is silent" + link);
  answer(201);
  loop_.advance(seconds(2));
  const std::string longest(1023 - link.size(), 'x');
  recorder_.record({.namespace_ = "media", .name = "encode", .uid = "u"}, true, "AttemptLost",
                   "Retry", longest);
  EXPECT_EQ(sent()["note"], longest + link);
  answer(201);
  loop_.advance(seconds(2));
  recorder_.record({.namespace_ = "media", .name = "encode", .uid = "u"}, true, "AttemptLost",
                   "Retry", longest + "x");
  EXPECT_EQ(sent()["note"], longest + "x");
}

TEST_F(EventsTest, NotesAreCutToWhatTheApiTakesBetweenCharacters) {
  record(std::string(1023, 'x') + "\xC3\xA4" + "tail");
  EXPECT_EQ(sent_note(), std::string(1023, 'x'));
}

TEST_F(EventsTest, WhatIsNotUtf8IsReplaced) {
  record("bad \xFF byte");
  EXPECT_EQ(sent_note(), "bad \xEF\xBF\xBD byte");
}

TEST_F(EventsTest, ANoteIsOneLineWithoutControlCharacters) {
  record("a\nb\x1b[31m");
  EXPECT_EQ(sent_note(), "a b [31m");
}

TEST_F(EventsTest, LongWordsAreCutToWhatTheApiTakes) {
  EventRecorder recorder(loop_, client_, std::string(300, 'i'), Log());
  recorder.record({.namespace_ = "media", .name = "encode", .uid = "u"}, false,
                  std::string(300, 'R'), std::string(300, 'A'), "note");
  const Json event = sent();
  EXPECT_EQ(event["reportingInstance"].get<std::string>().size(), 128U);
  EXPECT_EQ(event["reason"].get<std::string>().size(), 128U);
  EXPECT_EQ(event["action"].get<std::string>().size(), 128U);
  EXPECT_EQ(event["type"], "Normal");
  answer(201);
}

TEST_F(EventsTest, StopGivesUpWhatWaitsAndDropsWhatComes) {
  record("in flight");
  loop_.run_ready();
  record("waits", "u-2");
  recorder_.stop();
  record("late");
  EXPECT_EQ(recorder_.dropped(), 2U);
  answer(201);
  EXPECT_EQ(transport_.pending(), 0U);
}

TEST_F(EventsTest, TheRecorderMayGoWhileAWriteIsInFlight) {
  {
    EventRecorder recorder(loop_, client_, "short-lived", Log());
    recorder.record({.namespace_ = "media", .name = "encode", .uid = "u"}, true, "Reason", "Action",
                    "note");
    loop_.run_ready();
  }
  answer(201);
  EXPECT_EQ(transport_.pending(), 0U);
}

TEST_F(EventsTest, WithoutTheServersTimeNothingIsWritten) {
  kube::Client fresh({.loop = loop_,
                      .transport = transport_,
                      .credentials = credentials_,
                      .random = random_,
                      .log = Log(),
                      .observer = {}});
  EventRecorder recorder(loop_, fresh, "operator-7", Log());
  recorder.record({.namespace_ = "media", .name = "encode", .uid = "u"}, true, "Reason", "Action",
                  "note");
  loop_.run_ready();
  EXPECT_EQ(transport_.pending(), 0U);
  EXPECT_EQ(recorder.dropped(), 1U);
}

TEST(LruMap, ForgetsWhatWasNotAskedForLongest) {
  LruMap<int> map(2);
  map.get("a", 1);
  map.get("b", 2);
  EXPECT_EQ(map.get("a", 0), 1);
  map.get("c", 3);
  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(map.get("a", 0), 1);
  EXPECT_EQ(map.get("b", 9), 9) << "b was the oldest";
  std::optional<LruMap<int>::Entry> evicted;
  map.get("b", 0, &evicted);
  EXPECT_FALSE(evicted);
  map.get("d", 4, &evicted);
  EXPECT_EQ(evicted, (LruMap<int>::Entry("a", 1)));
}

}  // namespace
}  // namespace holdfast::events
