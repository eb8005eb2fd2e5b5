// The facts of a decision: which pods it judges, which requests for pods may still be applied, and
// what this process's memory adds.
#include "operator/jobs/job_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "reconciler/names.h"

namespace holdfast::jobs {
namespace {

using reconciler::Phase;
using std::chrono::hours;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const SteadyTime kSteady{hours(5)};
const Time kNow{hours(400'000)};

class JobFactsTest : public testing::Test {
 protected:
  JobFactsTest() {
    job_.name = job_.job.name = "train";
    job_.namespace_ = job_.job.namespace_ = "media";
    job_.uid = job_.job.uid = memory_.uid = "job-uid";
    job_.job.status.phase = Phase::kRunning;
    job_.job.status.attempt = 1;
    run().index = 0;
    run().attempt = 1;
    run().pod_name = name(1);
    run().start_time = kNow;
    moment_ = {kSteady, kNow, /*shown=*/100, /*held=*/hours(1)};
  }
  reconciler::Run& run() { return job_.job.status.begun(); }
  static std::string name(std::int64_t attempt) {
    return reconciler::pod_name("train", "job-uid", attempt);
  }
  std::shared_ptr<codecs::CachedPod> pod(std::int64_t attempt,
                                         const std::string& uid = "pod-uid") const {
    auto pod = std::make_shared<codecs::CachedPod>();
    pod->namespace_ = "media";
    pod->name = pod->pod.name = name(attempt);
    pod->uid = pod->pod.uid = uid;
    pod->owner_uid = pod->pod.owner_uid = "job-uid";
    pod->job_name = "train";
    pod->pod.attempt = attempt;
    return pod;
  }
  std::vector<std::string> judged() const {
    const auto find = [this](const std::string& name) {
      const auto found = cached_.find(name);
      return found == cached_.end() ? nullptr : found->second;
    };
    std::vector<std::string> all;
    for (const auto& one : pods_to_judge(job_, indexed_, find, live_)) {
      all.push_back(one.name + " " + one.uid);
    }
    return all;
  }
  OpenCreations open(const std::vector<reconciler::PodView>& pods = {}) {
    return open_creations(job_, memory_, pods, moment_);
  }
  // This process has sent the intent.
  AttemptMemory& own_attempt() {
    AttemptMemory& attempt = memory_.attempts[1];
    attempt.add_intent(run().start_time);
    return attempt;
  }
  reconciler::RunObserved observe(bool is_read = false) {
    reconciler::RunObserved observed;
    observe_memory(job_, run(), is_read, memory_, observed);
    return observed;
  }

  codecs::CachedJob job_;
  JobMemory memory_;
  Moment moment_;
  std::vector<codecs::PodPtr> indexed_;
  std::map<std::string, codecs::PodPtr> cached_;
  LiveRuns live_;
};

// ---- Which pods count.

TEST_F(JobFactsTest, PodsAreJudgedInTheOrderOfTheirAttempts) {
  indexed_ = {pod(3), pod(1), pod(2)};
  EXPECT_THAT(judged(),
              ElementsAre(name(1) + " pod-uid", name(2) + " pod-uid", name(3) + " pod-uid"));
}

TEST_F(JobFactsTest, APodOfADeletedJobOfThatNameIsNotTheJobs) {
  const auto stranger = pod(1);
  stranger->owner_uid = stranger->pod.owner_uid = "earlier-job";
  indexed_ = {stranger};
  EXPECT_THAT(judged(), IsEmpty());
  stranger->pod.job_uid_label = "job-uid";
  EXPECT_THAT(judged(), ElementsAre(name(1) + " pod-uid")) << "the label names the job";
}

// It has ended and has no finalizer any more, so the index has it elsewhere.
TEST_F(JobFactsTest, TheSettledPodOfAnOpenRunIsJudgedAllTheSame) {
  cached_[name(1)] = pod(1);
  EXPECT_THAT(judged(), ElementsAre(name(1) + " pod-uid"));
  indexed_ = {cached_[name(1)]};
  EXPECT_THAT(judged(), ElementsAre(name(1) + " pod-uid")) << "once";
  indexed_.clear();
  run().next_attempt_time = kNow;
  EXPECT_THAT(judged(), IsEmpty()) << "of an ended run it needs no decision";
}

TEST_F(JobFactsTest, ALiveReadCountsAndNotTheCache) {
  indexed_ = {pod(1, "cached"), pod(2, "cached")};
  LiveRun& read = live_[0];
  read.pod_name = name(1);
  EXPECT_THAT(judged(), ElementsAre(name(2) + " cached")) << "the read found no pod";
  read.pod = pod(1, "live");
  EXPECT_THAT(judged(), ElementsAre(name(1) + " live", name(2) + " cached"));
}

TEST_F(JobFactsTest, OnlyTheJobsOwnPodsShowAHighestAttempt) {
  const auto stranger = pod(5);
  stranger->owner_uid = "earlier-job";
  learn_highest_attempt(job_, {stranger, pod(3)}, memory_);
  EXPECT_EQ(memory_.highest_attempt, 3);
}

// ---- Which requests for pods may still be applied.

TEST_F(JobFactsTest, AnAttemptThatThisProcessRecordedAndDidNotAskForHasNoRequest) {
  own_attempt();
  EXPECT_THAT(open().all, IsEmpty());
}

TEST_F(JobFactsTest, ARequestWithoutAnAnswerMayBeAppliedUntilItsLimit) {
  own_attempt().requests.add_unanswered(kSteady - seconds(20), seconds(60));
  const auto one = open();
  ASSERT_EQ(one.all.size(), 1u);
  EXPECT_EQ(one.all[0].attempt, 1);
  EXPECT_EQ(one.all[0].pod_name, name(1));
  EXPECT_EQ(one.all[0].left, seconds(40));
  EXPECT_TRUE(one.all[0].asked);
  EXPECT_FALSE(one.all[0].expected);
  moment_.steady += seconds(40);
  EXPECT_THAT(open().all, IsEmpty());
}

TEST_F(JobFactsTest, NoRequestCanMakeAPodWhileOneOfItsNameIsThere) {
  own_attempt().requests.add_unanswered(kSteady, seconds(60));
  auto there = pod(1)->pod;
  EXPECT_THAT(open({there}).all, IsEmpty());
  there.deletion = kNow;
  EXPECT_EQ(open({there}).all.size(), 1u) << "a deleted pod leaves its name free";
  there.deletion.reset();
  there.owner_uid = "earlier-job";
  EXPECT_EQ(open({there}).all.size(), 1u) << "a stranger's pod is none of the job's";
}

TEST_F(JobFactsTest, APodThatWasMadeByTheOnlyRequestWithoutAnswerIsNotMadeAgain) {
  AttemptMemory& attempt = own_attempt();
  attempt.requests.add_unanswered(kSteady, seconds(60));
  attempt.pod_existed = true;
  EXPECT_THAT(open().all, IsEmpty());
  attempt.requests.add_unanswered(kSteady + seconds(1), seconds(60));
  EXPECT_EQ(open().all.size(), 1u) << "of two, nobody knows which one made it";
}

TEST_F(JobFactsTest, AfterALiveLookNoRequestOfTheAttemptIsOpen) {
  own_attempt().requests.add_unanswered(kSteady, seconds(60));
  memory_.attempts[1].requests.comes_no_more = true;
  EXPECT_THAT(open().all, IsEmpty());
}

// A pod that was created is not gone while the cache is older than it.
TEST_F(JobFactsTest, ACreatedPodIsExpectedUntilTheCacheIsAsNew) {
  AttemptMemory& attempt = own_attempt();
  attempt.pod_existed = true;
  attempt.requests.created_version = 101;
  attempt.requests.created_at = kSteady;
  const auto unseen = open();
  ASSERT_EQ(unseen.all.size(), 1u);
  EXPECT_TRUE(unseen.all[0].expected);
  EXPECT_EQ(unseen.all[0].left, seconds(5));
  EXPECT_EQ(unseen.overdue, 0);
  moment_.shown = 101;
  EXPECT_THAT(open().all, IsEmpty());
}

TEST_F(JobFactsTest, AWatchThatDoesNotShowACreatedPodForFiveSecondsLags) {
  AttemptMemory& attempt = own_attempt();
  attempt.pod_existed = true;
  attempt.requests.created_version = 101;
  attempt.requests.created_at = kSteady;
  moment_.steady = kSteady + seconds(5);
  EXPECT_EQ(open().overdue, 1);
  moment_.steady += seconds(4);
  EXPECT_EQ(open().overdue, 0) << "it is said once each five seconds";
  moment_.steady += seconds(1);
  EXPECT_EQ(open().overdue, 1);
}

TEST_F(JobFactsTest, ACreationUnderWayIsAskedForOnceItsTurnHasCome) {
  AttemptMemory& attempt = own_attempt();
  attempt.creation.emplace();
  attempt.creation->ticket = 7;
  auto waiting = open();
  ASSERT_EQ(waiting.all.size(), 1u);
  EXPECT_TRUE(waiting.all[0].expected);
  EXPECT_FALSE(waiting.all[0].asked);
  attempt.creation->ticket.reset();
  attempt.requests.asked_at = kSteady - seconds(10);
  auto sent = open();
  ASSERT_EQ(sent.all.size(), 1u);
  EXPECT_TRUE(sent.all[0].asked);
  EXPECT_EQ(sent.all[0].left, reconciler::kCreationLimit - seconds(10));
}

// Only the status reports an intent that another process recorded.
TEST_F(JobFactsTest, TheIntentOfAnotherProcessMayHaveARequestUntilTheShardIsHeldForTheLimit) {
  moment_.held = seconds(20);
  const auto one = open();
  ASSERT_EQ(one.all.size(), 1u);
  EXPECT_EQ(one.all[0].attempt, 1);
  EXPECT_TRUE(one.all[0].asked);
  EXPECT_FALSE(one.all[0].expected);
  EXPECT_EQ(one.all[0].left, reconciler::kCreationLimit - seconds(20));
  own_attempt();
  EXPECT_THAT(open().all, IsEmpty()) << "this process has recorded it";
  memory_.attempts[1].inherited = true;
  EXPECT_EQ(open().all.size(), 1u) << "others may have acted on it since";
}

TEST_F(JobFactsTest, NoRequestIsSentAfterTheAttemptsEndIsOnRecord) {
  moment_.held = Duration::zero();
  EXPECT_EQ(may_come_for({1, name(1), std::nullopt}, moment_),
            Duration(reconciler::kCreationLimit));
  EXPECT_EQ(may_come_for({1, name(1), kNow - seconds(50)}, moment_),
            reconciler::kCreationLimit - seconds(50));
}

// ---- What the memory knows of a run.

TEST_F(JobFactsTest, AnOwnIntentIsKnownByItsStamp) {
  EXPECT_FALSE(observe().own_intent);
  own_attempt();
  EXPECT_TRUE(observe().own_intent);
  run().start_time = kNow + seconds(1);
  EXPECT_FALSE(observe().own_intent) << "another process's try for the same attempt";
}

TEST_F(JobFactsTest, AnOpenRunIsConfirmedByALiveReadAlone) {
  memory_.runs[0].over = 1;
  EXPECT_FALSE(observe(false).confirmed);
  EXPECT_TRUE(observe(true).confirmed);
}

TEST_F(JobFactsTest, AnEndedAttemptIsConfirmedByAnEarlierLookThatShowedNoPod) {
  run().next_attempt_time = kNow;
  EXPECT_FALSE(observe().confirmed);
  memory_.runs[0].over = 1;
  EXPECT_TRUE(observe().confirmed);
  run().attempt = 2;
  EXPECT_FALSE(observe().confirmed) << "the look was at an earlier attempt";
}

TEST_F(JobFactsTest, TimeWithoutAPodCountsFromTheFirstLook) {
  AttemptMemory& attempt = own_attempt();
  reconciler::RunObserved observed;
  observe_no_pod(run(), attempt, moment_, observed);
  EXPECT_EQ(observed.no_pod_for, Duration::zero());
  moment_.steady += seconds(7);
  observe_no_pod(run(), attempt, moment_, observed);
  EXPECT_EQ(observed.no_pod_for, seconds(7));
}

TEST_F(JobFactsTest, AnInheritedAttemptsTimeWithoutAPodCountsFromItsIntent) {
  run().start_time = kNow - seconds(30);
  reconciler::RunObserved observed;
  observed.took_over = true;
  observe_no_pod(run(), own_attempt(), moment_, observed);
  EXPECT_EQ(observed.no_pod_for, seconds(30));
}

TEST_F(JobFactsTest, ARefusedLeaseWriteSaysWhenItIsTriedAgain) {
  EXPECT_FALSE(lease_refusal(memory_, 0, moment_));
  memory_.runs[0].lease_refusal = "no";
  memory_.runs[0].lease_retry_at = kSteady + seconds(3);
  EXPECT_EQ(lease_refusal(memory_, 0, moment_)->retry_in, seconds(3));
  moment_.steady += seconds(9);
  EXPECT_EQ(lease_refusal(memory_, 0, moment_)->retry_in, Duration::zero());
}

// ---- Leases.

TEST_F(JobFactsTest, AHolderIsAPodOfThatNameAndUid) {
  const codecs::PodPtr holder = pod(1, "u1");
  EXPECT_EQ(pod_name_of(name(1) + "/u1"), name(1));
  EXPECT_EQ(granted_pod(name(1) + "/u1", holder), holder);
  EXPECT_EQ(granted_pod(name(1) + "/u0", holder), nullptr) << "a later pod of that name";
  EXPECT_EQ(granted_pod(name(1) + "/u1", nullptr), nullptr);
}

TEST_F(JobFactsTest, TheLeaseOfAJobWithOneRunIsOverOnceNoStageUsesIt) {
  codecs::CachedHeartbeat lease;
  lease.name = reconciler::heartbeat_lease_name("job-uid");
  lease.owner_uid = "job-uid";
  EXPECT_EQ(run_of_lease_over(job_, lease), reconciler::kSingleLease);
  job_.job.spec.heartbeat.emplace();
  EXPECT_EQ(run_of_lease_over(job_, lease), std::nullopt) << "it is in use";
  job_.job.spec.heartbeat.reset();
  job_.job.status.phase = Phase::kSucceeded;
  EXPECT_EQ(run_of_lease_over(job_, lease), std::nullopt) << "the last stage's stays";
  job_.job.status.phase = Phase::kRunning;
  lease.owner_uid = "earlier-job";
  EXPECT_EQ(run_of_lease_over(job_, lease), std::nullopt);
}

}  // namespace
}  // namespace holdfast::jobs
