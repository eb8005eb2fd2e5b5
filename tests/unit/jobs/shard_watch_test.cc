// Which pods a replica watches, on the real informer and a scripted transport.
#include "client/kube/packed.h"
#include "core/json.h"
#include "operator/jobs/pod_shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/packed.h"
#include "core/json.h"
#include "operator/codecs/at_rest.h"
#include "operator/jobs/pod_index.h"
#include "operator/jobs/watched_shards.h"
#include "reconciler/shards.h"
#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"

namespace holdfast::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Shards = std::set<int>;

class ShardWatchTest : public ::testing::Test {
 protected:
  void make(std::vector<std::string> namespaces = {}) {
    kube::Kind kind = codecs::pod_kind();
    kind.protobuf = nullptr;
    cache::Informer::Dependencies dependencies{loop_, client_, random_, Log()};
    dependencies.streaming_lists = false;
    pods_ = std::make_unique<cache::Informer>(dependencies, kind, namespaces);
    add_pod_indexes(pods_->store());
    pods_->on_change([this](const cache::Change& change) { changes_ += change.after ? 1 : -1; });
    shards_ = std::make_unique<ShardWatch>(
        ShardWatch::Dependencies{
            loop_, *pods_, [](const Shards& selected) { return pod_selector(selected, 3); },
            [](const kube::ObjectPtr& object) {
              const auto pod = kube::as<codecs::CachedPod>(kube::whole(object));
              return reconciler::labelled_shard(pod->pod.shard_label, 3);
            },
            [this](const Shards& shards, const std::string& watched) {
              read_.emplace_back(watched, shards);
            },
            [this](const kube::ObjectPtr& pod) { dropped_.push_back(pod->name); }},
        3, namespaces);
    pods_->start();
    loop_.run_ready();
  }
  // The request under way is answered with these pods, "name" or "name=label".
  void list(const std::vector<std::string>& pods) {
    Json items = Json::array();
    for (const std::string& pod : pods) {
      const std::size_t sign = std::min(pod.find('='), pod.size());
      Json labels = {{"holdfast.dev/job-uid", "uid-of-job"}};
      if (sign < pod.size()) labels["holdfast.dev/shard"] = pod.substr(sign + 1);
      items.push_back({{"metadata",
                        {{"name", pod.substr(0, sign)},
                         {"namespace", "x"},
                         {"uid", "uid-of-" + pod.substr(0, sign)},
                         {"resourceVersion", "5"},
                         {"labels", labels}}}});
    }
    const Json body = {{"metadata", {{"resourceVersion", std::to_string(++version_)}}},
                       {"items", items}};
    transport_.answer(200, body.dump());
    loop_.run_ready();
  }
  void open(std::size_t index = 0) {
    transport_.open_stream(index);
    loop_.run_ready();
  }
  void want(const Shards& shards) {
    shards_->want(shards);
    loop_.run_ready();
  }
  // A replica that has shard 1.
  void has_one() {
    make();
    list({"old"});
    open();
    want({1});
    list({"old", "one=1-of-3"});
    open();
    ASSERT_TRUE(shards_->read(1));
    read_.clear();
    changes_ = 0;
  }

  holdfast::test::ManualLoop loop_;
  SeededRandom random_{1};
  holdfast::test::FakeTransport transport_{loop_};
  holdfast::test::NoCredentials credentials_{loop_};
  kube::Client client_{{loop_, transport_, credentials_, random_, Log(), {}}};
  std::unique_ptr<cache::Informer> pods_;
  std::unique_ptr<ShardWatch> shards_;
  std::vector<std::pair<std::string, Shards>> read_;
  std::vector<std::string> dropped_;
  int changes_ = 0;
  int version_ = 10;
};

TEST(PodSelector, LeavesOutThePodsOfOtherShardsOnly) {
  EXPECT_EQ(pod_selector({}, 2).labels,
            "holdfast.dev/job-uid,holdfast.dev/shard notin (0-of-2,1-of-2)");
  EXPECT_EQ(pod_selector({1}, 2).labels, "holdfast.dev/job-uid,holdfast.dev/shard notin (0-of-2)");
  EXPECT_EQ(pod_selector({0, 1}, 2).labels, "holdfast.dev/job-uid");
  EXPECT_EQ(pod_selector({1}, 2).fields, "");
}

TEST(JobSelector, LeavesOutTheJobsOfOtherShardsAndTheSettledOnesOnly) {
  EXPECT_EQ(job_selector({}, 2).fields,
            "status.settled!=true,status.shard!=0-of-2,status.shard!=1-of-2");
  EXPECT_EQ(job_selector({1}, 2).fields, "status.settled!=true,status.shard!=0-of-2");
  EXPECT_EQ(job_selector({0, 1}, 2).fields, "status.settled!=true");
  EXPECT_EQ(job_selector({1}, 2).labels, "");
}

