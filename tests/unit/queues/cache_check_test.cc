// When a cache is known to have everything up to a version, on the real client and a scripted
// transport.
#include "operator/queues/cache_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"

namespace holdfast::controller {
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
    ASSERT_EQ(check.shown("ns"), 10u);
  }
  cache::Informer::Dependencies dependencies() {
    cache::Informer::Dependencies of{loop, client, random, Log()};
    of.streaming_lists = false;
    return of;
  }
  void compare() {
    check.compare("ns");
    loop.run_ready();
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
  cache::Informer informer{dependencies(), jobs(), {}};
  int compared = 0;
  CacheCheck check{client, informer, Log(), [this] { ++compared; }};
};

TEST_F(CacheCheckTest, ACacheThatHasAllOfAListHasItsVersion) {
  compare();
  EXPECT_THAT(transport.request().target, HasSubstr("/namespaces/ns/jobs?"));
  EXPECT_THAT(transport.request().target, Not(HasSubstr("resourceVersion=0")))
      << "only a consistent list proves anything";
  answer(list(20, {object("a", 9)}));
  EXPECT_EQ(check.shown("ns"), 20u);
  EXPECT_EQ(compared, 1);
  EXPECT_EQ(check.shown("other"), 10u) << "another namespace was not compared";
}

TEST_F(CacheCheckTest, AnObjectThatTheCacheLacksMustComeFirst) {
  compare();
  answer(list(20, {object("a", 9), object("b", 15), object("c", 17)}));
  EXPECT_EQ(check.shown("ns"), 10u);
  event("ADDED", object("b", 15));
  EXPECT_EQ(check.shown("ns"), 15u);
  event("ADDED", object("c", 17));
  EXPECT_EQ(check.shown("ns"), 20u);
}

TEST_F(CacheCheckTest, ANewerVersionOfAnObjectMustComeFirst) {
  compare();
  answer(list(20, {object("a", 12)}));
  EXPECT_EQ(check.shown("ns"), 10u);
  event("MODIFIED", object("a", 12));
  EXPECT_EQ(check.shown("ns"), 20u);
}

TEST_F(CacheCheckTest, AnObjectThatIsGoneMustGoFirst) {
  compare();
  answer(list(20));
  EXPECT_EQ(check.shown("ns"), 10u);
  event("DELETED", object("a", 18));
  EXPECT_EQ(check.shown("ns"), 20u);
}

TEST_F(CacheCheckTest, AnObjectThatWasMadeAgainIsAnotherOne) {
  compare();
  answer(list(20, {object("a", 9, "second")}));
  EXPECT_EQ(check.shown("ns"), 10u);
}

TEST_F(CacheCheckTest, AListThatFailsProvesNothingAndIsAskedForAgain) {
  compare();
  answer("{}", 403);
  EXPECT_EQ(check.shown("ns"), 10u);
  compare();
  answer(list(20, {object("a", 9)}));
  EXPECT_EQ(check.shown("ns"), 20u);
}

TEST_F(CacheCheckTest, PagesAreOneList) {
  compare();
  answer(R"({"metadata":{"resourceVersion":"20","continue":"next"},"items":[)" + object("a", 9) +
         "]}");
  EXPECT_EQ(check.shown("ns"), 10u);
  EXPECT_THAT(transport.request().target, HasSubstr("continue=next"));
  answer(list(20, {object("b", 15)}));
  EXPECT_EQ(check.shown("ns"), 10u);
  event("ADDED", object("b", 15));
  EXPECT_EQ(check.shown("ns"), 20u);
}

// Versions fall when a backup is restored. A list of before says nothing about what comes after.
TEST_F(CacheCheckTest, AListFromBeforeATimeTravelProvesNothing) {
  compare();
  check.time_travelled();
  answer(list(20, {object("a", 9)}));
  EXPECT_EQ(check.shown("ns"), 10u);
}

}  // namespace
}  // namespace holdfast::controller
