// What is read live before a verdict, and what a read means.
#include "operator/jobs/live_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "reconciler/names.h"

namespace holdfast::jobs {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;

const SteadyTime kSteady{std::chrono::hours(5)};
constexpr std::uint64_t kShown = 100;

// A job with three open runs: the attempt of run i is i + 1.
class LiveRunTest : public testing::Test {
 protected:
  LiveRunTest() {
    job_.name = job_.job.name = "train";
    job_.namespace_ = job_.job.namespace_ = "media";
    job_.uid = job_.job.uid = memory_.uid = "job-uid";
    job_.job.status.attempt = 3;
    for (int index = 0; index < 3; ++index) {
      reconciler::Run run;
      run.index = index;
      run.attempt = index + 1;
      run.pod_name = name(index + 1);
      job_.job.status.runs.push_back(run);
    }
  }
  static std::string name(std::int64_t attempt) {
    return reconciler::pod_name("train", "job-uid", attempt);
  }
  LiveRuns chosen(const std::vector<std::int64_t>& runs) const {
    return runs_to_read(job_, runs, memory_, kShown, kSteady);
  }
  static std::vector<std::int64_t> keys(const LiveRuns& runs) {
    std::vector<std::int64_t> keys;
    for (const auto& [key, run] : runs) keys.push_back(key);
    return keys;
  }
  std::shared_ptr<codecs::CachedPod> pod(const std::string& uid, std::uint64_t version = 1) const {
    auto pod = std::make_shared<codecs::CachedPod>();
    pod->name = pod->pod.name = name(1);
    pod->uid = pod->pod.uid = uid;
    pod->owner_uid = pod->pod.owner_uid = "job-uid";
    pod->version = version;
    return pod;
  }
  bool record(LiveRun& run, const codecs::PodPtr& cached = nullptr) {
    return record_read(0, run, cached, job_, memory_);
  }

  codecs::CachedJob job_;
  JobMemory memory_;
};

TEST_F(LiveRunTest, TheRunsThatTheDecisionNamesAreRead) {
  const LiveRuns runs = chosen({0, 2});
  EXPECT_THAT(keys(runs), ElementsAre(0, 2));
  EXPECT_EQ(runs.at(2).pod_name, name(3));
  EXPECT_EQ(runs.at(2).attempt, 3);
  EXPECT_EQ(runs.at(2).lease_name, "") << "the job has no heartbeat";
}

TEST_F(LiveRunTest, WithoutARunTheLastPodIsRead) {
  job_.job.status.runs.clear();
  EXPECT_THAT(keys(chosen({})), ElementsAre(reconciler::kNoRun));
}

TEST_F(LiveRunTest, ARunWhoseReadHasJustFailedWaitsIfThereAreOthers) {
  memory_.attempts[1].look_failed = kSteady - seconds(9);
  EXPECT_THAT(keys(chosen({0, 1})), ElementsAre(1));
  EXPECT_THAT(keys(chosen({0})), ElementsAre(0)) << "it is the only one";
  memory_.attempts[1].look_failed = kSteady - seconds(10);
  EXPECT_THAT(keys(chosen({0, 1})), ElementsAre(0, 1));
}

TEST_F(LiveRunTest, AnEndedAttemptMayBeOverIfNoPodOfItCanCome) {
  EXPECT_FALSE(chosen({0}).at(0).may_be_over) << "it is open";
  job_.job.status.runs[0].next_attempt_time = Time{};
  EXPECT_TRUE(chosen({0}).at(0).may_be_over);
  memory_.attempts[1].requests.created_version = kShown + 1;
  EXPECT_FALSE(chosen({0}).at(0).may_be_over) << "the cache does not show its pod yet";
}

TEST_F(LiveRunTest, ThePodsOfOpenCreationsAreReadOnce) {
  LiveRuns runs = chosen({0});
  add_creations_to_read(job_, {1, 4}, {1}, memory_, runs);
  EXPECT_THAT(keys(runs), ElementsAre(live_key(4), 0));
  EXPECT_EQ(runs.at(live_key(4)).pod_name, name(4));
}

TEST_F(LiveRunTest, AReadSaysThatAPodNeverComesOnlyIfNoRequestCanSucceed) {
  LiveRuns runs = chosen({0, 1});
  add_creations_to_read(job_, {4, 5}, {1, 4}, memory_, runs);
  EXPECT_FALSE(runs.at(0).may_not_come);
  EXPECT_TRUE(runs.at(1).may_not_come);
  EXPECT_FALSE(runs.at(live_key(4)).may_not_come);
  EXPECT_TRUE(runs.at(live_key(5)).may_not_come);
}

TEST_F(LiveRunTest, APodIsTheAttemptsByItsJobOrByItsUid) {
  LiveRun run;
  run.attempt = 1;
  const auto bare = pod("u1");
  EXPECT_TRUE(is_of_attempt(*bare, job_, run, memory_));
  bare->owner_uid.clear();
  EXPECT_FALSE(is_of_attempt(*bare, job_, run, memory_)) << "a stranger's pod of that name";
  run.pod_uid = "u1";
  EXPECT_TRUE(is_of_attempt(*bare, job_, run, memory_)) << "as recorded";
  run.pod_uid.clear();
  memory_.attempts[1].pod_uid = "u1";
  EXPECT_FALSE(is_of_attempt(*bare, job_, run, memory_)) << "nobody knew of it before the read";
  run.pod_known = true;
  EXPECT_TRUE(is_of_attempt(*bare, job_, run, memory_));
}

TEST_F(LiveRunTest, AReadWithoutAPodIsVoidIfThePodWasCreatedMeanwhile) {
  LiveRun run;
  run.attempt = 1;
  run.may_not_come = true;
  memory_.attempts[1].pod_existed = true;
  EXPECT_FALSE(record(run));
  EXPECT_FALSE(memory_.attempts[1].requests.comes_no_more);
  run.pod_known = true;
  EXPECT_TRUE(record(run)) << "it was known before the read";
}

TEST_F(LiveRunTest, ANewerPodOfTheWatchReplacesTheReadOne) {
  LiveRun run;
  run.attempt = 1;
  run.pod = pod("u1", 7);
  record(run, pod("u1", 6));
  EXPECT_EQ(run.pod->version, 7u);
  record(run, pod("u2", 8));
  EXPECT_EQ(run.pod->uid, "u1") << "another pod";
  record(run, pod("u1", 8));
  EXPECT_EQ(run.pod->version, 8u);
}

TEST_F(LiveRunTest, ALookThatFindsNoPodOfTheJobEndsTheRequestsForIt) {
  memory_.attempts[1];
  LiveRun run;
  run.attempt = 1;
  run.may_not_come = true;
  run.pod = pod("u1");
  record(run);
  EXPECT_FALSE(memory_.attempts[1].requests.comes_no_more);
  const auto stranger = pod("u2");
  stranger->pod.owner_uid = "another-job";
  run.pod = stranger;
  record(run);
  EXPECT_TRUE(memory_.attempts[1].requests.comes_no_more);
}

TEST_F(LiveRunTest, AnAttemptIsOverOnceALookFindsNoPodThatMayRun) {
  LiveRun run;
  run.attempt = 1;
  run.may_be_over = true;
  const auto running = pod("u1");
  running->pod.phase = reconciler::PodPhase::kRunning;
  run.pod = running;
  record(run);
  EXPECT_EQ(memory_.runs[0].over, 0);
  run.pod.reset();
  record(run);
  EXPECT_EQ(memory_.runs[0].over, 1);
}

}  // namespace
}  // namespace holdfast::jobs