TEST(JobSelector, OneThatIsTooLongForARequestIsNotSent) {
  EXPECT_GT(job_selector({7}, 32).fields.size(), 500u);
  EXPECT_EQ(job_selector({7}, 1024).fields, "status.settled!=true");
}

TEST_F(ShardWatchTest, AReplicaWithoutShardsSeesThePodsWithoutALabel) {
  make();
  EXPECT_THAT(transport_.request().target, HasSubstr("0-of-3%2C1-of-3%2C2-of-3"));
  list({"old"});
  EXPECT_THAT(read_, IsEmpty());
  EXPECT_FALSE(shards_->read(0));
  EXPECT_FALSE(shards_->read(0, "x"));
}

TEST_F(ShardWatchTest, AShardIsReadOnceItsPodsWereListed) {
  make();
  list({"old"});
  open();
  want({1});
  EXPECT_FALSE(shards_->read(1, "x"));
  EXPECT_THAT(transport_.request().target, HasSubstr("0-of-3%2C2-of-3"));
  list({"old", "one=1-of-3"});
  EXPECT_TRUE(shards_->read(1, "x"));
  EXPECT_FALSE(shards_->read(0, "x"));
  using Read = std::pair<std::string, Shards>;
  EXPECT_THAT(read_, ElementsAre(Read("", {1})));
}

TEST_F(ShardWatchTest, OnlyTheNewShardIsReportedAndTheOthersStayRead) {
  has_one();
  want({1, 2});
  EXPECT_TRUE(shards_->read(1, "x")) << "what it knows of them is as old as a watch may be";
  EXPECT_FALSE(shards_->read(2, "x"));
  list({"one=1-of-3", "two=2-of-3"});
  using Read = std::pair<std::string, Shards>;
  EXPECT_THAT(read_, ElementsAre(Read("", {2})));
}

TEST_F(ShardWatchTest, ShardsThatComeDuringAListAreListedAfterIt) {
  has_one();
  want({1, 2});
  want({0, 1, 2});
  ASSERT_EQ(transport_.pending(), 1u) << "the list under way does not begin again";
  list({"two=2-of-3"});
  EXPECT_TRUE(shards_->read(2, "x"));
  EXPECT_FALSE(shards_->read(0, "x"));
  ASSERT_EQ(transport_.pending(), 1u);
  list({"two=2-of-3", "zero=0-of-3"});
  EXPECT_TRUE(shards_->read(0, "x"));
}

TEST_F(ShardWatchTest, ANamespaceWhoseListHangsHoldsUpNoOther) {
  make({"x", "y"});
  list({});
  open();
  ASSERT_EQ(transport_.pending(), 1u) << "of y";
  want({1});
  loop_.advance(ShardWatch::kPatience);
  ASSERT_EQ(transport_.pending(), 3u) << "both are listed with shard 1";
  transport_.answer_at(1, 200, R"({"metadata":{"resourceVersion":"20"},"items":[]})");
  loop_.run_ready();
  EXPECT_TRUE(shards_->read(1, "x"));
  EXPECT_FALSE(shards_->read(1, "y"));
}

TEST_F(ShardWatchTest, NothingLeavesTheCacheWhileAListIsUnderWay) {
  has_one();
  want({2});
  loop_.advance(ShardWatch::kLinger);
  EXPECT_TRUE(shards_->read(1, "x"));
  list({"one=1-of-3", "two=2-of-3"});
  open();
  loop_.advance(ShardWatch::kLinger);
  EXPECT_FALSE(shards_->read(1, "x"));
  EXPECT_TRUE(shards_->read(2, "x"));
}

TEST_F(ShardWatchTest, TheMinuteBeginsAgainWithEachShardThatIsLost) {
  has_one();
  want({1, 2});
  list({"one=1-of-3", "two=2-of-3"});
  open();
  want({1});
  loop_.advance(ShardWatch::kLinger - std::chrono::seconds(5));
  want({});
  loop_.advance(std::chrono::seconds(10));
  EXPECT_TRUE(shards_->read(1, "x")) << "it was lost ten seconds ago";
  loop_.advance(ShardWatch::kLinger);
  EXPECT_FALSE(shards_->read(1, "x"));
}

