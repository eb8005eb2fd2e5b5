// What the operator does about one worker of a pool: its Leases, its revocation, its cut-off.
#include "reconciler/pool/worker.h"

#include <gtest/gtest.h>

namespace holdfast::reconciler {
namespace {

using std::chrono::seconds;

WorkerFacts serving() {
  WorkerFacts worker;
  worker.pod = PodIs::kThere;
  worker.has_lease = worker.has_work = true;
  worker.renewed = worker.is_marked = true;
  worker.duration = seconds(30);
  return worker;
}

WorkerStep step(const WorkerFacts& worker) { return decide_worker(worker).step; }

TEST(DecideWorker, APodGetsTheWorkerLeaseFirstAndThenTheWorkLease) {
  WorkerFacts worker;
  worker.pod = PodIs::kThere;
  EXPECT_EQ(step(worker), WorkerStep::kMakeLease);
  worker.has_lease = true;
  EXPECT_EQ(step(worker), WorkerStep::kMakeWork);
  worker.has_work = true;
  EXPECT_EQ(step(worker), WorkerStep::kNone);
  EXPECT_FALSE(decide_worker(worker).takes) << "it has not renewed yet";
}

TEST(DecideWorker, APodWithoutAPoolGetsNoLeases) {
  WorkerFacts worker;
  worker.pod = PodIs::kThere;
  worker.has_pool = false;
  EXPECT_EQ(step(worker), WorkerStep::kNone);
  worker.has_lease = true;
  EXPECT_EQ(step(worker), WorkerStep::kNone);
}

TEST(DecideWorker, AMarkedWorkerNeverGetsAnotherWorkLease) {
  WorkerFacts worker = serving();
  worker.has_work = false;
  EXPECT_EQ(step(worker), WorkerStep::kNone);
  EXPECT_FALSE(decide_worker(worker).takes);
}

TEST(DecideWorker, AWorkerLeaseThatWasDeletedIsMadeAgainAsRevoked) {
  WorkerFacts worker = serving();
  worker.has_lease = false;
  EXPECT_EQ(step(worker), WorkerStep::kMakeRevokedLease);
}

TEST(DecideWorker, ASilentWorkerIsCutOffAfterItsDurationAndGetsNothingSomeTimeBefore) {
  WorkerFacts worker = serving();
  worker.silent_for = seconds(19);
  EXPECT_TRUE(decide_worker(worker).takes);
  EXPECT_EQ(decide_worker(worker).wake_after, seconds(1));
  worker.silent_for = seconds(20);
  EXPECT_FALSE(decide_worker(worker).takes);
  EXPECT_EQ(decide_worker(worker).wake_after, seconds(10));
  worker.silent_for = seconds(30);
  EXPECT_EQ(step(worker), WorkerStep::kCutOff);
}

TEST(DecideWorker, AWorkerThatFellSilentWithTheOthersIsCutOffOneDurationLater) {
  WorkerFacts worker = serving();
  worker.held_back = true;
  worker.silent_for = seconds(45);
  EXPECT_EQ(step(worker), WorkerStep::kNone);
  EXPECT_EQ(decide_worker(worker).wake_after, seconds(15));
  worker.silent_for = seconds(60);
  EXPECT_EQ(step(worker), WorkerStep::kCutOff);
}

TEST(DecideWorker, AWorkerThatNeverRenewedIsNotSilent) {
  WorkerFacts worker = serving();
  worker.renewed = worker.is_marked = false;
  worker.silent_for = seconds(300);
  EXPECT_EQ(step(worker), WorkerStep::kNone);
}

TEST(DecideWorker, AWorkerWhoseEchoLagsIsRevokedAndCutOffOneDurationLater) {
  WorkerFacts worker = serving();
  worker.lags_for = seconds(29);
  EXPECT_EQ(decide_worker(worker).wake_after, seconds(1));
  worker.lags_for = seconds(30);
  EXPECT_EQ(step(worker), WorkerStep::kRevoke);
  worker.is = WorkerIs::kRevoked;
  worker.silent_for = seconds(29);
  EXPECT_EQ(step(worker), WorkerStep::kNone);
  EXPECT_EQ(decide_worker(worker).wake_after, seconds(1));
  worker.silent_for = seconds(30);
  EXPECT_EQ(step(worker), WorkerStep::kCutOff);
}

// It died with its work unread.
TEST(DecideWorker, ASilentWorkerIsNotRevokedForItsEcho) {
  WorkerFacts worker = serving();
  worker.lags_for = seconds(35);
  worker.silent_for = seconds(6);
  EXPECT_EQ(step(worker), WorkerStep::kNone);
  EXPECT_EQ(decide_worker(worker).wake_after, seconds(1));
  worker.silent_for = seconds(5);
  EXPECT_EQ(step(worker), WorkerStep::kRevoke) << "it has renewed when its echo lagged too long";
  worker.silent_for = seconds(30);
  EXPECT_EQ(step(worker), WorkerStep::kCutOff);
}

TEST(DecideWorker, AWorkerWhosePodEndedIsCutOffAtOnce) {
  for (const WorkerIs is : {WorkerIs::kLive, WorkerIs::kRevoked}) {
    WorkerFacts worker = serving();
    worker.pod = PodIs::kDead;
    worker.is = is;
    EXPECT_EQ(step(worker), WorkerStep::kCutOff);
    EXPECT_STREQ(decide_worker(worker).reason, "PodEnded");
    worker.out_of_memory = true;
    EXPECT_STREQ(decide_worker(worker).reason, kOutOfMemory);
  }
}

// It may have been deleted by force, or been failed by the pod collector.
TEST(DecideWorker, AWorkerWhosePodIsGoneIsRevokedBecauseItsProcessesMayRun) {
  for (const PodIs pod : {PodIs::kGone, PodIs::kDoubted}) {
    WorkerFacts worker = serving();
    worker.pod = pod;
    EXPECT_EQ(step(worker), WorkerStep::kRevoke);
    worker.is = WorkerIs::kRevoked;
    EXPECT_EQ(step(worker), WorkerStep::kNone);
    worker.is = WorkerIs::kLive;
    worker.renewed = false;
    EXPECT_EQ(step(worker), WorkerStep::kCutOff) << "nothing has ever begun there";
  }
}

TEST(DecideWorker, ALeaseThatSomebodyHasChangedIsRevokedWhateverItSays) {
  for (const WorkerIs is : {WorkerIs::kLive, WorkerIs::kRevoked, WorkerIs::kCutOff}) {
    WorkerFacts worker = serving();
    worker.is = is;
    worker.is_ours = false;
    EXPECT_EQ(step(worker), WorkerStep::kRevoke);
  }
}

TEST(DecideWorker, TheLeasesStayUntilThePodIsGoneAndNoRecordNamesTheWorker) {
  WorkerFacts worker = serving();
  worker.is = WorkerIs::kCutOff;
  worker.is_needed = false;
  for (const PodIs pod : {PodIs::kThere, PodIs::kDead, PodIs::kDoubted, PodIs::kUnknown}) {
    worker.pod = pod;
    EXPECT_EQ(step(worker), WorkerStep::kNone);
  }
  worker.pod = PodIs::kGone;
  worker.is_needed = true;
  EXPECT_EQ(step(worker), WorkerStep::kNone);
  worker.is_needed = false;
  EXPECT_EQ(step(worker), WorkerStep::kForget);
}

WorkerReport echo(std::int64_t seq, const std::string& work_uid = "work") {
  WorkerReport report;
  report.work_uid = work_uid;
  report.seq = seq;
  return report;
}

using Lag = EchoLag::Is;

TEST(EchoLag, AwaitsTheFirstVersionThatIsNotEchoed) {
  EchoLag lag;
  EXPECT_EQ(lag.seen("work", 3, echo(3)), Lag::kNone);
  EXPECT_EQ(lag.seen("work", 4, echo(3)), Lag::kOther);
  EXPECT_EQ(lag.seen("work", 5, echo(3)), Lag::kSame);
  EXPECT_EQ(lag.seen("work", 6, echo(4)), Lag::kOther) << "version 4 has come";
  EXPECT_EQ(lag.seen("work", 6, echo(6)), Lag::kNone);
}

TEST(EchoLag, ABusyWorkerThatIsAlwaysALittleBehindAlwaysHasAnotherLag) {
  EchoLag lag;
  for (int time = 0; time < 100; ++time) {
    EXPECT_EQ(lag.seen("work", time + 1, echo(time)), Lag::kOther);
  }
}

// Its agent ignores a work Lease that was set back.
TEST(EchoLag, AnEchoThatIsAheadLags) {
  EchoLag lag;
  lag.seen("work", 9, echo(9));
  EXPECT_EQ(lag.seen("work", 3, echo(9)), Lag::kOther);
  EXPECT_EQ(lag.seen("work", 4, echo(9)), Lag::kSame);
  EXPECT_EQ(lag.seen("work", 9, echo(9)), Lag::kNone);
}

// Whoever edits the work Lease again and again must not keep a deaf worker alive.
TEST(EchoLag, AnEchoThatIsBehindAndAheadInTurnsLagsAllTheTime) {
  EchoLag lag;
  EXPECT_EQ(lag.seen("work", 10, echo(8)), Lag::kOther);
  EXPECT_EQ(lag.seen("work", 7, echo(8)), Lag::kSame) << "10 was never echoed";
  EXPECT_EQ(lag.seen("work", 12, echo(8)), Lag::kSame);
  EXPECT_EQ(lag.seen("work", 5, echo(8)), Lag::kSame);
  EXPECT_EQ(lag.seen("work", 12, echo(10)), Lag::kOther) << "it has read 10";
  EXPECT_EQ(lag.seen("work", 6, echo(10)), Lag::kSame);
  EXPECT_EQ(lag.seen("other", 11, echo(10)), Lag::kSame);
  EXPECT_EQ(lag.seen("work", 11, echo(10)), Lag::kSame);
  EXPECT_EQ(lag.seen("work", 13, echo(12)), Lag::kOther);
}

// After a time in which it ignored its work Lease, a busy worker has to echo one version again.
TEST(EchoLag, AWorkerThatReadsAgainNeedNotEchoTheNewestVersion) {
  EchoLag lag;
  EXPECT_EQ(lag.seen("work", 3, echo(9)), Lag::kOther);
  EXPECT_EQ(lag.seen("work", 11, echo(9)), Lag::kSame);
  EXPECT_EQ(lag.seen("work", 12, echo(11)), Lag::kOther);
}

TEST(EchoLag, AnotherWorkLeaseIsNeverEchoed) {
  EchoLag lag;
  EXPECT_EQ(lag.seen("other", 1, echo(9)), Lag::kOther);
  EXPECT_EQ(lag.seen("other", 9, echo(9)), Lag::kSame);
  EchoLag gone;
  EXPECT_EQ(gone.seen("", 0, echo(9)), Lag::kOther);
  EXPECT_EQ(gone.seen("", 0, echo(9)), Lag::kSame);
}

TEST(EchoLag, AMarkIsOfALagWhoseVersionIsNotEchoedYet) {
  EchoLag before;
  before.seen("work", 6, echo(5));
  EchoLag after;
  after.seen("work", 8, echo(5));
  EXPECT_TRUE(after.is_of(before.mark()));
  after.seen("work", 8, echo(6));
  EXPECT_FALSE(after.is_of(before.mark())) << "the agent has read it since";
  after.seen("work", 8, echo(8));
  EXPECT_FALSE(after.is_of(before.mark())) << "nothing lags";
}

TEST(EchoLag, ALagThatIsTakenOverEndsWithTheEchoOfItsVersion) {
  EchoLag lag;
  lag.seen("work", 9, echo(5));
  EXPECT_FALSE(lag.take_over(5));
  EXPECT_TRUE(lag.take_over(7));
  EXPECT_TRUE(lag.take_over(8)) << "a later version of the same lag";
  EXPECT_EQ(lag.seen("work", 9, echo(6)), Lag::kSame);
  EXPECT_EQ(lag.seen("work", 9, echo(7)), Lag::kOther);
}

TEST(EchoLag, AMarkOfAnAgentThatIgnoresItsWorkIsOfThatWorkLease) {
  EchoLag before;
  before.seen("work", 3, echo(9));
  EchoLag after;
  after.seen("work", 4, echo(9));
  EXPECT_TRUE(after.is_of(before.mark()));
  after.seen("work", 12, echo(9));
  EXPECT_FALSE(after.is_of(before.mark()));
  EchoLag other;
  other.seen("other", 4, echo(9));
  EXPECT_FALSE(other.is_of(before.mark()));
  before.seen("work", 12, echo(11));
  EXPECT_FALSE(other.is_of(before.mark()));
}

}  // namespace
}  // namespace holdfast::reconciler
