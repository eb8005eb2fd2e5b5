// Who waits until a cache has everything of a moment, on the real client and a scripted transport.
#include "client/cache/reach.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
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
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

kube::Kind leases() {
  kube::Kind kind;
  kind.name = "leases";
  kind.group_path = "/apis/x/v1";
  kind.plural = "leases";
  kind.decode = kube::decode_bare;
  return kind;
}

// The cache of Leases has version 10.
class ReachTest : public ::testing::Test {
 protected:
  void SetUp() override {
    informer_.on_progress([this] { reach_.on_progress(); });
    informer_.start();
    loop_.run_ready();
    answer(10);
    transport_.open_stream();
    loop_.run_ready();
  }
  Informer::Dependencies dependencies() {
    Informer::Dependencies of{loop_, client_, random_, Log()};
    of.streaming_lists = false;
    return of;
  }
  // An empty list of this version.
  void answer(int version) {
    transport_.answer(
        200, R"({"metadata":{"resourceVersion":")" + std::to_string(version) + R"("},"items":[]})");
    loop_.run_ready();
  }
  void event(int version) {
    transport_.stream_lines(
        {R"({"type":"ADDED","object":{"metadata":{"name":"a","namespace":"ns","uid":"u",)"
         R"("resourceVersion":")" +
         std::to_string(version) + R"("}}})"});
    loop_.run_ready();
  }
  void wait() { loop_.advance(milliseconds(200)); }

  ManualLoop loop_;
  SeededRandom random_{1};
  FakeTransport transport_{loop_};
  NoCredentials credentials_{loop_};
  kube::Client client_{{loop_, transport_, credentials_, random_, Log(), {}}};
  Informer informer_{dependencies(), leases(), {}};
  std::vector<std::string> woken_;
  Reach reach_{loop_, client_, informer_, Log(),
               [this](const std::string& key) { woken_.push_back(key); }};
};

TEST_F(ReachTest, TheMomentOfAVersionIsWhenItWasFirstAskedFor) {
  const Moment first = reach_.since("job", 7);
  reach_.now();
  EXPECT_EQ(reach_.since("job", 7), first);
  EXPECT_GT(reach_.since("job", 8), first) << "a later version is of a later moment";
  EXPECT_GT(reach_.since("other", 7), first);
}

TEST_F(ReachTest, ACacheThatIsAsNewAsALaterAnswerHasTheMoment) {
  const Moment moment = reach_.now();
  EXPECT_FALSE(reach_.has("ns", moment, "ns/job"));
  loop_.advance(milliseconds(199));
  EXPECT_EQ(transport_.pending(), 0u) << "other events usually bring the version sooner";
  loop_.advance(milliseconds(1));
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_THAT(transport_.request().target, HasSubstr("/namespaces/ns/leases?limit=1"));
  answer(10);
  EXPECT_THAT(woken_, ElementsAre("ns/job"));
  EXPECT_TRUE(reach_.has("ns", moment, "ns/job"));
  EXPECT_FALSE(reach_.has("ns", reach_.now())) << "of what comes later it says nothing";
}

TEST_F(ReachTest, AKeyIsWokenOnceWhenTheWatchHasPassedTheAnswer) {
  reach_.has("ns", reach_.now(), "ns/job");
  wait();
  answer(12);
  event(11);
  EXPECT_THAT(woken_, IsEmpty());
  event(12);
  EXPECT_THAT(woken_, ElementsAre("ns/job"));
  event(13);
  EXPECT_THAT(woken_, ElementsAre("ns/job"));
  wait();
  EXPECT_EQ(transport_.pending(), 0u) << "nobody waits any more";
}

// A watch without events has no new version for up to a minute.
TEST_F(ReachTest, AQuietCacheIsComparedWithAList) {
  reach_.has("ns", reach_.now(), "ns/job");
  wait();
  answer(20);
  EXPECT_THAT(woken_, IsEmpty());
  wait();
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_THAT(transport_.request().target, HasSubstr("limit=5000"));
  answer(20);
  EXPECT_THAT(woken_, ElementsAre("ns/job")) << "both have no object";
}

TEST_F(ReachTest, AllKeysOfANamespaceShareARequest) {
  reach_.has("ns", reach_.now(), "ns/a");
  reach_.has("ns", reach_.now(), "ns/b");
  wait();
  EXPECT_EQ(transport_.pending(), 1u);
  answer(10);
  EXPECT_THAT(woken_, UnorderedElementsAre("ns/a", "ns/b"));
}

TEST_F(ReachTest, AKeyAlsoWaitsForAVersionThatAnAnswerReported) {
  const Moment moment = reach_.now();
  reach_.has("ns", moment, "ns/job", 11);
  wait();
  answer(10);
  EXPECT_TRUE(reach_.has("ns", moment)) << "it has everything of the moment";
  EXPECT_THAT(woken_, IsEmpty());
  event(11);
  EXPECT_THAT(woken_, ElementsAre("ns/job"));
}

TEST_F(ReachTest, NobodyWaitsForVersionsFromBeforeTheDataWasSetBack) {
  const Moment moment = reach_.since("job", 7);
  reach_.has("ns", moment, "ns/job", 99);
  reach_.time_travelled();
  EXPECT_THAT(woken_, ElementsAre("ns/job"));
  EXPECT_GT(reach_.since("job", 7), moment) << "the same version may be of another state";
}

TEST_F(ReachTest, NoRequestIsSentAfterTheStop) {
  reach_.has("ns", reach_.now(), "ns/a");
  reach_.stop();
  reach_.has("ns", reach_.now(), "ns/b");
  wait();
  EXPECT_EQ(transport_.pending(), 0u);
}

}  // namespace
}  // namespace holdfast::cache