TEST_F(ShardWatchTest, AShardThatComesBackSoonNeedsNoList) {
  has_one();
  want({});
  loop_.advance(ShardWatch::kLinger - std::chrono::seconds(1));
  EXPECT_TRUE(shards_->read(1, "x"));
  want({1});
  loop_.advance(std::chrono::minutes(3));
  EXPECT_TRUE(shards_->read(1, "x"));
  EXPECT_EQ(transport_.pending(), 0u);
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(ShardWatchTest, AMinuteLaterTheShardsPodsLeaveTheCacheWithoutADeletion) {
  has_one();
  want({});
  loop_.advance(ShardWatch::kLinger);
  EXPECT_THAT(dropped_, ElementsAre("one"));
  EXPECT_EQ(changes_, 0);
  EXPECT_EQ(pods_->store().size(), 1u) << "a pod without a label stays";
  EXPECT_FALSE(shards_->read(1, "x"));
  EXPECT_EQ(transport_.pending(), 0u);
  EXPECT_THAT(transport_.stream().target, HasSubstr("0-of-3%2C1-of-3%2C2-of-3"));
  open();
  want({1});
  EXPECT_FALSE(shards_->read(1, "x")) << "its pods may have changed meanwhile";
  list({"old", "one=1-of-3"});
  EXPECT_TRUE(shards_->read(1, "x"));
}

TEST_F(ShardWatchTest, ALabelOfAnotherNumberOfShardsMeansNothing) {
  make();
  list({"other=1-of-16"});
  open();
  want({1});
  list({"other=1-of-16"});
  open();
  want({});
  loop_.advance(ShardWatch::kLinger);
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(ShardWatchTest, ANamespaceThatCannotBeReadHoldsUpItsOwnJobsAlone) {
  make({"x", "y"});
  list({});
  list({});
  open(0);
  open(1);
  want({1});
  list({"one=1-of-3"});
  EXPECT_TRUE(shards_->read(1, "x"));
  EXPECT_FALSE(shards_->read(1, "y"));
  EXPECT_FALSE(shards_->read(1)) << "its list may still come";
  transport_.answer(403, R"({"kind":"Status","message":"no"})");
  loop_.run_ready();
  EXPECT_FALSE(shards_->read(1, "y"));
  EXPECT_TRUE(shards_->read(1)) << "the record of silences need not wait for it";
}

// Jobs and pods together, each with its own list.
class WatchedShardsTest : public ::testing::Test {
 protected:
  WatchedShardsTest() {
    cache::Informer::Dependencies dependencies{loop_, client_, random_, Log()};
    dependencies.streaming_lists = false;
    kube::Kind pods = codecs::pod_kind();
    pods.protobuf = nullptr;
    jobs_ = std::make_unique<cache::Informer>(dependencies, codecs::job_kind(),
                                              std::vector<std::string>());
    pods_ = std::make_unique<cache::Informer>(dependencies, pods, std::vector<std::string>());
    shards_ = std::make_unique<WatchedShards>(
        WatchedShards::Dependencies{loop_, *jobs_, *pods_,
                                    [this](const Shards& shards, const std::string&) {
                                      read_.insert(read_.end(), shards.begin(), shards.end());
                                    },
                                    [](const codecs::CachedPod&) {}},
        2, std::vector<std::string>());
  }
  void answer(int version) {
    transport_.answer(
        200, R"({"metadata":{"resourceVersion":")" + std::to_string(version) + R"("},"items":[]})");
    loop_.run_ready();
  }

  holdfast::test::ManualLoop loop_;
  SeededRandom random_{1};
  holdfast::test::FakeTransport transport_{loop_};
  holdfast::test::NoCredentials credentials_{loop_};
  kube::Client client_{{loop_, transport_, credentials_, random_, Log(), {}}};
  std::unique_ptr<cache::Informer> jobs_;
  std::unique_ptr<cache::Informer> pods_;
  std::unique_ptr<WatchedShards> shards_;
  std::vector<int> read_;
};

TEST_F(WatchedShardsTest, AShardIsReadOnceItsJobsAndItsPodsWereListed) {
  shards_->want({1});
  pods_->start();
  loop_.run_ready();
  answer(10);
  EXPECT_THAT(read_, IsEmpty());
  EXPECT_FALSE(shards_->read(1, "x"));
  jobs_->start();
  loop_.run_ready();
  EXPECT_THAT(transport_.request().target, HasSubstr("status.shard%21%3D0-of-2"));
  answer(11);
  EXPECT_THAT(read_, ElementsAre(1)) << "once";
  EXPECT_TRUE(shards_->read(1, "x"));
  EXPECT_FALSE(shards_->read(0, "x"));
}

}  // namespace
}  // namespace holdfast::jobs
