// When a cache is known to have everything of a moment, on the real client and a scripted
// transport.
#include "client/cache/cache_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"

namespace holdfast::cache {
namespace {

using holdfast::test::FakeTransport;
using holdfast::test::ManualLoop;
using holdfast::test::NoCredentials;
using ::testing::HasSubstr;
using ::testing::Not;

kube::Kind jobs() {
  kube::Kind kind;
  kind.name = "jobs";
  kind.group_path = "/apis/x/v1";
  kind.plural = "jobs";
  kind.decode = kube::decode_bare;
  return kind;
}

std::string object(const std::string& name, int version, const std::string& uid) {
  return R"({"metadata":{"name":")" + name + R"(","namespace":"ns","uid":")" + uid +
         R"(","resourceVersion":")" + std::to_string(version) + R"("}})";
}
std::string object(const std::string& name, int version) {
  return object(name, version, "u-" + name);
}
std::string list(int version, const std::vector<std::string>& items = {}) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : ",") + item;
  return R"({"metadata":{"resourceVersion":")" + std::to_string(version) + R"("},"items":[)" +
         text + "]}";
}

class CacheCheckTest : public ::testing::Test {
 protected:
  // The cache has "a" of version 9, and nobody knows of more than version 10.
  void SetUp() override {
    informer.on_progress([this] { check.on_progress(); });
    informer.start();
    loop.run_ready();
    answer(list(10, {object("a", 9)}));
    transport.open_stream();
    loop.run_ready();
    seen = moments.next();
    ASSERT_FALSE(is_shown());
  }
  bool is_shown(const std::string& ns = "ns") const { return check.shown(ns) >= seen; }
  Informer::Dependencies dependencies() {
    Informer::Dependencies of{loop, client, random, Log()};
    of.streaming_lists = false;
    return of;
  }
  void step() {
    check.compare("ns");
    loop.run_ready();
  }
  // The watch does not pass the version that the first step gives.
  void compare() {
    step();
    answer(list(19));
    ASSERT_FALSE(is_shown());
    step();
  }
  void answer(const std::string& body, int status = 200) {
    transport.answer(status, body);
    loop.run_ready();
  }
  void event(const std::string& type, const std::string& of) {
    transport.stream_lines({R"({"type":")" + type + R"(","object":)" + of + "}"});
    loop.run_ready();
  }

  ManualLoop loop;
  SeededRandom random{1};
  FakeTransport transport{loop};
  NoCredentials credentials{loop};
  kube::Client client{{loop, transport, credentials, random, Log(), {}}};
  Informer informer{dependencies(), jobs(), {}};
  int compared = 0;
  Moments moments;
  CacheCheck check{client, informer, moments, Log(), [this] { ++compared; }};
  Moment seen = 0;
};

// The write that it must be as new as was of another resource, whose versions may be far higher.
TEST_F(CacheCheckTest, ACacheThatPassesTheVersionOfALaterAnswerHasEverythingOfTheMoment) {
  step();
  EXPECT_THAT(transport.request().target, HasSubstr("/namespaces/ns/jobs?limit=1"));
  EXPECT_THAT(transport.request().target, Not(HasSubstr("resourceVersion=0")));
  answer(list(12));
  EXPECT_FALSE(is_shown());
  event("MODIFIED", object("a", 11));
  EXPECT_FALSE(is_shown());
  event("MODIFIED", object("a", 12));
  EXPECT_TRUE(is_shown());
  EXPECT_FALSE(is_shown("other"));
  EXPECT_LT(check.shown("ns"), moments.next()) << "of what comes later it says nothing";
}

TEST_F(CacheCheckTest, ACacheThatIsAsNewAsTheAnswerIsShownAtOnce) {
  step();
  answer(list(10));
  EXPECT_TRUE(is_shown());
  EXPECT_EQ(compared, 1);
}

TEST_F(CacheCheckTest, AnAnswerToAnEarlierQuestionShowsNothingOfALaterMoment) {
  step();
  seen = moments.next();
  answer(list(10));
  EXPECT_FALSE(is_shown());
  step();
  answer(list(10));
  EXPECT_TRUE(is_shown());
}

TEST_F(CacheCheckTest, NothingIsListedBeforeTheWatchHadItsTime) {
  check.begin("ns");
  loop.run_ready();
  answer(list(12));
  check.begin("ns");
  loop.run_ready();
  EXPECT_EQ(transport.pending(), 0u);
  step();
  EXPECT_EQ(transport.pending(), 1u);
}

TEST_F(CacheCheckTest, ACacheThatHasAllOfAListIsAsNewAsTheList) {
  compare();
  EXPECT_THAT(transport.request().target, HasSubstr("/namespaces/ns/jobs?"));
  EXPECT_THAT(transport.request().target, Not(HasSubstr("resourceVersion=0")))
      << "only a consistent list proves anything";
  answer(list(20, {object("a", 9)}));
  EXPECT_TRUE(is_shown());
  EXPECT_EQ(compared, 2);
  EXPECT_FALSE(is_shown("other")) << "another namespace was not compared";
}

TEST_F(CacheCheckTest, AnObjectThatTheCacheLacksMustComeFirst) {
  compare();
  answer(list(20, {object("a", 9), object("b", 15), object("c", 17)}));
  EXPECT_FALSE(is_shown());
  event("ADDED", object("b", 15));
  EXPECT_FALSE(is_shown());
  event("ADDED", object("c", 17));
  EXPECT_TRUE(is_shown());
}

TEST_F(CacheCheckTest, ANewerVersionOfAnObjectMustComeFirst) {
  compare();
  answer(list(20, {object("a", 12)}));
  EXPECT_FALSE(is_shown());
  event("MODIFIED", object("a", 12));
  EXPECT_TRUE(is_shown());
}

TEST_F(CacheCheckTest, AnObjectThatIsGoneMustGoFirst) {
  compare();
  answer(list(20));
  EXPECT_FALSE(is_shown());
  event("DELETED", object("a", 18));
  EXPECT_TRUE(is_shown());
}

TEST_F(CacheCheckTest, AnObjectThatWasMadeAgainIsAnotherOne) {
  compare();
  answer(list(20, {object("a", 9, "second")}));
  EXPECT_FALSE(is_shown());
}

TEST_F(CacheCheckTest, AListThatFailsProvesNothingAndIsAskedForAgain) {
  compare();
  answer("{}", 403);
  EXPECT_FALSE(is_shown());
  step();
  EXPECT_EQ(transport.pending(), 0u) << "not at once";
  step();
  step();
  answer(list(20, {object("a", 9)}));
  EXPECT_TRUE(is_shown());
}

TEST_F(CacheCheckTest, PagesAreOneList) {
  compare();
  answer(R"({"metadata":{"resourceVersion":"20","continue":"next"},"items":[)" + object("a", 9) +
         "]}");
  EXPECT_FALSE(is_shown());
  EXPECT_THAT(transport.request().target, HasSubstr("continue=next"));
  answer(list(20, {object("b", 15)}));
  EXPECT_FALSE(is_shown());
  event("ADDED", object("b", 15));
  EXPECT_TRUE(is_shown());
}

// Versions fall when a backup is restored. A list of before says nothing about what comes after.
TEST_F(CacheCheckTest, AListFromBeforeATimeTravelProvesNothing) {
  compare();
  check.time_travelled();
  answer(list(20, {object("a", 9)}));
  EXPECT_FALSE(is_shown());
}

}  // namespace
}  // namespace holdfast::cache
