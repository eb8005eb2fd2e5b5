// Which pods, Leases and jobs a replica watches, on the real informer and a scripted transport.
#include "operator/jobs/watched_shards.h"
#include "core/json.h"
#include "operator/jobs/shard_selectors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/kube/percent_encode.h"
#include "operator/codecs/at_rest.h"
#include "operator/jobs/pod_index.h"
#include "operator/observe/heartbeat_monitor.h"
#include "tests/support/fake_transport.h"
#include "tests/support/manual_loop.h"
#include "tests/support/no_credentials.h"

namespace holdfast::jobs {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Shards = std::set<int>;

class WatchedShardsTest : public ::testing::Test {
 protected:
  void make(std::vector<std::string> namespaces = {}) {
    kube::Kind kind = codecs::pod_kind();
    kind.protobuf = nullptr;
    cache::Informer::Dependencies dependencies{loop_, client_, random_, Log()};
    dependencies.streaming_lists = false;
    pods_ = std::make_unique<cache::Informer>(dependencies, kind, namespaces);
    add_pod_indexes(pods_->store());
    pods_->on_change([this](const cache::Change& change) { changes_ += change.after ? 1 : -1; });
    const auto drop = [this](const kube::Object& object) { dropped_.push_back(object.name); };
    std::vector<WatchedShards::Part> parts = {WatchedShards::part<codecs::CachedPod>(
        *pods_, by_shard_label, [](const auto& pod) { return pod.pod.shard_label; }, drop)};
    if (leases_) {
      parts.push_back(WatchedShards::part<codecs::CachedHeartbeat>(
          leases_->leases(), by_shard_label, [](const auto& lease) { return lease.shard_label; },
          drop));
    }
    shards_ = std::make_unique<WatchedShards>(
        WatchedShards::Dependencies{loop_, std::move(parts),
                                    [this](const Shards& shards, const std::string& watched) {
                                      read_.emplace_back(watched, shards);
                                    }},
        3, namespaces);
    pods_->start();
    if (leases_) leases_->leases().start();
    loop_.run_ready();
  }
  void make_with_leases() {
    cache::Informer::Dependencies dependencies{loop_, client_, random_, Log()};
    dependencies.streaming_lists = false;
    leases_ = std::make_unique<observe::HeartbeatMonitor>(
        dependencies, std::vector<std::string>{}, [](const auto&) { return true; }, nullptr);
    make();
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
  std::unique_ptr<observe::HeartbeatMonitor> leases_;  // null: none are watched
  std::unique_ptr<WatchedShards> shards_;
  std::vector<std::pair<std::string, Shards>> read_;
  std::vector<std::string> dropped_;
  int changes_ = 0;
  int version_ = 10;
};

TEST(ShardSelectors, OfPodsAndLeasesThoseOfOtherShardsAloneAreLeftOut) {
  EXPECT_EQ(by_shard_label({}, 2).labels,
            "holdfast.dev/job-uid,holdfast.dev/shard notin (0-of-2,1-of-2)");
  EXPECT_EQ(by_shard_label({1}, 2).labels,
            "holdfast.dev/job-uid,holdfast.dev/shard notin (0-of-2)");
  EXPECT_EQ(by_shard_label({0, 1}, 2).labels, "holdfast.dev/job-uid");
  EXPECT_EQ(by_shard_label({1}, 2).fields, "");
}

TEST(ShardSelectors, OfJobsThoseOfOtherShardsAloneAreLeftOut) {
  EXPECT_EQ(by_job_shard("a=b", {}, 2).fields, "a=b,status.shard!=0-of-2,status.shard!=1-of-2");
  EXPECT_EQ(by_job_shard("a=b", {1}, 2).fields, "a=b,status.shard!=0-of-2");
  EXPECT_EQ(by_job_shard("a=b", {0, 1}, 2).fields, "a=b,status.shard!=none")
      << "a server that does not know the field refuses it";
  EXPECT_EQ(by_job_shard("a=b", {1}, 2).labels, "");
}

TEST(ShardSelectors, OneThatIsTooLongForARequestIsNotSent) {
  EXPECT_EQ(by_job_shard("a=b", {7}, 1024).fields, "a=b,status.shard!=none");
  // Each of 50 replicas has five or six.
  const std::string most = by_job_shard("a=b", {7, 19, 103, 104, 255}, 256).fields;
  EXPECT_GT(most.size(), 6000u);
  EXPECT_LT(kube::encode_selector(most).size(), 7u * 1024u);
}

TEST_F(WatchedShardsTest, AReplicaWithoutShardsSeesThePodsWithoutALabel) {
  make();
  EXPECT_THAT(transport_.request().target, HasSubstr("0-of-3,1-of-3,2-of-3"));
  list({"old"});
  EXPECT_THAT(read_, IsEmpty());
  EXPECT_FALSE(shards_->read(0));
  EXPECT_FALSE(shards_->read(0, "x"));
}

TEST_F(WatchedShardsTest, AShardIsReadOnceItsPodsWereListed) {
  make();
  list({"old"});
  open();
  want({1});
  EXPECT_FALSE(shards_->read(1, "x"));
  EXPECT_THAT(transport_.request().target, HasSubstr("0-of-3,2-of-3"));
  list({"old", "one=1-of-3"});
  EXPECT_TRUE(shards_->read(1, "x"));
  EXPECT_FALSE(shards_->read(0, "x"));
  using Read = std::pair<std::string, Shards>;
  EXPECT_THAT(read_, ElementsAre(Read("", {1})));
}

TEST_F(WatchedShardsTest, OnlyTheNewShardIsReportedAndTheOthersStayRead) {
  has_one();
  want({1, 2});
  EXPECT_TRUE(shards_->read(1, "x")) << "what it knows of them is as old as a watch may be";
  EXPECT_FALSE(shards_->read(2, "x"));
  list({"one=1-of-3", "two=2-of-3"});
  using Read = std::pair<std::string, Shards>;
  EXPECT_THAT(read_, ElementsAre(Read("", {2})));
}

TEST_F(WatchedShardsTest, ShardsThatComeDuringAListAreListedAfterIt) {
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

TEST_F(WatchedShardsTest, ANamespaceWhoseListHangsHoldsUpNoOther) {
  make({"x", "y"});
  list({});
  open();
  ASSERT_EQ(transport_.pending(), 1u) << "of y";
  want({1});
  loop_.advance(WatchedShards::kPatience);
  ASSERT_EQ(transport_.pending(), 3u) << "both are listed with shard 1";
  transport_.answer_at(1, 200, R"({"metadata":{"resourceVersion":"20"},"items":[]})");
  loop_.run_ready();
  EXPECT_TRUE(shards_->read(1, "x"));
  EXPECT_FALSE(shards_->read(1, "y"));
}

TEST_F(WatchedShardsTest, NothingLeavesTheCacheWhileAListIsUnderWay) {
  has_one();
  want({2});
  loop_.advance(WatchedShards::kLinger);
  EXPECT_TRUE(shards_->read(1, "x"));
  list({"one=1-of-3", "two=2-of-3"});
  open();
  loop_.advance(WatchedShards::kLinger);
  EXPECT_FALSE(shards_->read(1, "x"));
  EXPECT_TRUE(shards_->read(2, "x"));
}

TEST_F(WatchedShardsTest, TheMinuteBeginsAgainWithEachShardThatIsLost) {
  has_one();
  want({1, 2});
  list({"one=1-of-3", "two=2-of-3"});
  open();
  want({1});
  loop_.advance(WatchedShards::kLinger - std::chrono::seconds(5));
  want({});
  loop_.advance(std::chrono::seconds(10));
  EXPECT_TRUE(shards_->read(1, "x")) << "it was lost ten seconds ago";
  loop_.advance(WatchedShards::kLinger);
  EXPECT_FALSE(shards_->read(1, "x"));
}

TEST_F(WatchedShardsTest, AShardThatWasNeverListedIsListedAlsoIfOthersLeaveMeanwhile) {
  has_one();
  want({1, 2});
  want({0, 2});
  ASSERT_EQ(transport_.pending(), 1u) << "0 is the next list's";
  loop_.advance(WatchedShards::kLinger - std::chrono::seconds(1));
  transport_.answer(403, R"({"kind":"Status","message":"no"})");
  loop_.run_ready();
  // The list ends as the minute does.
  loop_.advance(std::chrono::minutes(5));
  while (transport_.pending() > 0) list({"zero=0-of-3", "two=2-of-3"});
  EXPECT_TRUE(shards_->read(0));
  EXPECT_TRUE(shards_->read(2));
  EXPECT_FALSE(shards_->read(1));
}

TEST_F(WatchedShardsTest, AShardThatComesBackSoonNeedsNoList) {
  has_one();
  want({});
  loop_.advance(WatchedShards::kLinger - std::chrono::seconds(1));
  EXPECT_TRUE(shards_->read(1, "x"));
  want({1});
  loop_.advance(std::chrono::minutes(3));
  EXPECT_TRUE(shards_->read(1, "x"));
  EXPECT_EQ(transport_.pending(), 0u);
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(WatchedShardsTest, AMinuteLaterTheShardsPodsLeaveTheCacheWithoutADeletion) {
  has_one();
  want({});
  loop_.advance(WatchedShards::kLinger);
  EXPECT_THAT(dropped_, ElementsAre("one"));
  EXPECT_EQ(changes_, 0);
  EXPECT_EQ(pods_->store().size(), 1u) << "a pod without a label stays";
  EXPECT_FALSE(shards_->read(1, "x"));
  EXPECT_EQ(transport_.pending(), 0u);
  EXPECT_THAT(transport_.stream().target, HasSubstr("0-of-3,1-of-3,2-of-3"));
  open();
  want({1});
  EXPECT_FALSE(shards_->read(1, "x")) << "its pods may have changed meanwhile";
  list({"old", "one=1-of-3"});
  EXPECT_TRUE(shards_->read(1, "x"));
}

TEST_F(WatchedShardsTest, AShardIsReadOnceBothItsPodsAndItsLeasesWereListed) {
  make_with_leases();
  list({});
  list({});
  open(0);
  open(1);
  want({1});
  ASSERT_EQ(transport_.pending(), 2u);
  list({"one=1-of-3"});
  EXPECT_FALSE(shards_->read(1)) << "a job's Lease may be there";
  EXPECT_TRUE(shards_->lists());
  EXPECT_THAT(transport_.request().target, HasSubstr("leases"));
  EXPECT_THAT(transport_.request().target, HasSubstr("0-of-3,2-of-3"));
  list({});
  EXPECT_TRUE(shards_->read(1));
  using Read = std::pair<std::string, Shards>;
  EXPECT_THAT(read_, ElementsAre(Read("", {1})));
}

TEST_F(WatchedShardsTest, ALabelOfAnotherNumberOfShardsMeansNothing) {
  make();
  list({"other=1-of-16"});
  open();
  want({1});
  list({"other=1-of-16"});
  open();
  want({});
  loop_.advance(WatchedShards::kLinger);
  EXPECT_THAT(dropped_, IsEmpty());
}

TEST_F(WatchedShardsTest, ANamespaceThatCannotBeReadHoldsUpItsOwnJobsAlone) {
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

// The jobs alone.
class WatchedJobsTest : public ::testing::Test {
 protected:
  void make(int of_all) {
    cache::Informer::Dependencies dependencies{loop_, client_, random_, Log()};
    dependencies.streaming_lists = false;
    jobs_ = std::make_unique<cache::Informer>(dependencies, codecs::job_kind(),
                                              std::vector<std::string>());
    jobs_->on_leave([this](const kube::ObjectPtr& job, std::uint64_t) {
      left_.push_back(job->name);
      return nullptr;
    });
    jobs_->on_change([this](const cache::Change& change) {
      if (!change.after) gone_.push_back(change.before->name);
    });
    std::vector<WatchedShards::Part> parts = {
        {*jobs_,
         [](const Shards& selected, int shards) {
           return by_job_shard(codecs::kUnsettled, selected, shards);
         },
         [](const kube::ObjectPtr& job) {
           return kube::as<codecs::CachedJob>(job)->job.status.shard;
         },
         [this](const kube::ObjectPtr& job) { jobs_->report_gone(job); }}};
    shards_ = std::make_unique<WatchedShards>(
        WatchedShards::Dependencies{loop_, std::move(parts), [](const auto&, const auto&) {}},
        of_all, std::vector<std::string>());
    jobs_->start();
    loop_.run_ready();
  }
  // The list under way has these jobs, "name" or "name=shard".
  void list(const std::vector<std::string>& jobs) {
    Json items = Json::array();
    for (const std::string& job : jobs) {
      const std::size_t sign = std::min(job.find('='), job.size());
      Json status = {{"phase", "Pending"},
                     {"waiting", {{"reason", "R"}, {"message", "m"}, {"nextAction", "n"}}}};
      if (sign < job.size()) status["shard"] = job.substr(sign + 1);
      items.push_back({{"metadata",
                        {{"name", job.substr(0, sign)},
                         {"namespace", "x"},
                         {"uid", "uid-of-" + job.substr(0, sign)},
                         {"resourceVersion", "5"}}},
                       {"spec", Json::object()},
                       {"status", status}});
    }
    transport_.answer(
        200, Json{{"metadata", {{"resourceVersion", std::to_string(++version_)}}}, {"items", items}}
                 .dump());
    loop_.run_ready();
  }
  void want(const Shards& shards) {
    shards_->want(shards);
    loop_.run_ready();
  }

  holdfast::test::ManualLoop loop_;
  SeededRandom random_{1};
  holdfast::test::FakeTransport transport_{loop_};
  holdfast::test::NoCredentials credentials_{loop_};
  kube::Client client_{{loop_, transport_, credentials_, random_, Log(), {}}};
  std::unique_ptr<cache::Informer> jobs_;
  std::unique_ptr<WatchedShards> shards_;
  std::vector<std::string> left_;
  std::vector<std::string> gone_;
  int version_ = 10;
};

TEST_F(WatchedJobsTest, AReplicaWithoutShardsSeesTheJobsThatSayNoShard) {
  make(3);
  EXPECT_THAT(transport_.request().target, HasSubstr("status.settled!=true"));
  EXPECT_THAT(transport_.request().target, HasSubstr("status.shard!=2-of-3"));
  list({"new"});
  EXPECT_FALSE(shards_->read(0));
  EXPECT_EQ(jobs_->store().size(), 1u);
}

// The selector of one of so many is too long, and that of most of them is not.
TEST_F(WatchedJobsTest, AShardIsListedAlsoIfTheSelectorBecameTooLongWhenOthersWereLost) {
  make(400);
  list({});
  Shards most;
  for (int shard = 0; shard < 250; ++shard) most.insert(shard);
  want(most);
  EXPECT_THAT(transport_.request().target, HasSubstr("status.shard!=250-of-400"));
  list({"one=1-of-400", "two=2-of-400"});
  transport_.open_stream(0);
  loop_.run_ready();
  want({1});
  loop_.advance(WatchedShards::kLinger);
  EXPECT_THAT(transport_.stream().target, HasSubstr("status.shard!=none"));
  transport_.open_stream(0);
  loop_.run_ready();
  want({1, 300});
  EXPECT_TRUE(shards_->read(1));
  EXPECT_FALSE(shards_->read(300)) << "no list has had its jobs";
  ASSERT_EQ(transport_.pending(), 1u);
  list({"one=1-of-400", "other=300-of-400"});
  EXPECT_TRUE(shards_->read(300));
}

TEST_F(WatchedJobsTest, TheJobsOfAShardThatIsLostLeaveTheCacheAMinuteLaterAndAreNotLookedFor) {
  make(3);
  list({});
  want({1, 2});
  list({"new", "one=1-of-3", "two=2-of-3", "other=1-of-16"});
  transport_.open_stream(0);
  loop_.run_ready();
  EXPECT_TRUE(shards_->read(1));
  want({2});
  loop_.advance(WatchedShards::kLinger - std::chrono::seconds(1));
  EXPECT_EQ(jobs_->store().size(), 4u);
  loop_.advance(std::chrono::seconds(2));
  EXPECT_EQ(jobs_->store().size(), 3u);
  EXPECT_THAT(gone_, ElementsAre("one")) << "whoever counts it forgets it";
  EXPECT_THAT(left_, IsEmpty()) << "it is not deleted";
  EXPECT_TRUE(shards_->read(2));
  EXPECT_FALSE(shards_->read(1));
}

}  // namespace
}  // namespace holdfast::jobs
