// What a job of many runs says that it waits for, and how often it says something new.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

void make_unschedulable(PodView& pod) {
  pod.node_name.clear();
  pod.phase = PodPhase::kPending;
  pod.containers[0].started = false;
  pod.unschedulable = "0/3 nodes are available";
  pod.placed = now() - seconds(90);
}

TEST(ManyRuns, WaitingHasTheWordsOfTheRunInTheWorstTrouble) {
  JobView view = job_of_runs(10, 3, 3);
  view.pods[1].node_name = "node-b";
  view.job.status.runs[1].node_name = "node-b";
  view.observed.nodes["node-b"].silent_for = seconds(30);
  const Status status = after(view);
  EXPECT_EQ(status.waiting->reason, "NodeSilent");
  EXPECT_EQ(status.waiting->message, "run 1: node node-b does not renew its Lease");
}

TEST(ManyRuns, WaitingNamesTheOtherRunsThatDoNotRun) {
  JobView view = job_of_runs(100, 100, 100);
  for (std::size_t i = 1; i < 100; i += 2) {
    view.pods[i].node_name = view.job.status.runs[i].node_name = "node-b";
  }
  view.observed.nodes["node-b"].silent_for = seconds(30);
  make_unschedulable(view.pods[8]);
  EXPECT_EQ(after(view).waiting->message,
            "run 1: node node-b does not renew its Lease; 49 runs: NodeSilent; "
            "run 8: PodUnschedulable");
  for (std::size_t i = 9; i < 100; ++i) view.pods[i].node_name = kNode;
  EXPECT_EQ(after(view).waiting->message,
            "run 1: node node-b does not renew its Lease; runs 3,5,7: NodeSilent; "
            "run 8: PodUnschedulable");
}

// The pod runs, and another container of it does not.
void break_sidecar(PodView& pod, const std::string& reason) {
  ContainerView sidecar;
  sidecar.name = "sidecar";
  sidecar.waiting_reason = reason;
  sidecar.waiting_message = "it fails";
  pod.containers.push_back(sidecar);
}

TEST(ManyRuns, WaitingNamesThreeOtherReasonsAndCountsTheRest) {
  JobView view = job_of_runs(10, 8, 8);
  const std::vector<std::string> reasons = {"A", "A", "B", "A", "C", "D", "E"};
  for (std::size_t i = 0; i < reasons.size(); ++i) break_sidecar(view.pods[i], reasons[i]);
  view.observed.since_write = seconds(60);
  EXPECT_EQ(after(view).waiting->message,
            "run 0: container sidecar: it fails; other containers of pod " + pod_of(1) +
                " run; runs 1,3: A; run 2: B; run 4: C; 2 more");
}

TEST(ManyRuns, AGatedPodBesideOneThatRunsDoesNotStopTheJobsClock) {
  JobView view = job_of_runs(10, 2, 2);
  view.pods[0].gates = "example.com/quota";
  view.pods[0].node_name.clear();
  view.pods[0].phase = PodPhase::kPending;
  view.pods[0].containers[0].started = false;
  view.observed.since_write = seconds(60);
  const Waiting waiting = *after(view).waiting;
  EXPECT_EQ(waiting.reason, "PodRunning");
  EXPECT_EQ(waiting.message, "the pods of the other open runs run; run 0: PodGated");
}

TEST(ManyRuns, WaitingSaysTheLowestAndTheMeanProgressAndHowManyHaveReportedTheirs) {
  const auto reported = [](const std::vector<std::string>& progress) {
    JobView view = job_of_runs(10, 4, 4);
    for (std::size_t position = 0; position < progress.size(); ++position) {
      view.job.status.runs[position].progress = progress[position];
    }
    view.observed.since_write = seconds(60);
    const std::string message = after(view).waiting->message;
    const std::size_t begin = message.find("; ");
    return begin == std::string::npos ? "" : message.substr(begin + 2);
  };
  EXPECT_EQ(reported({}), "");
  EXPECT_EQ(reported({"reads the input"}), "1 of 4 open runs have told their progress");
  EXPECT_EQ(reported({"10%", "21/50 pages", "words", "50.9 %"}),
            "4 of 4 open runs have told their progress: lowest 10 %, mean 34 %");
  EXPECT_EQ(reported({"7/0", "nan%", "1e999%"}), "3 of 4 open runs have told their progress");
}

