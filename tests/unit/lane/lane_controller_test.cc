// The controller of batch/v1 Jobs in a whole operator, over a simulated API server that refuses
// what the real one refuses in the status of such a Job.
#include "operator/lane/lane_controller.h"

#include "reconciler/shards.h"
#include "tests/unit/lane/lane_fixture.h"

namespace holdfast::lane_controller::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// ---- A Job's life.

TEST_F(LaneControllerTest, AJobThatSucceedsIsComplete) {
  begin();
  EXPECT_EQ(uid_of(job()), string_at(durable()["metadata"]["ownerReferences"][0], "uid"));
  EXPECT_EQ(record(), "pi");
  EXPECT_EQ(count("Job DurableJobCreated"), 1);
  end_pod(true);
  ASSERT_TRUE(until([&] { return !holds("Complete").empty(); }));
  EXPECT_EQ(holds("Complete"), "CompletionsReached");
  EXPECT_EQ(int_at(status(), "succeeded"), 1);
  EXPECT_EQ(count("Job Completed"), 1);
  const Json before = Json(world_.all("jobs"));
  world_.run(minutes(40));
  EXPECT_EQ(Json(world_.all("jobs")), before) << "a finished Job is written no more";
}

TEST_F(LaneControllerTest, ALifeCostsTheJobThreeWrites) {
  std::vector<std::string> writes;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method != "PUT" || request.target.find("/jobs/pi/status") == std::string::npos) {
      return std::nullopt;
    }
    const Json status = at(*parse_json(request.body), "status");
    writes.push_back(std::to_string(int_at(status, "active")) + " active, " +
                     std::to_string(int_at(status, "ready")) + " ready");
    return std::nullopt;
  };
  begin();
  world_.run(seconds(5));
  be_ready(true);
  world_.run(seconds(5));
  end_pod(true);
  ASSERT_TRUE(until([&] { return !holds("Complete").empty(); }));
  world_.run(seconds(5));
  EXPECT_THAT(writes, ElementsAre("1 active, 0 ready", "1 active, 1 ready", "0 active, 0 ready"));
}

TEST_F(LaneControllerTest, AJobThatFailsIsFailed) {
  world_.create(kBatchJobs, batch_job({{"backoffLimit", 0}}));
  start();
  ASSERT_TRUE(until([&] { return !world_.all("pods").empty(); }));
  run_pod();
  end_pod(false);
  ASSERT_TRUE(until([&] { return !holds("Failed").empty(); }));
  EXPECT_EQ(holds("Failed"), "BackoffLimitExceeded");
  EXPECT_EQ(int_at(status(), "failed"), 1);
}

TEST_F(LaneControllerTest, AJobOfAnotherControllerIsLeftAlone) {
  Json other = batch_job();
  other["spec"]["managedBy"] = "example.com/other";
  const Json before = world_.create(kBatchJobs, other);
  start();
  EXPECT_EQ(job(), before);
  EXPECT_THAT(world_.all("durablejobs"), IsEmpty());
}

TEST_F(LaneControllerTest, ASuspendedJobGetsItsDurableJobWhenItResumes) {
  world_.create(kBatchJobs, batch_job({{"suspend", true}}));
  start();
  EXPECT_EQ(holds("Suspended"), "JobSuspended");
  EXPECT_THAT(world_.all("durablejobs"), IsEmpty());
  world_.patch(
      path(kBatchJobs, "pi"),
      {{"spec",
        {{"suspend", false}, {"template", {{"spec", {{"nodeSelector", {{"zone", "a"}}}}}}}}}});
  ASSERT_TRUE(until([&] { return !world_.all("pods").empty(); }));
  EXPECT_EQ(world_.all("pods")[0]["spec"]["nodeSelector"], Json({{"zone", "a"}}));
}

