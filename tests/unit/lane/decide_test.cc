#include "lane/decide.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/lane/lane_world.h"

namespace holdfast::lane {
namespace {

using reconciler::Phase;
using testing::HasSubstr;

std::string reason(const World& world, const std::string& type) {
  const Json* const found = condition(world.job.status, type);
  return found ? string_at(*found, "reason") : "";
}

World running() {
  World world;
  world.step();
  world.run();
  world.step();
  return world;
}

TEST(LaneDecide, ADurableJobWithTheJobsNameIsMadeAtOnce) {
  World world;
  const Decision decision = world.decide();
  EXPECT_FALSE(decision.status);
  ASSERT_TRUE(decision.creation);
  EXPECT_EQ(decision.creation->name, "pi");
  world.perform(decision);
  world.step();
  EXPECT_EQ(record_of(world.job), (Record{"pi", "durable-uid-1"}));
  EXPECT_EQ(string_at(world.job.status, "startTime"), "2026-03-01T12:00:00Z");
}

TEST(LaneDecide, OneWriteReportsTheUidAndTheFirstStatus) {
  World world;
  world.step();
  world.durable->status.phase = Phase::kNone;
  EXPECT_EQ(world.step(), 0);
  world.run();
  EXPECT_EQ(world.step(), 1);
  EXPECT_EQ(record_of(world.job), (Record{"pi", "durable-uid-1"}));
  EXPECT_EQ(int_at(world.job.status, "active"), 1);
}

// The answer may have been lost, and the DurableJob may be there.
TEST(LaneDecide, AJobIsNotSuspendedWhileItsDurableJobMayBeThere) {
  World world;
  world.step(0);
  world.tried = true;
  world.job.spec["suspend"] = true;
  world.step();
  ASSERT_TRUE(world.durable);
  EXPECT_TRUE(world.durable->spec.suspend);
  EXPECT_FALSE(holds(world.job.status, "Suspended"));
}

TEST(LaneDecide, AJobWhoseDurableJobCannotBeMadeYetSaysThatItIsResumed) {
  World world(spec(R"({"suspend": true})"));
  world.step();
  world.job.spec["suspend"] = false;
  EXPECT_FALSE(world.decide().status);
  world.tried = true;
  world.step(1);
  EXPECT_EQ(reason(world, "Suspended"), "JobResumed");
  EXPECT_EQ(string_at(world.job.status, "startTime"), "2026-03-01T12:00:00Z");
  EXPECT_FALSE(world.durable);
}

// More completions would give it another name.
TEST(LaneDecide, AnotherNameThanTheJobsIsWrittenBeforeTheDurableJobIsMade) {
  for (const std::string& name : {std::string("with.dots"), std::string(53, 'x')}) {
    World world;
    world.job.name = name;
    const Decision decision = world.decide();
    ASSERT_TRUE(decision.status && decision.creation);
    EXPECT_EQ(record_of(world.job), std::nullopt);
    world.perform(decision);
    EXPECT_EQ(record_of(world.job), (Record{first_name(world.job), ""}));
    world.step();
    EXPECT_EQ(record_of(world.job), (Record{first_name(world.job), "durable-uid-1"}));
  }
  World world;
  world.job.name = std::string(52, 'x');
  EXPECT_FALSE(world.decide().status);
}

TEST(LaneDecide, AJobThatIsSuspendedBeforeItKnowsItsDurableJobSuspendsThat) {
  World world;
  world.step();
  ASSERT_TRUE(world.durable);
  world.job.spec["suspend"] = true;
  world.step();
  EXPECT_TRUE(world.durable->spec.suspend);
  EXPECT_FALSE(holds(world.job.status, "Suspended")) << "its pod may run";
}

TEST(LaneDecide, WithoutTheGuardNoDurableJobIsMadeAndAnEventSaysWhy) {
  World world;
  world.guard = {true, "there is no policy", "somebody has installed it"};
  const Decision held = world.decide();
  EXPECT_FALSE(held.creation);
  ASSERT_EQ(held.events.size(), 1U);
  EXPECT_EQ(held.events[0].reason, "GuardMissing");
  EXPECT_THAT(held.events[0].note, HasSubstr("there is no policy"));
  EXPECT_EQ(held.wake_after, reconciler::kGuardLook);
  EXPECT_EQ(world.perform(held), 0) << "no name is taken yet";
  world.guard.fault.clear();
  EXPECT_TRUE(world.decide().events.empty()) << "nothing is known to be wrong";
  world.guard = {};
  world.step();
  EXPECT_EQ(world.created, 1);
}

TEST(LaneDecide, WithoutTheGuardAJobThatRunsIsMirroredAndEnds) {
  World world = running();
  world.guard = {true, "there is no policy", "somebody has installed it"};
  world.end(true, "CompletionsReached");
  world.settle();
  EXPECT_TRUE(is_finished(world.job.status));
}

TEST(LaneDecide, AtRestNothingIsWritten) {
  World world = running();
  world.now = at_second(100);
  EXPECT_EQ(world.step(), 0);
}

TEST(LaneDecide, OneWriteSaysThatAJobIsComplete) {
  World world = running();
  world.now = at_second(10);
  world.end(true, "Completed");
  EXPECT_EQ(world.step(), 1);
  EXPECT_TRUE(holds(world.job.status, "SuccessCriteriaMet") && holds(world.job.status, "Complete"));
  EXPECT_EQ(reason(world, "Complete"), "CompletionsReached");
  EXPECT_EQ(string_at(world.job.status, "completionTime"), "2026-03-01T12:00:10Z");
  EXPECT_EQ(world.step(), 0);
}

TEST(LaneDecide, AnOutcomeThatWaitsForPodsIsSaidBefore) {
  World world = running();
  world.durable->status.conditions.push_back(
      {"FailureTarget", true, "PodFailurePolicy", "exit code 42", world.now});
  world.step();
  EXPECT_TRUE(holds(world.job.status, "FailureTarget"));
  EXPECT_FALSE(is_finished(world.job.status));
  EXPECT_EQ(int_at(world.job.status, "active"), 1);
}

TEST(LaneDecide, ACancelledDurableJobFailsTheJobWithoutCompletionTime) {
  World world = running();
  world.durable->cancel = true;
  world.durable->status.runs.clear();
  world.durable->status.phase = Phase::kCancelled;
  world.step();
  EXPECT_EQ(reason(world, "Failed"), "Cancelled");
}

TEST(LaneDecide, ACancelThatNobodyHasSeenDecidesNothing) {
  World world = running();
  world.durable->cancel = true;
  EXPECT_EQ(world.step(), 0);
}

TEST(LaneDecide, ASuspendedJobHasNoStartTimeAndNoDurableJob) {
  World world(spec(R"({"suspend": true})"));
  world.step();
  EXPECT_TRUE(holds(world.job.status, "Suspended"));
  EXPECT_FALSE(world.job.status.contains("startTime") || world.durable);
  EXPECT_EQ(world.step(), 0);
  world.job.spec["suspend"] = false;
  world.now = at_second(60);
  world.settle();
  EXPECT_EQ(string_at(world.job.status, "startTime"), "2026-03-01T12:01:00Z");
  EXPECT_EQ(reason(world, "Suspended"), "JobResumed");
}

TEST(LaneDecide, AJobWithNothingToDoIsCompleteEvenIfItIsSuspended) {
  for (const char* const suspend : {"true", "false"}) {
    World world(spec((R"({"completions": 0, "suspend": )" + std::string(suspend) + "}").c_str()));
    world.step();
    EXPECT_TRUE(holds(world.job.status, "Complete"));
    EXPECT_FALSE(world.durable);
  }
}

TEST(LaneDecide, AJobIsSuspendedOnceNoPodOfItRuns) {
  World world = running();
  world.job.spec["suspend"] = true;
  world.step();
  EXPECT_TRUE(world.durable->spec.suspend);
  EXPECT_FALSE(holds(world.job.status, "Suspended")) << "its pod still runs";
  world.durable->status.runs.clear();
  world.durable->status.phase = Phase::kSuspended;
  world.step();
  EXPECT_TRUE(holds(world.job.status, "Suspended"));
  EXPECT_FALSE(world.job.status.contains("startTime"));
}

TEST(LaneDecide, AChangedTemplateWaitsUntilTheDurableJobIsSuspended) {
  World world = running();
  world.job.spec["suspend"] = true;
  world.step();
  world.job.spec["template"]["spec"]["nodeSelector"] = {{"zone", "a"}};
  world.job.spec["suspend"] = false;
  world.step();
  EXPECT_TRUE(world.durable->spec.suspend) << "it would resume with the old template";
  EXPECT_FALSE(world.patched("template"));
  world.durable->status.runs.clear();
  world.durable->status.phase = Phase::kSuspended;
  world.step();
  EXPECT_TRUE(world.patched("template") && !world.durable->spec.suspend);
}

// Another release may read a template in other words, and must not stop what runs.
TEST(LaneDecide, ATemplateThatDiffersStopsNoRunningJob) {
  World world = running();
  world.source.pod_template = "0123";
  EXPECT_EQ(world.step(), 0);
}

TEST(LaneDecide, AForeignObjectOfThatNameGivesASuffix) {
  World world;
  world.name_taken = true;
  world.step();
  EXPECT_EQ(world.durable->name, second_name(world.job));
  EXPECT_THAT(world.durable->name, HasSubstr("pi-"));
}

TEST(LaneDecide, ANameThatIsTakenAtTheCreationIsReplacedInTheRecordFirst) {
  World world;
  world.step(0);  // the creation found another object
  world.name_taken = true;
  const Decision decision = world.decide();
  ASSERT_TRUE(decision.status && decision.creation);
  world.perform(decision);
  EXPECT_EQ(record_of(world.job)->name, second_name(world.job));
}

TEST(LaneDecide, ARecordOfAnotherJobIsIgnored) {
  World world;
  world.job.metadata["annotations"] = {{kNameAnnotation, "old"},
                                       {kUidsAnnotation, "other/durable"}};
  world.step();
  EXPECT_EQ(world.durable->name, "pi");
}

TEST(LaneDecide, ADurableJobThatIsGoneIsLookedForBeforeTheJobFails) {
  World world = running();
  world.durable.reset();
  EXPECT_TRUE(world.decide().look);
  world.is_gone = world.pods_left = true;
  world.step();
  EXPECT_TRUE(holds(world.job.status, "FailureTarget"));
  EXPECT_FALSE(is_finished(world.job.status)) << "a pod still runs";
  world.pods_left = false;
  world.step();
  EXPECT_EQ(reason(world, "Failed"), "DurableJobDeleted");
  EXPECT_EQ(world.created, 1) << "its work must not begin again";
}

TEST(LaneDecide, ADeletedJobIsLeftAlone) {
  World world;
  world.job.deleting = true;
  EXPECT_EQ(world.step(), 0);
}

// A Job's owner may write its annotations: what is not ours there is no record.
TEST(LaneDecide, ARecordHasNames) {
  World world;
  const auto record = [&](const char* name, const char* uids) {
    world.job.metadata["annotations"] = {{kNameAnnotation, name}, {kUidsAnnotation, uids}};
    return record_of(world.job);
  };
  EXPECT_EQ(record("pi", "job-uid/"), (Record{"pi", ""}));
  EXPECT_EQ(record("pi", "job-uid/durable-1"), (Record{"pi", "durable-1"}));
  EXPECT_EQ(record("", "job-uid/"), std::nullopt);
  EXPECT_EQ(record("pi x", "job-uid/"), std::nullopt);
  EXPECT_EQ(record("pi", "job-uid/a b"), std::nullopt);
  EXPECT_EQ(record("pi", "job-uid/a,b"), std::nullopt);
}

TEST(LaneDecide, AWordyReasonIsCutShort) {
  World world;
  for (int i = 0; i < 3000; ++i) {
    world.job.metadata["annotations"]["holdfast.dev/x" + std::to_string(i)] = "y";
  }
  world.step();
  ASSERT_EQ(reason(world, "Failed"), "NotSupported");
  EXPECT_LE(string_at(*condition(world.job.status, "Failed"), "message").size(), 1024U);
}

TEST(LaneDecide, WhatCannotBeMappedFailsTheJob) {
  World queue(spec(R"({"parallelism": 3, "completions": null})"));
  queue.step();
  EXPECT_EQ(reason(queue, "Failed"), "NotSupported");
  EXPECT_FALSE(queue.durable);
  World refused;
  refused.step(0);
  refused.refusal = "lostAfterSeconds is too low";
  refused.step();
  EXPECT_EQ(string_at(*condition(refused.job.status, "Failed"), "message"),
            "lostAfterSeconds is too low");
}

TEST(LaneDecide, CountsNeverFall) {
  World world = running();
  world.durable->status.failures = 3;
  world.step();
  world.durable->status.failures = 2;  // from an older cache
  world.step();
  EXPECT_EQ(int_at(world.job.status, "failed"), 3);
}

TEST(LaneDecide, OnlyWhatCostsBackoffLimitCountsAsFailed) {
  World world = running();
  world.durable->status.failures = 1;
  world.durable->status.disruptions = 7;
  world.step();
  EXPECT_EQ(int_at(world.job.status, "failed"), 1);
}

// The field that is refused keeps its old value, and the Job says so for good, also if the process
// that tried it is gone.
TEST(LaneDecide, OneRefusedFieldHoldsUpNoOther) {
  World world = running();
  world.refuses = {"parallelism"};
  world.job.spec["parallelism"] = 3;
  world.job.spec["backoffLimit"] = 7;
  world.job.spec["suspend"] = true;
  world.step();
  EXPECT_EQ(world.durable->spec.parallelism, 1);
  EXPECT_EQ(world.durable->spec.backoff_limit, 7);
  EXPECT_TRUE(world.durable->spec.suspend);
  world.suspended();
  world.settle();
  ASSERT_TRUE(holds(world.job.status, "ChangeRefused"));
  const Json* const reported = condition(world.job.status, "ChangeRefused");
  EXPECT_EQ(string_at(*reported, "message"), "parallelism: the test refuses it");
  EXPECT_TRUE(holds(world.job.status, "Suspended"));
  world.refused.reset();
  EXPECT_EQ(world.step(), 0) << "another process tries it again";
  // A resume goes through, and so does a later change that is allowed.
  world.job.spec["suspend"] = false;
  world.settle();
  EXPECT_FALSE(world.durable->spec.suspend);
  EXPECT_TRUE(holds(world.job.status, "ChangeRefused"));
  world.refuses.clear();
  world.job.spec["parallelism"] = 1;
  world.settle();
  EXPECT_FALSE(holds(world.job.status, "ChangeRefused"));
}

TEST(LaneDecide, ARefusalIsReportedBeforeItIsSettled) {
  World world = running();
  world.refuses = {"parallelism"};
  world.job.spec["parallelism"] = 3;
  const Source before = world.source;
  world.step();
  world.refused.reset();  // the process dies before it has reported
  EXPECT_EQ(world.source, before);
  world.step();
  EXPECT_TRUE(world.refused);
  ASSERT_FALSE(holds(world.job.status, "ChangeRefused"));
  EXPECT_FALSE(world.decide().patch) << "the Job does not say so yet";
  world.step();
  ASSERT_TRUE(holds(world.job.status, "ChangeRefused"));
  EXPECT_TRUE(world.decide().patch) << "it is settled";
}

TEST(LaneDecide, AWorkQueueIsNoChangeThatADurableJobTakes) {
  World world(spec(R"({"completions": null})"));
  world.step();
  world.run();
  world.step();
  world.job.spec["parallelism"] = 3;
  world.job.spec["backoffLimit"] = 2;
  world.settle();
  EXPECT_FALSE(world.patched("parallelism"));
  EXPECT_EQ(world.durable->spec.backoff_limit, 2);
  EXPECT_THAT(string_at(*condition(world.job.status, "ChangeRefused"), "message"),
              HasSubstr("work queue"));
}

// Some fields change only while the DurableJob is suspended.
TEST(LaneDecide, FieldsThatAreSentAloneComeAfterASuspendAndBeforeAResume) {
  const auto order = [](bool suspend) {
    std::vector<std::string> names;
    for (const Json& one :
         one_by_one({{"completions", 3}, {"suspend", suspend}, {"template", 1}})) {
      names.push_back(one.begin().key());
    }
    return names;
  };
  EXPECT_THAT(order(true), testing::ElementsAre("suspend", "completions", "template"));
  EXPECT_THAT(order(false), testing::ElementsAre("completions", "template", "suspend"));
}

TEST(LaneDecide, ATemplateThatIsRefusedHoldsUpNoResume) {
  World world = running();
  world.job.spec["suspend"] = true;
  world.step();
  world.suspended();
  world.refuses = {"template"};
  world.job.spec["template"]["spec"]["nodeSelector"] = {{"zone", "a"}};
  world.job.spec["suspend"] = false;
  world.step();
  EXPECT_FALSE(world.durable->spec.suspend);
  world.run();
  world.settle();
  EXPECT_THAT(string_at(*condition(world.job.status, "ChangeRefused"), "message"),
              HasSubstr("template"));
}

World indexed(int completions) {
  World world(spec(R"({"completionMode": "Indexed"})"));
  world.job.spec["completions"] = world.job.spec["parallelism"] = completions;
  world.step();
  world.run();
  world.step();
  return world;
}

// As Kueue does: it shrinks a Job that it admits in part, and restores it when it preempts the Job.
TEST(LaneDecide, CompletionsOfASuspendedJobChangeTogetherWithTheResume) {
  World world = indexed(5);
  world.durable->status.completed = *reconciler::IndexSet::parse("0,1,4", 5);
  world.job.spec["suspend"] = true;
  world.step();
  EXPECT_EQ(string_at(world.job.status, "completedIndexes"), "0,1,4");
  world.job.spec["completions"] = world.job.spec["parallelism"] = 3;
  world.job.spec["suspend"] = false;
  world.step();
  EXPECT_TRUE(world.durable->spec.suspend) << "it would resume with all five";
  EXPECT_EQ(string_at(world.job.status, "completedIndexes"), "0,1");
  EXPECT_EQ(int_at(world.job.status, "succeeded"), 2);
  world.suspended();
  world.step();
  EXPECT_FALSE(world.durable->spec.suspend);
  EXPECT_EQ(world.durable->spec.completions, 3);
  EXPECT_FALSE(condition(world.job.status, "ChangeRefused"));
  EXPECT_FALSE(world.durable->cancel);
  EXPECT_EQ(world.step(), 0);
}

TEST(LaneDecide, CompletionsOfARunningJobKeepTheirOldNumber) {
  World world = indexed(5);
  world.durable->status.completed = *reconciler::IndexSet::parse("0,1,4", 5);
  world.job.spec["completions"] = world.job.spec["parallelism"] = 3;
  world.settle();
  EXPECT_EQ(world.durable->spec.completions, 5);
  EXPECT_EQ(world.durable->spec.parallelism, 3);
  EXPECT_THAT(string_at(*condition(world.job.status, "ChangeRefused"), "message"),
              HasSubstr("while the Job is suspended"));
  // Once it is suspended, they change.
  world.job.spec["suspend"] = true;
  world.step();
  world.suspended();
  world.settle();
  EXPECT_EQ(world.durable->spec.completions, 3);
  EXPECT_FALSE(holds(world.job.status, "ChangeRefused"));
}

TEST(LaneDecide, ReadyPodsAreCountedAndNeverMoreThanActiveOnes) {
  World world = running();
  world.ready = 2;
  world.step();
  EXPECT_EQ(int_at(world.job.status, "ready"), 1);
  world.ready.reset();
  EXPECT_EQ(world.step(), 0) << "what is not known changes nothing";
  world.now = at_second(10);
  world.ready = 1;
  world.end(true, "Completed");
  world.step();
  EXPECT_EQ(int_at(world.job.status, "ready", -1), 0);
}

TEST(LaneDecide, AWriteThatOnlyCountsReadyPodsWaits) {
  World world = running();
  world.ready = 1;
  world.ready_pause = std::chrono::milliseconds(700);
  const Decision later = world.decide();
  EXPECT_FALSE(later.status);
  EXPECT_EQ(later.wake_after, Duration(std::chrono::milliseconds(700)));
  world.durable->status.failures = 1;
  world.step();
  EXPECT_EQ(int_at(world.job.status, "ready"), 1) << "any other write says it, too";
}

// Kueue waits for as many pods as the Job asks for.
TEST(LaneDecide, AJobInAQueueOfKueueHasNoMorePodsThanRunAtOnce) {
  World world(spec(R"({"parallelism": 1001, "completions": 5000})"));
  world.step();
  EXPECT_TRUE(world.durable);
  World queued(world.job.spec);
  queued.job.metadata["labels"] = {{"kueue.x-k8s.io/queue-name", "q"}};
  queued.step();
  EXPECT_EQ(reason(queued, "Failed"), "NotSupported");
}

TEST(LaneDecide, ADurableJobWithAnObsoleteNameIsAStray) {
  World world = running();
  EXPECT_FALSE(is_stray(world.job, *world.durable));
  reconciler::Job other = *world.durable;
  other.name = "other";
  other.uid = "other-uid";
  EXPECT_TRUE(is_stray(world.job, other));
  world.job.deleting = true;
  EXPECT_FALSE(is_stray(world.job, other)) << "the garbage collector deletes or orphans it";
}

TEST(LaneDecide, BeforeTheUidIsKnownTheNameDecidesWhatIsAStray) {
  World world;
  world.job.name = "with.dots";
  world.step();
  EXPECT_FALSE(is_stray(world.job, *world.durable));
  world.durable->name = "other";
  EXPECT_TRUE(is_stray(world.job, *world.durable));
}

TEST(LaneDecide, WithoutARecordADurableJobThatRunsIsAStrayOfAFinishedJobAlone) {
  World world;
  world.step();
  EXPECT_FALSE(is_stray(world.job, *world.durable));
  world.job.status["conditions"] = Json::array({{{"type", "Failed"}, {"status", "True"}}});
  EXPECT_TRUE(is_stray(world.job, *world.durable));
  world.durable->status.phase = Phase::kFailed;
  EXPECT_FALSE(is_stray(world.job, *world.durable));
}

// A replica that was paused before its POST creates the DurableJob again under the recorded name.
TEST(LaneDecide, ADurableJobThatIsMadeAgainIsAStray) {
  World world = running();
  world.durable->uid = "made-again";
  EXPECT_TRUE(is_stray(world.job, *world.durable));
  world.durable->deleting = true;
  EXPECT_FALSE(is_stray(world.job, *world.durable));
}

TEST(LaneDecide, ADurableJobThatAFinishedJobNeverSawIsAStrayUntilItEnds) {
  World world;
  world.step();  // the creation is under way
  world.refusal = "lostAfterSeconds is too low";
  std::optional<reconciler::Job> late;
  late.swap(world.durable);
  world.step();
  ASSERT_TRUE(is_finished(world.job.status));
  EXPECT_TRUE(is_stray(world.job, *late));
  late->status.phase = Phase::kFailed;
  EXPECT_FALSE(is_stray(world.job, *late));
}

TEST(LaneDecide, TheDurableJobOfAFinishedJobIsNoStray) {
  World world = running();
  reconciler::Job made_again = *world.durable;
  made_again.uid = "made-again";
  world.durable.reset();
  world.is_gone = true;
  world.step();
  ASSERT_EQ(reason(world, "Failed"), "DurableJobDeleted");
  EXPECT_TRUE(is_stray(world.job, made_again));
  // As the uninstall hook leaves it.
  made_again.uid = "durable-uid-1";
  EXPECT_FALSE(is_stray(world.job, made_again));
}

}  // namespace
}  // namespace holdfast::lane
