// What the caches show of a batch/v1 Job: its shard, whether there is work, ready pods.
#include "operator/lane/lane_facts.h"

#include <gtest/gtest.h>

#include "reconciler/shards.h"

namespace holdfast::lane_controller {
namespace {

using reconciler::Phase;
using std::chrono::seconds;

CachedBatchJob batch_job(bool finished = false, bool has_queue = false) {
  CachedBatchJob job;
  job.namespace_ = "media";
  job.name = "pi";
  job.uid = "u-1";
  job.ours = true;
  job.finished = finished;
  job.has_queue = has_queue;
  return job;
}

codecs::JobPtr durable(const std::string& name, Phase phase = Phase::kRunning,
                       bool deleting = false) {
  auto job = std::make_shared<codecs::CachedJob>();
  job->namespace_ = job->job.namespace_ = "media";
  job->name = job->job.name = name;
  job->uid = job->job.uid = "d-" + name;
  job->job.status.phase = phase;
  job->job.deleting = deleting;
  return job;
}

codecs::PodPtr pod(void (*change)(reconciler::PodView& pod)) {
  auto pod = std::make_shared<codecs::CachedPod>();
  pod->pod.ready = true;
  change(pod->pod);
  return pod;
}

TEST(LaneFacts, APodCountsAsReadyUnlessItEndsOrIsDeleted) {
  EXPECT_TRUE(counts_as_ready(pod([](auto&) {})));
  EXPECT_FALSE(counts_as_ready(nullptr));
  EXPECT_FALSE(counts_as_ready(pod([](auto& pod) { pod.ready = false; })));
  EXPECT_FALSE(counts_as_ready(pod([](auto& pod) { pod.deletion = Time(seconds(1)); })));
  EXPECT_FALSE(counts_as_ready(pod([](auto& pod) { pod.phase = reconciler::PodPhase::kFailed; })));
}

TEST(LaneFacts, AJobWithoutADurableJobHasTheShardThatItsDurableJobWillHave) {
  EXPECT_EQ(lane_shard_key(batch_job(), {}), "u-1");
  EXPECT_EQ(lane_shard_key(batch_job(false, true), {}), "media") << "a queue is of its namespace";
}

TEST(LaneFacts, AJobHasTheShardOfTheFirstDurableJobByName) {
  EXPECT_EQ(lane_shard_key(batch_job(), {durable("pi-2"), durable("pi")}),
            reconciler::shard_key(durable("pi")->job));
}

TEST(LaneFacts, AJobThatKnowsItsDurableJobLeadsBackToItInItsOwnShard) {
  constexpr int kShards = 1000;
  auto made = std::make_shared<codecs::CachedJob>(*durable("pi"));
  made->job.fixed_shard = reconciler::fixed_shard_key(
      reconciler::shard_label(reconciler::shard_of("u-1", kShards), kShards), "d-pi");
  CachedBatchJob job = batch_job();
  EXPECT_FALSE(leads_back(job, *made, kShards)) << "a long Job is not in the cache";
  job.job.emplace();
  job.job->uid = job.uid;
  EXPECT_FALSE(leads_back(job, *made, kShards)) << "it has no record";
  job.job->metadata = lane::with_record(*job.job, {"pi", ""});
  EXPECT_FALSE(leads_back(job, *made, kShards)) << "it knows the name alone";
  job.job->metadata = lane::with_record(*job.job, {"pi", "another"});
  EXPECT_FALSE(leads_back(job, *made, kShards));
  job.job->metadata = lane::with_record(*job.job, {"pi", "d-pi"});
  EXPECT_TRUE(leads_back(job, *made, kShards));
  job.has_queue = true;
  EXPECT_FALSE(leads_back(job, *made, kShards)) << "another replica has the Job alone";
}

TEST(LaneFacts, AFinishedJobHasWorkWhileADurableJobOfItRuns) {
  EXPECT_FALSE(any_runs({}));
  EXPECT_TRUE(any_runs({durable("pi", Phase::kFailed), durable("pi-2")}));
  EXPECT_FALSE(any_runs({durable("pi", Phase::kFailed)}));
  EXPECT_FALSE(any_runs({durable("pi", Phase::kRunning, true)})) << "it is being deleted";
}

TEST(LaneFacts, ALongJobIsWrittenLessOften) {
  EXPECT_EQ(shortest_pause(1000), seconds(1));
  EXPECT_EQ(shortest_pause(std::size_t{1024} * 1024), seconds(8));
}

}  // namespace
}  // namespace holdfast::lane_controller
