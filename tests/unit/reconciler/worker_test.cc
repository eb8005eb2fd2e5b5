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

TEST(DecideWorker, AWorkerWhosePodEndedIsCutOffAtOnce) {
  for (const WorkerIs is : {WorkerIs::kLive, WorkerIs::kRevoked}) {
    WorkerFacts worker = serving();
    worker.pod = PodIs::kDead;
    worker.is = is;
    EXPECT_EQ(step(worker), WorkerStep::kCutOff);
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

LiveTime at(int time, int epoch = 0) { return {seconds(time), seconds(epoch)}; }

TEST(EchoLag, CountsFromTheFirstVersionThatIsNotEchoed) {
  EchoLag lag;
  lag.seen("work", 3, echo(3), at(10));
  EXPECT_EQ(lag.lags_for(at(20)), seconds(0));
  lag.seen("work", 4, echo(3), at(20));
  lag.seen("work", 5, echo(3), at(25));
  EXPECT_EQ(lag.lags_for(at(30)), seconds(10));
  EXPECT_EQ(lag.lags_for(at(30, 28)), seconds(2)) << "after a gap it starts again";
}

TEST(EchoLag, ABusyWorkerThatIsAlwaysALittleBehindDoesNotLag) {
  EchoLag lag;
  for (int time = 0; time < 100; ++time) {
    lag.seen("work", time + 1, echo(time), at(time));
    EXPECT_LE(lag.lags_for(at(time)), seconds(1));
  }
}

// Its agent ignores a work Lease that was set back.
TEST(EchoLag, AnEchoThatIsAheadLags) {
  EchoLag lag;
  lag.seen("work", 9, echo(9), at(0));
  lag.seen("work", 3, echo(9), at(10));
  lag.seen("work", 4, echo(9), at(13));
  EXPECT_EQ(lag.lags_for(at(15)), seconds(5));
  lag.seen("work", 9, echo(9), at(16));
  EXPECT_EQ(lag.lags_for(at(20)), seconds(0));
}

TEST(EchoLag, AnotherWorkLeaseIsNeverEchoed) {
  EchoLag lag;
  lag.seen("other", 1, echo(9), at(0));
  lag.seen("other", 1, echo(9), at(5));
  EXPECT_EQ(lag.lags_for(at(7)), seconds(7));
  EchoLag gone;
  gone.seen("", 0, echo(9), at(0));
  EXPECT_EQ(gone.lags_for(at(7)), seconds(7));
}

}  // namespace
}  // namespace holdfast::reconciler