TEST(ManyRuns, TheWordsOfASchedulerAreKeptForAWhileAsTheyAre) {
  JobView view = job_of_runs(4, 4, 4);
  for (PodView& pod : view.pods) make_unschedulable(pod);
  view.observed.since_write = seconds(60);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.waiting->message,
            "run 0: 0/3 nodes are available; runs 1-3: PodUnschedulable");
  view.observed.since_write = seconds(12);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  view.pods[0].unschedulable = "0/4 nodes are available";
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  EXPECT_EQ(settle(view).wake_after, seconds(18));
  view.observed.since_write = seconds(30);
  EXPECT_TRUE(after(view).waiting->message.starts_with("run 0: 0/4 nodes"));
}

TEST(ManyRuns, WordsAloneAreWrittenSeldom) {
  JobView view = job_of_runs(4, 4, 4);
  break_sidecar(view.pods[0], "CrashLoopBackOff");
  view.observed.since_write = seconds(60);
  view.job.status = after(view);
  const std::string message = view.job.status.waiting->message;
  break_sidecar(view.pods[3], "CrashLoopBackOff");
  view.observed.since_write = seconds(12);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty()) << "that of another run, too";
  EXPECT_EQ(settle(view).wake_after, seconds(18));
  view.observed.since_write = seconds(30);
  EXPECT_EQ(after(view).waiting->message, message + "; run 3: CrashLoopBackOff");
}

TEST(ManyRuns, AWriteOfAFactBringsTheNewWords) {
  JobView view = job_of_runs(4, 4, 4);
  for (PodView& pod : view.pods) make_unschedulable(pod);
  view.observed.since_write = seconds(60);
  view.job.status = after(view);
  PodView& placed = view.pods[0];
  placed.node_name = kNode;
  placed.phase = PodPhase::kRunning;
  placed.containers[0].started = true;
  placed.unschedulable.clear();
  view.observed.since_write = seconds(2);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty()) << "a place is not urgent either";
  view.observed.since_write = seconds(10);
  const Status status = after(view);
  EXPECT_EQ(status.runs[0].node_name, kNode);
  EXPECT_EQ(status.waiting->message, "run 1: 0/3 nodes are available; runs 2,3: PodUnschedulable");
}

TEST(ManyRuns, AWriteOfAFactBringsTheLastProgress) {
  JobView view = job_of_runs(10, 2, 2);
  view.job.spec.heartbeat = Heartbeat{};
  view.runs.resize(2);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& run = view.job.status.runs[i];
    LeaseView lease;
    lease.attempt = run.attempt;
    lease.holder = lease.granted = run.pod_name + "/" + run.pod_uid;
    lease.renewed = true;
    lease.progress_message = "1 %";
    view.runs[i].lease = lease;
  }
  view.observed.since_write = seconds(60);
  view.job.status = after(view);
  EXPECT_EQ(view.job.status.runs[1].progress, "1 %");
  view.runs[1].lease->progress_message = "2 %";
  view.observed.since_write = seconds(10);
  EXPECT_TRUE(all<WriteStatus>(settle(view)).empty());
  view.job.status.runs[0].node_name.clear();  // the record lacks a fact
  EXPECT_EQ(after(view).runs[1].progress, "2 %");
}

TEST(ManyRuns, TheWordsOfARunGoWithItsEnd) {
  JobView view = job_of_runs(2, 2, 2);
  view.job.status.waiting =
      Waiting{Reason::kNodeSilent, "run 0: its node is silent", "n", now() + seconds(9)};
  view.pods[1].placed = view.job.status.runs[1].start_time = now();
  view.pods[1].phase = PodPhase::kPending;
  view.pods[1].containers[0].started = false;
  end_pod(view, 0, 1);
  const Status status = after(view);
  EXPECT_EQ(status.phase, Phase::kRunning);
  EXPECT_EQ(status.waiting->reason, "PodStarting");
  EXPECT_EQ(status.waiting->message, "the pods of the open runs are being started");
}

}  // namespace
}  // namespace holdfast::reconciler::testing