TEST_F(LaneControllerTest, NothingIsMadeForAJobBeforeTheDurableJobsOfItsShardWereRead) {
  bool is_held_up = true;
  world_.before = [&is_held_up](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool is_of_shards = request.target.find("/durablejobs?") != std::string::npos &&
                              request.target.find("status.shard!=none") != std::string::npos;
    if (!is_held_up || !is_of_shards) return std::nullopt;
    return refusal(503, "ServiceUnavailable");
  };
  world_.create(kBatchJobs, batch_job());
  start();
  EXPECT_THAT(world_.all("durablejobs"), IsEmpty());
  EXPECT_EQ(record(), "");
  is_held_up = false;
  EXPECT_TRUE(until([&] { return !world_.all("durablejobs").empty(); }, seconds(60)));
}

TEST_F(LaneControllerTest, ASuspendedJobStopsItsPodsAndStartsThemAnew) {
  begin();
  world_.patch(path(kBatchJobs, "pi"), {{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(until([&] {
    stop_pods();
    return !holds("Suspended").empty();
  }));
  EXPECT_THAT(world_.all("pods"), IsEmpty());
  EXPECT_TRUE(at(status(), "startTime").is_null());
  world_.patch(path(kBatchJobs, "pi"), {{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(until([&] { return holds("Suspended").empty(); }));
  EXPECT_TRUE(until([&] { return !world_.all("pods").empty(); }));
}

TEST_F(LaneControllerTest, ACancelledDurableJobFailsItsJob) {
  begin();
  world_.patch(path(kJobs, "pi"), {{"spec", {{"cancel", true}}}});
  ASSERT_TRUE(until([&] {
    stop_pods();
    return !holds("Failed").empty();
  }));
  EXPECT_EQ(holds("Failed"), "Cancelled");
}

TEST_F(LaneControllerTest, AJobThatHasBegunGoesOnInANamespaceThatIsSelectedNoMore) {
  const auto team = [&](const Json& name) {
    world_.patch("/api/v1/namespaces/default", {{"metadata", {{"labels", {{"team", name}}}}}});
  };
  world_.batch_selector = "team=video";
  team("video");
  answer("PUT", "/jobs/pi/status", refusal(503, "ServiceUnavailable"));  // it records nothing
  world_.create(kBatchJobs, batch_job());
  start();
  ASSERT_TRUE(until([&] { return !world_.all("pods").empty(); }));
  run_pod();
  team(nullptr);
  world_.create(kBatchJobs, batch_job(Json::object(), "late"));
  world_.run(seconds(10));
  world_.before = nullptr;
  end_pod(true);
  EXPECT_TRUE(until([&] { return !holds("Complete").empty(); }, minutes(2)));
  EXPECT_TRUE(durable("late").is_null());
}

// ---- Its deletion, at each step.

TEST_F(LaneControllerTest, AJobThatIsDeletedBeforeItsCreationLeavesNothing) {
  answer("POST", "/durablejobs", refusal(503, "ServiceUnavailable"));
  world_.create(kBatchJobs, batch_job());
  start();
  EXPECT_GT(answered_, 0);
  delete_job();
  world_.before = nullptr;
  world_.run(minutes(5));
  EXPECT_THAT(world_.all("durablejobs"), IsEmpty());
}

TEST_F(LaneControllerTest, AJobThatIsDeletedDuringTheCreationLeavesNothing) {
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool creates = request.target.find("/durablejobs") != std::string::npos;
    if (request.method == "POST" && creates && !job().is_null()) {
      world_.remove(path(kBatchJobs, "pi"), {{"propagationPolicy", "Background"}});
    }
    return std::nullopt;
  };
  world_.create(kBatchJobs, batch_job());
  start();
  ASSERT_TRUE(job().is_null());
  expect_nothing_left();
}

TEST_F(LaneControllerTest, AJobThatIsDeletedWhileItRunsLeavesNothing) {
  begin();
  delete_job();
  expect_nothing_left();
}

TEST_F(LaneControllerTest, AnEndedJobThatIsDeletedLeavesNothing) {
  begin();
  end_pod(true);
  ASSERT_TRUE(until([&] { return !holds("Complete").empty(); }));
  delete_job();
  expect_nothing_left();
}

TEST_F(LaneControllerTest, AnOrphanedDurableJobRunsOn) {
  begin();
  delete_job("Orphan");
  world_.run(seconds(5));
  ASSERT_TRUE(job().is_null());
  end_pod(true);
  EXPECT_TRUE(until([&] { return phase_of(durable()) == "Succeeded"; }));
}

TEST_F(LaneControllerTest, ANewJobOfTheSameNameTakesNothingOver) {
  begin();
  const std::string before = uid_of(durable());
  delete_job();
  world_.create(kBatchJobs, batch_job());
  ASSERT_TRUE(until(
      [&] {
        world_.collect_garbage();
        stop_pods();
        const Json mine = durable(record());
        return !mine.is_null() && uid_of(mine) != before && !world_.all("pods").empty();
      },
      minutes(2)));
  EXPECT_EQ(holds("Failed"), "");
}

// ---- What the DurableJob's name, and the API server, may do.

TEST_F(LaneControllerTest, AForeignDurableJobOfItsNameGivesASuffix) {
  Json foreign = durable();
  foreign = {{"apiVersion", "holdfast.dev/v1alpha1"},
             {"kind", "DurableJob"},
             {"metadata", {{"name", "pi"}}},
             {"spec", {{"suspend", true}, {"template", batch_job()["spec"]["template"]}}}};
  world_.create(kJobs, foreign);
  world_.create(kBatchJobs, batch_job());
  start();
  EXPECT_NE(record(), "pi");
  EXPECT_EQ(uid_of(job()), string_at(durable(record())["metadata"]["ownerReferences"][0], "uid"));
  EXPECT_EQ(count("Job NameTaken"), 0);
}

TEST_F(LaneControllerTest, AJobWithoutAFreeNameSaysSoAndWaits) {
  world_.create(kBatchJobs, batch_job());
  // Whatever name the operator asks for is taken just before.
  bool steals = true;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool creates = request.target.find("/durablejobs") != std::string::npos;
    if (!steals || request.method != "POST" || !creates) return std::nullopt;
    Json body = *parse_json(request.body);
    body["metadata"].erase("ownerReferences");
    body["spec"]["suspend"] = true;
    if (durable(body["metadata"]["name"]).is_null()) world_.create(kJobs, body);
    return std::nullopt;
  };
  start();
  ASSERT_TRUE(until([&] { return count("Job NameTaken") > 0; }, minutes(2)));
  EXPECT_EQ(world_.all("durablejobs").size(), 2u);
  steals = false;
  world_.remove(path(kJobs, record()));
  EXPECT_TRUE(until([&] { return !world_.all("pods").empty(); }, minutes(2)));
}

TEST_F(LaneControllerTest, ARefusedChangeIsToldOnceAndHoldsUpNoOther) {
  begin();
  world_.before = [](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool changes = request.body.find("/spec/backoffLimit") != std::string::npos;
    if (request.method != "PATCH" || !changes) return std::nullopt;
    return refusal(422, "Invalid", "spec.backoffLimit");
  };
  world_.patch(
      path(kBatchJobs, "pi"),
      {{"spec", {{"backoffLimit", 3}, {"activeDeadlineSeconds", 900}, {"suspend", true}}}});
  ASSERT_TRUE(until([&] {
    stop_pods();
    return !holds("Suspended").empty() && !holds("ChangeRefused").empty();
  }));
  EXPECT_EQ(durable()["spec"]["activeDeadlineSeconds"], 900);
  EXPECT_EQ(durable()["spec"]["backoffLimit"], 6);
  world_.run(minutes(1));
  EXPECT_EQ(count("Job ChangeRefused"), 1);
  // Nor does another process try it again.
  world_.start();
  world_.run(minutes(1));
  EXPECT_EQ(count("Job ChangeRefused"), 1);
  world_.before = nullptr;
  world_.patch(path(kBatchJobs, "pi"), {{"spec", {{"backoffLimit", 2}, {"suspend", false}}}});
  EXPECT_TRUE(until([&] { return holds("ChangeRefused").empty(); }));
  EXPECT_EQ(durable()["spec"]["backoffLimit"], 2);
  EXPECT_TRUE(until([&] { return !world_.all("pods").empty(); }));
}

TEST_F(LaneControllerTest, AStatusIsMirroredWhileEachChangeIsRefused) {
  begin();
  answer("PATCH", "/durablejobs/", refusal(403, "Forbidden"));
  world_.patch(path(kBatchJobs, "pi"), {{"spec", {{"backoffLimit", 3}}}});
  world_.run(seconds(1));
  be_ready(true);
  EXPECT_TRUE(until([&] { return int_at(status(), "ready") == 1; }));
  end_pod(true);
  EXPECT_TRUE(until([&] { return !holds("Complete").empty(); }));
}

TEST_F(LaneControllerTest, ReadyPodsThatStayAreCounted) {
  begin();
  const auto ready = [&] { return int_at(status(), "ready", -1); };
  EXPECT_EQ(ready(), 0);
  be_ready(true);
  ASSERT_TRUE(until([&] { return ready() == 1; }, seconds(2)));
  const std::string version = string_at(at(job(), "metadata"), "resourceVersion");
  for (const bool flips : {false, true, false, true}) be_ready(flips);
  world_.run(std::chrono::milliseconds(900));
  EXPECT_EQ(string_at(at(job(), "metadata"), "resourceVersion"), version) << "once a second";
  world_.remove(pod_path(world_.all("pods").at(0)));
  EXPECT_TRUE(until([&] { return ready() == 0; }, seconds(3))) << "it terminates";
  world_.run(seconds(5));
  EXPECT_EQ(ready(), 0);
}

TEST_F(LaneControllerTest, TheWriteThatEndsAJobCountsNoReadyPod) {
  begin();
  be_ready(true);
  ASSERT_TRUE(until([&] { return int_at(status(), "ready") == 1; }));
  end_pod(true);
  ASSERT_TRUE(until([&] { return !holds("Complete").empty(); }));
  EXPECT_EQ(int_at(status(), "ready", -1), 0);
}

// So one replica works on both. With a queue both have the namespace's.
TEST_F(LaneControllerTest, AJobAndItsDurableJobHaveOneShard) {
  world_.create(kBatchJobs, batch_job());
  Json queued = batch_job(Json::object(), "queued");
  queued["metadata"]["annotations"]["holdfast.dev/queue"] = "q";
  world_.create(kBatchJobs, queued);
  start();
  ASSERT_TRUE(until([&] { return !durable("queued").is_null() && !durable().is_null(); }));
  const auto shard = [&](const Json& durable) {
    return string_at(at(at(durable, "metadata"), "labels"), "holdfast.dev/shard");
  };
  const std::string label = shard(durable());
  const int shards = std::stoi(label.substr(label.rfind('-') + 1));
  const auto labelled = [&](const std::string& key) {
    return reconciler::shard_label(reconciler::shard_of(key, shards), shards);
  };
  EXPECT_EQ(label, labelled(uid_of(job())));
  EXPECT_EQ(shard(durable("queued")), labelled("default"));
  ASSERT_TRUE(until([&] { return !world_.all("pods").empty(); }));
  EXPECT_EQ(shard(world_.all("pods").at(0)), label);
}

TEST_F(LaneControllerTest, ThePodsOfAnIndexedJobHaveItsNameAsHostname) {
  const Json foreign = {
      {"apiVersion", "holdfast.dev/v1alpha1"},
      {"kind", "DurableJob"},
      {"metadata", {{"name", "pi"}}},
      {"spec", {{"suspend", true}, {"template", batch_job()["spec"]["template"]}}}};
  world_.create(kJobs, foreign);
  const Json indexed = {{"completionMode", "Indexed"}, {"completions", 2}, {"parallelism", 2}};
  world_.create(kBatchJobs, batch_job(indexed));
  start();
  ASSERT_TRUE(until([&] { return world_.all("pods").size() == 2; }));
  EXPECT_NE(record(), "pi");
  std::vector<std::string> hostnames;
  for (const Json& pod : world_.all("pods")) hostnames.push_back(pod["spec"]["hostname"]);
  EXPECT_THAT(hostnames, ::testing::UnorderedElementsAre("pi-0", "pi-1"));
}

TEST_F(LaneControllerTest, ACreationThatAPolicyRefusesIsToldAndTriedAgain) {
  answer("POST", "/durablejobs", refusal(403, "Forbidden"));
  world_.create(kBatchJobs, batch_job());
  start();
  ASSERT_TRUE(until([&] { return count("Job DurableJobRefused") > 0; }));
  EXPECT_EQ(holds("Failed"), "");
  world_.before = nullptr;
  EXPECT_TRUE(until([&] { return !world_.all("pods").empty(); }, minutes(3)));
}

TEST_F(LaneControllerTest, ACreationThatCanNeverSucceedFailsTheJob) {
  answer("POST", "/durablejobs", refusal(422, "Invalid", "spec.lostAfterSeconds"));
  world_.create(kBatchJobs, batch_job());
  start();
  ASSERT_TRUE(until([&] { return !holds("Failed").empty(); }));
  EXPECT_EQ(holds("Failed"), "NotSupported");
}

TEST_F(LaneControllerTest, ADeletedDurableJobFailsItsJobOnceItsPodsAreGone) {
  begin();
  world_.remove(path(kJobs, "pi"), {{"propagationPolicy", "Background"}});
  ASSERT_TRUE(until([&] { return !holds("FailureTarget").empty(); }));
  EXPECT_EQ(holds("Failed"), "") << "its pod still runs";
  world_.collect_garbage();
  ASSERT_TRUE(until(
      [&] {
        stop_pods();
        return !holds("Failed").empty();
      },
      minutes(1)));
  EXPECT_EQ(holds("Failed"), "DurableJobDeleted");
  EXPECT_THAT(world_.all("durablejobs"), IsEmpty());
}

// ---- Strays.

// As a replica that was paused before its POST does it.
TEST_F(LaneControllerTest, ADurableJobThatIsMadeAgainForAFinishedJobIsDeleted) {
  begin();
  Json again = durable();
  again.erase("status");
  for (const char* const field : {"uid", "resourceVersion", "generation"}) {
    again["metadata"].erase(field);
  }
  end_pod(true);
  ASSERT_TRUE(until([&] { return !holds("Complete").empty(); }));
  world_.remove(path(kJobs, "pi"), {{"propagationPolicy", "Background"}});
  world_.collect_garbage();
  world_.run(seconds(5));
  ASSERT_TRUE(durable().is_null());
  world_.create(kJobs, again);
  expect_nothing_left();
  EXPECT_EQ(holds("Complete"), "CompletionsReached");
}

TEST_F(LaneControllerTest, TheDurableJobOfAFinishedJobStays) {
  begin();
  end_pod(true);
  ASSERT_TRUE(until([&] { return !holds("Complete").empty(); }));
  world_.stop();
  start();
  world_.run(minutes(1));
  EXPECT_THAT(names("durablejobs"), ElementsAre("pi"));
}

// A UID in an ownerReference is only a text. The owner is in the namespace of what it owns.
TEST_F(LaneControllerTest, ADurableJobOfAnotherNamespaceIsNobodys) {
  begin();
  Json foreign = durable();
  foreign.erase("status");
  for (const char* const field : {"uid", "resourceVersion", "generation"}) {
    foreign["metadata"].erase(field);
  }
  foreign["metadata"]["namespace"] = "other";
  foreign["metadata"]["name"] = "a";
  std::vector<std::string> deletions;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool is_its = request.target.find("/other/durablejobs/") != std::string::npos;
    if (request.method == "DELETE" && is_its) deletions.push_back(request.target);
    return std::nullopt;
  };
  world_.create("/api/v1/namespaces",
                {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "other"}}}});
  world_.create("/apis/holdfast.dev/v1alpha1/namespaces/other/durablejobs", foreign);
  world_.run(minutes(1));
  EXPECT_THAT(deletions, ElementsAre()) << "it is no stray of pi";
}

}  // namespace
}  // namespace holdfast::lane_controller::testing
