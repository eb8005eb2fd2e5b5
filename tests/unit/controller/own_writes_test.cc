// When a controller may decide again after its own writes.
#include "client/controller/own_writes.h"

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
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(OwnVersion, AnAnswerRaisesItAndAnOlderAnswerDoesNotLowerIt) {
  std::uint64_t version = 0;
  const auto answer = [](const char* of) {
    return JsonDocument::parse(R"({"metadata":{"name":"a","uid":"u","resourceVersion":")" +
                               std::string(of) + R"("}})")
        .value();
  };
  raise(version, answer("7"));
  EXPECT_EQ(version, 7u);
  raise(version, answer("5"));
  EXPECT_EQ(version, 7u);
  raise(version, answer("none"));
  EXPECT_EQ(version, 7u) << "an answer without a version says nothing";
}

TEST(OwnWriteState, IsTheNewestUntilTheCacheIsAsNew) {
  OwnWrite<std::string> write;
  EXPECT_EQ(write.newest("cached", 4), "cached") << "nothing was written";
  write.accepted("written", 6);
  EXPECT_EQ(write.newest("cached", 5), "written");
  EXPECT_EQ(write.newest("cached", 6), "cached");
  EXPECT_EQ(write.newest("cached", 7), "cached");
}

// A deleted object's cache has version zero: the write may not be in the cache yet.
TEST(OwnWriteState, IsTheNewestOfAnObjectThatTheCacheDoesNotHave) {
  OwnWrite<std::string> write;
  EXPECT_EQ(write.newest("none", 0), "none");
  write.accepted("created", 6);
  EXPECT_EQ(write.newest("none", 0), "created");
}

TEST(OwnWriteState, CountsNoMoreAfterTheDataWasSetBack) {
  OwnWrite<std::string> write;
  write.accepted("written", 6);
  write.forget();
  EXPECT_EQ(write.newest("cached", 1), "cached");
  EXPECT_EQ(write.version(), 0u);
}

kube::Kind jobs() {
  kube::Kind kind;
  kind.name = "jobs";
  kind.group_path = "/apis/x/v1";
  kind.plural = "jobs";
  kind.decode = kube::decode_bare;
  return kind;
}

// The cache of jobs has version 10.
class OwnWriteWaitTest : public ::testing::Test {
 protected:
  using Informer = cache::Informer;
  void SetUp() override {
    informer.start();
    loop.run_ready();
    transport.answer(200, R"({"metadata":{"resourceVersion":"10"},"items":[]})");
    loop.run_ready();
    transport.open_stream();
    loop.run_ready();
    ASSERT_FALSE(is_listing());
  }
  Duration left(cache::Informer* behind) {
    return wait.left(behind, "ns", {{"job", "ns/a"}}, loop.now());
  }
  bool is_listing() {
    loop.run_ready();
    return transport.pending() > 0;
  }
  Informer::Dependencies dependencies() {
    Informer::Dependencies of{loop, client, random, Log()};
    of.streaming_lists = false;
    return of;
  }

  ManualLoop loop;
  SeededRandom random{1};
  FakeTransport transport{loop};
  NoCredentials credentials{loop};
  kube::Client client{{loop, transport, credentials, random, Log(), {}}};
  Informer informer{dependencies(), jobs(), {}};
  OwnWriteWait wait;
};

TEST_F(OwnWriteWaitTest, NobodyWaitsForCachesThatShowTheWrite) {
  EXPECT_EQ(left(nullptr), Duration::zero());
}

TEST_F(OwnWriteWaitTest, TheWaitCountsFromTheFirstLook) {
  EXPECT_EQ(left(&informer), seconds(5));
  loop.advance(seconds(2));
  EXPECT_EQ(left(&informer), seconds(3));
  EXPECT_EQ(left(nullptr), Duration::zero()) << "the cache shows the write";
  loop.advance(seconds(2));
  EXPECT_EQ(left(&informer), seconds(5)) << "the next write has its own wait";
}

TEST_F(OwnWriteWaitTest, AWatchThatShowsNothingForFiveSecondsLagsAndTheCacheIsListedAgain) {
  left(&informer);
  loop.advance(seconds(5) - std::chrono::milliseconds(1));
  left(&informer);
  EXPECT_FALSE(is_listing());
  loop.advance(std::chrono::milliseconds(1));
  EXPECT_EQ(left(&informer), seconds(5)) << "nobody acts without the write";
  EXPECT_TRUE(is_listing());
}

class OwnWritesTest : public ::testing::Test {
 protected:
  // Ends are counted in the order in which they come.
  void begin(const std::string& name, const bool* is_shown) {
    spawn(wait(name, is_shown));
    loop.run_ready();
  }
  Task<void> wait(std::string name, const bool* is_shown) {
    auto task = writes.shown([is_shown] { return *is_shown; });
    co_await task;
    ended.push_back(name);
  }

  ManualLoop loop;
  std::vector<std::string> behind;  // keys
  std::vector<std::string> woken;
  std::vector<std::string> ended;
  OwnWrites writes{loop,
                   [this](const std::string& key) {
                     return std::find(behind.begin(), behind.end(), key) == behind.end();
                   },
                   [this](const std::string& key) { woken.push_back(key); }};
};

TEST_F(OwnWritesTest, AKeyIsWokenOnceWhenItsWritesAreShown) {
  behind = {"ns/a", "ns/b"};
  writes.wake_when_shown("ns/a");
  writes.wake_when_shown("ns/a");
  writes.wake_when_shown("ns/b");
  writes.on_progress();
  EXPECT_THAT(woken, IsEmpty());
  behind = {"ns/b"};
  writes.on_progress();
  writes.on_progress();
  EXPECT_THAT(woken, ElementsAre("ns/a"));
  behind = {};
  writes.on_progress();
  EXPECT_THAT(woken, UnorderedElementsAre("ns/a", "ns/b"));
}

TEST_F(OwnWritesTest, AWaitForWhatIsShownEndsAtOnce) {
  const bool shown = true;
  begin("a", &shown);
  EXPECT_THAT(ended, ElementsAre("a"));
  EXPECT_EQ(loop.timers(), 0u);
}

TEST_F(OwnWritesTest, AWaitEndsWhenACacheHasAdvancedFarEnough) {
  bool a = false;
  bool b = false;
  begin("a", &a);
  begin("b", &b);
  b = true;
  loop.run_ready();
  EXPECT_THAT(ended, IsEmpty()) << "nobody asks before a cache advances";
  writes.on_progress();
  EXPECT_THAT(ended, IsEmpty()) << "it goes on in a later turn of the loop";
  loop.run_ready();
  EXPECT_THAT(ended, ElementsAre("b"));
  a = true;
  writes.on_progress();
  loop.run_ready();
  EXPECT_THAT(ended, ElementsAre("b", "a"));
  EXPECT_EQ(loop.timers(), 0u);
}

TEST_F(OwnWritesTest, AWaitEndsAfterFiveSecondsAlthoughNothingIsShown) {
  const bool shown = false;
  begin("a", &shown);
  loop.advance(seconds(5) - std::chrono::milliseconds(1));
  EXPECT_THAT(ended, IsEmpty());
  loop.advance(std::chrono::milliseconds(1));
  EXPECT_THAT(ended, ElementsAre("a"));
}

TEST_F(OwnWritesTest, AStopEndsAllWaitsAndThoseThatBeginLater) {
  const bool shown = false;
  begin("a", &shown);
  writes.stop();
  loop.run_ready();
  EXPECT_THAT(ended, ElementsAre("a"));
  begin("b", &shown);
  EXPECT_THAT(ended, ElementsAre("a", "b"));
  EXPECT_EQ(loop.timers(), 0u);
}

}  // namespace
}  // namespace holdfast::controller
