// The controller of pools in a whole operator, over a simulated API server: in which order it
// writes, and what it leaves alone.
#include "operator/pools/pool_controller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/pools/operator_world.h"

namespace holdfast::pools::testing {
namespace {

using simulation::ApiAnswer;
using simulation::ApiRequest;
using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr seconds kDuration{30};

Json pool(const Json& over = Json::object()) {
  Json spec = {
      {"template",
       {{"spec",
         {{"containers",
           Json::array({{{"name", "worker"}, {"image", "image"}, {"command", {"/work"}}}})}}}}},
      {"minWorkers", 0},
      {"maxWorkers", 3},
      {"leaseDurationSeconds", kDuration.count()}};
  spec.update(over);
  return {{"apiVersion", "holdfast.dev/v1alpha1"},
          {"kind", "WorkerPool"},
          {"metadata", {{"name", "small"}}},
          {"spec", std::move(spec)}};
}

Json job(const std::string& name) {
  return {{"apiVersion", "holdfast.dev/v1alpha1"},
          {"kind", "DurableJob"},
          {"metadata", {{"name", name}}},
          {"spec", {{"workerPool", {{"name", "small"}}}}}};
}

class PoolControllerTest : public ::testing::Test {
 protected:
  std::vector<std::string> pods() const {
    std::vector<std::string> uids;
    for (const Json& pod : world_.all("pods")) uids.push_back(uid_of(pod));
    return uids;
  }
  static bool contains(const std::vector<std::string>& list, const std::string& one) {
    return std::find(list.begin(), list.end(), one) != list.end();
  }
  static std::string uid_of(const Json& object) { return string_at(at(object, "metadata"), "uid"); }
  Json worker_lease(const std::string& pod) const {
    return world_.find("leases", "holdfast-worker-" + pod);
  }
  std::string holder(const std::string& pod) const {
    return string_at(at(worker_lease(pod), "spec"), "holderIdentity");
  }
  Json status(const std::string& name) const {
    return at(world_.find("durablejobs", name), "status");
  }
  std::int64_t attempt(const std::string& name) const { return int_at(status(name), "attempt"); }
  std::string phase(const std::string& name) const { return string_at(status(name), "phase"); }
  std::string reason(const std::string& name) const {
    return string_at(at(status(name), "waiting"), "reason");
  }
  std::string last_outcome(const std::string& name) const {
    const Json history = at(status(name), "history");
    return history.empty() ? "" : string_at(history.back(), "outcome");
  }
  bool until(const std::function<bool()>& done, Duration limit = seconds(5)) {
    return world_.run_until(done, limit);
  }

  // A worker is live, and runs the job.
  std::string running_job(const std::string& name, const Json& over = Json::object(),
                          bool begins = true) {
    world_.create(kPools, pool());
    world_.start();
    Json body = job(name);
    body["spec"].update(over);
    world_.create(kJobs, body);
    EXPECT_TRUE(
        until([&] { return pods().size() == 1 && !holder(pods()[0]).empty(); }, minutes(1)));
    const std::string pod = pods().at(0);
    EXPECT_TRUE(until([&] { return !world_.find("leases", "holdfast-work-" + pod).is_null(); }));
    world_.renew(pod, report());
    EXPECT_TRUE(until([&] { return !world_.work(pod).entries.empty(); }));
    if (begins) answer_running(pod);
    world_.run(seconds(1));
    EXPECT_EQ(phase(name), "Running");
    return pod;
  }
  WorkerReport report() const {
    WorkerReport report;
    report.life = "life-1";
    return report;
  }
  // The pool is edited and the operator killed, and then somebody deletes the worker's Leases.
  void forget_leases(const std::string& pod) {
    world_.patch(std::string(kPools) + "/small", {{"spec", {{"leaseDurationSeconds", 5}}}});
    world_.stop();
    for (const char* const name : {"holdfast-worker-", "holdfast-work-"}) {
      world_.remove(kLeases + ("/" + (name + pod)));
    }
  }
  static Json ended_status() {
    return Json::parse(R"({"phase": "Failed", "containerStatuses": [{"name": "main", "state":
        {"terminated": {"exitCode": 1, "reason": "Error",
                        "finishedAt": "2023-11-14T22:15:00Z"}}}]})");
  }
  void answer_running(const std::string& pod) {
    WorkerReport says = report();
    for (const WorkEntry& entry : world_.work(pod).entries) {
      Answer answer;
      answer.id = entry.id;
      says.answers.push_back(answer);
    }
    world_.renew(pod, says);
  }
  // The first of its attempts has ended.
  void answer_ended(const std::string& pod) {
    WorkerReport says = report();
    Answer answer;
    answer.id = world_.work(pod).entries.at(0).id;
    answer.kind = AnswerKind::kEnded;
    says.answers.push_back(answer);
    world_.renew(pod, says);
  }

  OperatorWorld world_;
};

TEST_F(PoolControllerTest, AWorkerIsMadeForJobsThatWaitAndTheyStartOnceItIsLive) {
  world_.create(kPools, pool());
  world_.start();
  world_.run(seconds(5));
  EXPECT_THAT(pods(), IsEmpty()) << "nothing waits";
  world_.create(kJobs, job("one"));
  ASSERT_TRUE(until([&] { return pods().size() == 1; }));
  const std::string pod = pods()[0];
  ASSERT_TRUE(until([&] { return !world_.find("leases", "holdfast-work-" + pod).is_null(); }));
  EXPECT_THAT(holder(pod), ::testing::EndsWith("/" + pod));
  world_.run(seconds(3));
  EXPECT_EQ(attempt("one"), 0) << "its agent has not renewed its Lease";
  EXPECT_EQ(pods().size(), 1U) << "a worker that starts is capacity";
  world_.renew(pod, report());
  ASSERT_TRUE(until([&] { return !world_.work(pod).entries.empty(); }));
  EXPECT_EQ(attempt("one"), 1) << "the intent comes first";
  EXPECT_EQ(string_at(at(status("one"), "runs")[0], "workerUID"), uid_of(worker_lease(pod)));
}

TEST_F(PoolControllerTest, AWorkerIsMarkedBeforeItsPodIsDeleted) {
  const std::string pod = running_job("one");
  bool was_marked = false;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool deletes = request.method == "DELETE" && request.target.starts_with(kPods);
    if (deletes) was_marked = world_.work(pod).draining;
    return std::nullopt;
  };
  // Its template is another one now.
  world_.patch(std::string(kPools) + "/small", {{"spec", {{"slotsPerWorker", 2}}}});
  world_.create(kJobs, job("two"));
  ASSERT_TRUE(until([&] { return pods().size() == 2; }));
  world_.run(seconds(2));
  EXPECT_FALSE(was_marked) << "it is busy";
  std::string newer;
  for (const std::string& one : pods()) newer = one == pod ? newer : one;
  ASSERT_TRUE(until([&] { return !world_.find("leases", "holdfast-work-" + newer).is_null(); }));
  world_.renew(newer, report());
  ASSERT_TRUE(until(
      [&] {
        answer_running(pod);
        world_.run(seconds(1));
        return world_.work(pod).draining;
      },
      seconds(20)));
  EXPECT_EQ(pods().size(), 2U) << "it still runs its attempt";
  answer_ended(pod);
  ASSERT_TRUE(until([&] {
    return !at(at(world_.find("pods", string_at(at(world_.all("pods").at(0), "metadata"), "name")),
                  "metadata"),
               "deletionTimestamp")
                .is_null() ||
           pods().size() < 2;
  }));
  EXPECT_TRUE(was_marked);
  EXPECT_EQ(phase("one"), "Succeeded");
}

TEST_F(PoolControllerTest, ADeletionThatFailsIsTriedAgainAfterAPause) {
  const std::string pod = running_job("one");
  std::optional<ApiAnswer> answer = ApiAnswer{500, R"({"kind": "Status", "code": 500})", 0};
  int tries = 0;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method != "DELETE" || !request.target.starts_with(kPods)) return std::nullopt;
    ++tries;
    return answer;
  };
  // It is cut off, so its pod has to go.
  ASSERT_TRUE(until([&] { return tries > 0; }, kDuration + seconds(5)));
  EXPECT_TRUE(until([&] { return pods().size() == 2; }, seconds(5))) << "the next one comes";
  world_.run(minutes(2));
  EXPECT_LE(tries, 8) << "after 5, 10, 20 and then each 30 seconds";
  EXPECT_GE(tries, 5);
  answer.reset();
  ASSERT_TRUE(until([&] { return !contains(pods(), pod); }, seconds(31)));
}

// No image, and a webhook that refuses deletions.
TEST_F(PoolControllerTest, APodThatCannotStartAndCannotBeDeletedLeavesNoRoomForMore) {
  world_.create(kPools, pool({{"minWorkers", 1}, {"maxWorkers", 1}}));
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method != "DELETE" || !request.target.starts_with(kPods)) return std::nullopt;
    return ApiAnswer{500, R"({"kind": "Status", "code": 500})", 0};
  };
  const Json waiting = {{"reason", "ErrImagePull"}, {"message", "no such image"}};
  for (int life = 0; life < 2; ++life) {
    world_.start();
    ASSERT_TRUE(until([&] { return !pods().empty(); }, minutes(1)));
    for (int minute = 0; minute < 15; ++minute) {
      for (const Json& pod : world_.all("pods")) {
        world_.patch(
            std::string(kPods) + "/" + string_at(at(pod, "metadata"), "name") + "/status",
            {{"status",
              {{"phase", "Pending"},
               {"containerStatuses",
                Json::array({{{"name", "worker"}, {"state", {{"waiting", waiting}}}}})}}}});
      }
      world_.run(minutes(1));
      EXPECT_EQ(pods().size(), 1u);
    }
    world_.stop();
  }
}

TEST_F(PoolControllerTest, ANewReplicaGoesOnWithTheIdleTime) {
  const std::string pod = running_job("one");
  answer_ended(pod);
  ASSERT_TRUE(until([&] { return world_.work(pod).entries.empty(); }));
  EXPECT_EQ(phase("one"), "Succeeded");
  const auto stays_for = [&](Duration time) {
    for (Duration step = kDuration / 3; time > Duration::zero(); time -= step) {
      if (world_.work(pod).draining) return false;
      world_.renew(pod, report());
      world_.run(std::min(step, time));
    }
    return !world_.work(pod).draining;
  };
  // Each process lives for less than idleSeconds.
  for (int lives = 0; lives < 2; ++lives) {
    EXPECT_TRUE(stays_for(seconds(120)));
    world_.stop();
    world_.start();
  }
  EXPECT_TRUE(stays_for(seconds(50))) << "290 s, of 300";
  EXPECT_FALSE(stays_for(seconds(30)));
}

// Its idle time may be over already, and jobs may have come while nobody was there.
TEST_F(PoolControllerTest, ANewReplicaHearsOfJobsBeforeItDrainsIdleWorkers) {
  const std::string pod = running_job("one");
  answer_ended(pod);
  ASSERT_TRUE(until([&] { return world_.work(pod).entries.empty(); }));
  for (Duration step = kDuration / 3, time = seconds(290); time > Duration::zero(); time -= step) {
    world_.renew(pod, report());
    world_.run(std::min(step, time));
  }
  world_.stop();
  for (int step = 0; step < 3; ++step) {
    world_.renew(pod, report());
    world_.run(kDuration / 3);
  }
  world_.create(kJobs, job("two"));
  world_.start();
  EXPECT_TRUE(until(
      [&] {
        world_.renew(pod, report());
        world_.run(std::chrono::milliseconds(100));
        return !world_.work(pod).entries.empty();
      },
      seconds(60)));
  EXPECT_FALSE(world_.work(pod).draining);
}

// Its work Lease is older than its service.
TEST_F(PoolControllerTest, AWorkerThatStartedSlowlyIsIdleOnlySinceItIsLive) {
  world_.create(kPools, pool({{"idleSeconds", 60}, {"minWorkers", 1}}));
  world_.start();
  ASSERT_TRUE(until([&] { return pods().size() == 1; }));
  const std::string pod = pods()[0];
  ASSERT_TRUE(until([&] { return !world_.find("leases", "holdfast-work-" + pod).is_null(); }));
  world_.run(seconds(100));
  world_.renew(pod, report());
  world_.run(seconds(1));
  world_.patch(std::string(kPools) + "/small", {{"spec", {{"minWorkers", 0}}}});
  world_.run(seconds(20));
  EXPECT_FALSE(world_.work(pod).draining);
  for (int step = 0; step < 5; ++step) {
    world_.renew(pod, report());
    world_.run(seconds(10));
  }
  EXPECT_TRUE(world_.work(pod).draining);
}

TEST_F(PoolControllerTest, ASilentWorkerIsCutOffAndItsAttemptIsLost) {
  const std::string pod = running_job("one");
  world_.run(kDuration - seconds(3));
  EXPECT_EQ(attempt("one"), 1);
  EXPECT_FALSE(holder(pod).empty());
  ASSERT_TRUE(until([&] { return holder(pod).empty(); }));
  ASSERT_TRUE(until([&] { return last_outcome("one") == "Lost"; })) << status("one");
}

TEST_F(PoolControllerTest, AConflictIsNoCutOff) {
  const std::string pod = running_job("one");
  int refused = 0;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool cuts_off = request.method == "PUT" &&
                          request.target.ends_with("/holdfast-worker-" + pod) &&
                          request.body.find("holderIdentity") == std::string::npos;
    // The agent is a moment faster.
    if (cuts_off && refused++ == 0) answer_running(pod);
    return std::nullopt;
  };
  ASSERT_TRUE(until([&] { return refused > 0; }, kDuration + seconds(2)));
  world_.run(seconds(5));
  EXPECT_EQ(refused, 1);
  EXPECT_THAT(holder(pod), ::testing::EndsWith("/" + pod));
  EXPECT_EQ(attempt("one"), 1);
  EXPECT_EQ(phase("one"), "Running");
}

TEST_F(PoolControllerTest, NothingIsDecidedBeforeTheLeasesWereRead) {
  const std::string pod = running_job("one");
  world_.start();
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool lists = request.method == "GET" &&
                       request.target.find("/leases?") != std::string::npos &&
                       request.target.find("worker-pool") != std::string::npos;
    if (!lists) return std::nullopt;
    return ApiAnswer{403, R"({"kind": "Status", "code": 403, "reason": "Forbidden"})", 0};
  };
  world_.create(kJobs, job("two"));
  world_.writes.clear();
  for (int second = 0; second < 120; second += 5) {
    world_.run(seconds(5));
    answer_running(pod);
  }
  EXPECT_THAT(world_.writes, Not(Contains(StartsWith("POST pods")))) << "a worker may be free";
  EXPECT_THAT(world_.writes, Not(Contains(::testing::HasSubstr("leases/holdfast-work"))));
  EXPECT_EQ(attempt("one"), 1) << "its worker is not missing";
  EXPECT_EQ(phase("one"), "Running");
}

// The first list of jobs has the new ones alone.
TEST_F(PoolControllerTest, ANewOwnerFreesNoWorkerBeforeTheJobsOfItsShardWereRead) {
  const std::string pod = running_job("one");
  world_.stop();
  bool is_held_up = true;
  world_.before = [&is_held_up](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool is_list =
        request.method == "GET" && request.target.find("/durablejobs?") != std::string::npos;
    const bool is_of_shards = request.target.find("status.shard!=none") != std::string::npos;
    if (!is_held_up || !is_list || !is_of_shards) return std::nullopt;
    return ApiAnswer{.status = 503, .body = R"({"kind":"Status","code":503,"message":"later"})"};
  };
  world_.start();
  for (int second = 0; second < 60; ++second) {
    world_.run(seconds(1));
    answer_running(pod);
  }
  EXPECT_EQ(world_.work(pod).entries.size(), 1u) << "its job is not gone";
  is_held_up = false;
  answer_running(pod);
  world_.run(seconds(20));
  EXPECT_EQ(world_.work(pod).entries.size(), 1u);
  EXPECT_EQ(phase("one"), "Running");
  answer_ended(pod);
  EXPECT_TRUE(until([&] { return phase("one") == "Succeeded"; }));
}

TEST_F(PoolControllerTest, ThePoolsEndMakesNoWorkerAndItsJobsSaySo) {
  const std::string pod = running_job("one");
  world_.remove(std::string(kPools) + "/small");
  world_.create(kJobs, job("two"));
  world_.writes.clear();
  for (int second = 0; second < 20; second += 5) {
    world_.run(seconds(5));
    answer_running(pod);
  }
  EXPECT_THAT(world_.writes, Not(Contains(StartsWith("POST"))));
  EXPECT_EQ(reason("two"), "PoolMissing");
  EXPECT_EQ(phase("one"), "Running") << "its worker goes on until the garbage collector comes";
  world_.collect_garbage();
  world_.run(kDuration - seconds(2));
  EXPECT_EQ(attempt("one"), 1) << "its command may still run";
  ASSERT_TRUE(until([&] { return last_outcome("one") == "Lost"; }, seconds(10)));
}

// Its watch is open and shows nothing. A live look shows that the command makes progress.
TEST_F(PoolControllerTest, AnAttemptIsHungOnlyAfterALiveLook) {
  const std::string pod = running_job("one", {{"heartbeat", {{"progressDeadlineSeconds", 10}}}});
  world_.stuck_watch = "/leases";
  for (int n = 0; n < 10; ++n) {
    answer_running(pod);
    world_.run(seconds(2));
  }
  EXPECT_EQ(last_outcome("one"), "");
  ASSERT_TRUE(until([&] { return last_outcome("one") == "Hung"; }, seconds(12)))
      << "its age of progress does not grow any more";
}

TEST_F(PoolControllerTest, AnAttemptIsNotBegunOnlyAfterALiveLook) {
  const std::string pod = running_job("one", {{"startDeadlineSeconds", 10}}, /*begins=*/false);
  world_.stuck_watch = "/leases";
  answer_running(pod);
  for (int n = 0; n < 6; ++n) {
    world_.run(seconds(2));
    answer_running(pod);
  }
  EXPECT_EQ(last_outcome("one"), "");
}

// An edit of the pool changes nothing for agents that run.
TEST_F(PoolControllerTest, AWorkerIsWaitedForAsLongAsItsAgentMayRun) {
  const std::string pod = running_job("one");
  world_.patch(std::string(kPools) + "/small", {{"spec", {{"leaseDurationSeconds", 5}}}});
  world_.stop();
  world_.remove(std::string(kLeases) + "/holdfast-worker-" + pod);
  world_.start();
  ASSERT_TRUE(until([&] { return holder(pod) == "revoked"; }, seconds(40)));
  EXPECT_EQ(int_at(at(worker_lease(pod), "spec"), "leaseDurationSeconds"), kDuration.count());
  world_.run(seconds(9));
  EXPECT_EQ(holder(pod), "revoked") << "its command may still run";
  EXPECT_EQ(last_outcome("one"), "") << "its Lease has been missing for less than its duration";
  // Since this process has read the jobs, which was before it had their shard.
  ASSERT_TRUE(until([&] { return last_outcome("one") == "Lost"; }, seconds(12)));
  ASSERT_TRUE(until([&] { return holder(pod).empty(); }, kDuration));
}

TEST_F(PoolControllerTest, AnIntentRecordsTheDurationOfTheWorkersAgent) {
  world_.create(kPools, pool({{"minWorkers", 1}}));
  world_.start();
  ASSERT_TRUE(until([&] { return pods().size() == 1; }, minutes(1)));
  const std::string pod = pods().at(0);
  ASSERT_TRUE(until([&] { return !world_.find("leases", "holdfast-work-" + pod).is_null(); }));
  world_.renew(pod, report());
  // The worker that is there takes jobs until another one has replaced it.
  world_.patch(std::string(kPools) + "/small", {{"spec", {{"leaseDurationSeconds", 5}}}});
  world_.run(seconds(1));
  world_.create(kJobs, job("one"));
  ASSERT_TRUE(until([&] { return attempt("one") == 1; }));
  const Json run = at(status("one"), "runs")[0];
  EXPECT_EQ(string_at(run, "workerUID"), uid_of(worker_lease(pod)));
  EXPECT_EQ(int_at(run, "workerLeaseDurationSeconds"), kDuration.count());
}

// The job's record says how long its agent may run, whatever the pool says by now.
TEST_F(PoolControllerTest, AWorkerThatThisProcessNeverSawIsJudgedByTheJobsRecord) {
  const std::string pod = running_job("one");
  forget_leases(pod);
  world_.start();
  world_.run(kDuration - seconds(2));
  EXPECT_EQ(last_outcome("one"), "");
  EXPECT_EQ(attempt("one"), 1);
  ASSERT_TRUE(until([&] { return last_outcome("one") == "Lost"; }, seconds(5)));
}

TEST_F(PoolControllerTest, AWorkerOfWhichNothingIsLeftIsJudgedByTheJobsRecord) {
  const std::string pod = running_job("one");
  forget_leases(pod);
  const std::string name = string_at(at(world_.all("pods").at(0), "metadata"), "name");
  world_.remove(std::string(kPods) + "/" + name);
  world_.patch(std::string(kPools) + "/small", {{"spec", {{"minWorkers", 1}}}});
  world_.start();
  ASSERT_TRUE(until([&] { return pods().size() == 1; }, seconds(25)));
  EXPECT_EQ(string_at(at(world_.all("pods").at(0), "metadata"), "name"), name)
      << "another worker has its pod's name, and a shorter duration";
  ASSERT_FALSE(until([&] { return last_outcome("one") == "Lost"; }, seconds(10)))
      << "the agent may run for longer than one of the pool as it is now";
  ASSERT_TRUE(until([&] { return last_outcome("one") == "Lost"; }, kDuration));
}

TEST_F(PoolControllerTest, ThePoolMayGoWithItsWorkersWhileNoOperatorRuns) {
  const std::string pod = running_job("one");
  world_.stop();
  world_.remove(std::string(kPools) + "/small");
  world_.collect_garbage();
  ASSERT_TRUE(worker_lease(pod).is_null());
  world_.start();
  world_.run(kDuration - seconds(2));
  EXPECT_EQ(last_outcome("one"), "") << "its command may still run";
  ASSERT_TRUE(until([&] { return last_outcome("one") == "Lost"; }, seconds(25)));
}

// An older operator has recorded the attempt.
TEST_F(PoolControllerTest, WithoutADurationOnRecordAWorkerIsWaitedForTheLongestTime) {
  const std::string pod = running_job("one");
  forget_leases(pod);
  Json runs = at(status("one"), "runs");
  ASSERT_EQ(runs.at(0).erase("workerLeaseDurationSeconds"), 1U);
  world_.patch(std::string(kJobs) + "/one/status", {{"status", {{"runs", runs}}}});
  world_.start();
  world_.run(minutes(3));
  EXPECT_EQ(last_outcome("one"), "");
  EXPECT_EQ(attempt("one"), 1);
}

// A slot is promised to a job whose status is written. That another write of the same look was
// refused does not change this.
TEST_F(PoolControllerTest, ARefusedWriteAfterTheStatusGivesNoSlotAway) {
  world_.create(kPools, pool({{"minWorkers", 1}, {"maxWorkers", 1}}));
  world_.start();
  ASSERT_TRUE(until([&] { return pods().size() == 1 && !holder(pods()[0]).empty(); }, minutes(1)));
  const std::string worker = pods().at(0);
  ASSERT_TRUE(until([&] { return !world_.find("leases", "holdfast-work-" + worker).is_null(); }));
  world_.renew(worker, report());
  Json staged = job("one");
  staged["spec"] = {
      {"template",
       {{"spec",
         {{"restartPolicy", "Never"},
          {"containers", Json::array({{{"name", "main"}, {"image", "image"}}})}}}}},
      {"stages", Json::array({{{"name", "after"}, {"workerPool", {{"name", "small"}}}}})}};
  world_.create(kJobs, staged);
  ASSERT_TRUE(until([&] { return pods().size() == 2; }));
  std::string own;
  for (const Json& one : world_.all("pods")) {
    if (uid_of(one) != worker) own = string_at(at(one, "metadata"), "name");
  }
  int refused = 0;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool places = request.method == "PUT" && request.target.ends_with("one/status") &&
                        request.body.find("workerUID") != std::string::npos;
    if (places && world_.stuck_watch.empty()) {
      world_.create(kJobs, job("two"));
      world_.stuck_watch = "/durablejobs";  // it does not show that "one" has the slot
    }
    const bool releases = request.method == "PATCH" && request.target.ends_with("pods/" + own);
    if (!releases) return std::nullopt;
    ++refused;
    return ApiAnswer{403, R"({"kind": "Status", "code": 403, "reason": "Forbidden"})", 0};
  };
  world_.renew(worker, report());
  Json status = ended_status();
  status["phase"] = "Succeeded";
  status["containerStatuses"][0]["state"]["terminated"]["exitCode"] = 0;
  world_.patch(std::string(kPods) + "/" + own + "/status", {{"status", status}});
  ASSERT_TRUE(until([&] { return !world_.stuck_watch.empty() && refused > 0; }));
  world_.run(std::chrono::milliseconds(800));
  EXPECT_EQ(attempt("two"), 0) << "the worker has one slot";
  world_.before = nullptr;
}

TEST_F(PoolControllerTest, AWorkerIsNotifiedWhenItsPodEnds) {
  const std::string worker = running_job("one");
  const std::string pod =
      std::string(kPods) + "/" + string_at(at(world_.all("pods").at(0), "metadata"), "name");
  world_.create(pod + "/binding", {{"target", {{"name", "node-1"}}}});
  EXPECT_FALSE(world_.work(worker).end);
  world_.remove(pod, {{"gracePeriodSeconds", 20}});
  ASSERT_TRUE(until([&] { return world_.work(worker).end.has_value(); }));
  const Json meta = at(world_.all("pods").at(0), "metadata");
  EXPECT_EQ(world_.work(worker).end->grace, seconds(20));
  EXPECT_EQ(format_time(world_.work(worker).end->at), string_at(meta, "deletionTimestamp"));
  EXPECT_TRUE(world_.work(worker).draining);
  world_.remove(pod, {{"gracePeriodSeconds", 5}});
  ASSERT_TRUE(until([&] { return world_.work(worker).end->grace == seconds(5); }));
}

// The job's record is refused until the pod is gone, and another process goes on.
TEST_F(PoolControllerTest, AKillForMemoryIsKnownWhenThePodIsGone) {
  const std::string worker = running_job("guilty", {{"backoffLimit", 0}});
  const std::string pod =
      std::string(kPods) + "/" + string_at(at(world_.all("pods").at(0), "metadata"), "name");
  world_.create(pod + "/binding", {{"target", {{"name", "node-1"}}}});
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method != "PUT" || !request.target.ends_with("guilty/status")) return std::nullopt;
    return ApiAnswer{403, R"({"kind": "Status", "code": 403, "reason": "Forbidden"})", 0};
  };
  // Another container of the pod goes on.
  const Json killed = Json::parse(R"({"phase": "Running", "containerStatuses": [{"name": "worker",
      "state": {"terminated": {"exitCode": 137, "reason": "OOMKilled",
                               "finishedAt": "2023-11-14T22:15:00Z"}}}]})");
  world_.patch(pod + "/status", {{"status", killed}});
  ASSERT_TRUE(until([&] { return holder(worker).empty(); }));
  world_.stop();
  world_.before = nullptr;
  world_.remove(pod, {{"gracePeriodSeconds", 0}});
  world_.start();
  ASSERT_TRUE(until([&] { return phase("guilty") == "Failed"; }, minutes(2)));
  const Json entry = at(status("guilty"), "history").back();
  EXPECT_EQ(string_at(entry, "reason"), "OOMKilled");
  EXPECT_EQ(int_at(entry, "exitCode"), 137);
}

// The last owner made it just before this one was on record.
TEST_F(PoolControllerTest, AnOwnerMakesNoPodBeforeItHasSeenThoseOfTheLastOne) {
  const std::string first = running_job("one");
  Json pod = world_.all("pods").at(0);
  world_.stop();
  world_.remove(std::string(kPods) + "/" + string_at(at(pod, "metadata"), "name"));
  for (const char* const name : {"holdfast-worker-", "holdfast-work-"}) {
    world_.remove(kLeases + ("/" + (name + first)));
  }
  world_.patch(std::string(kPools) + "/small", {{"spec", {{"maxWorkers", 1}}}});
  world_.create(kJobs, job("two"));
  pod["metadata"]["name"] = "small-2-late";
  for (const char* const field : {"uid", "resourceVersion", "creationTimestamp"}) {
    pod["metadata"].erase(field);
  }
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool records = request.method == "PUT" && request.target.ends_with("small/status");
    if (records && world_.stuck_watch.empty()) {
      world_.stuck_watch = "/pods";
      world_.create(kPods, pod);
    }
    return std::nullopt;
  };
  world_.start();
  ASSERT_TRUE(until([&] { return !world_.stuck_watch.empty(); }, minutes(1)));
  world_.run(seconds(20));
  EXPECT_EQ(pods().size(), 1u) << "the pool has at most one worker";
  world_.before = nullptr;
}

// It was not counted: with another name the pool would have one pod more than the plan.
TEST_F(PoolControllerTest, APodThatComesAfterThePlanIsAskedForByItsName) {
  world_.create(kPools, pool({{"minWorkers", 1}, {"maxWorkers", 1}}));
  world_.start();
  ASSERT_TRUE(until([&] { return pods().size() == 1; }, minutes(1)));
  world_.run(seconds(1));
  Json pod = world_.all("pods").at(0);
  const std::string name = string_at(at(pod, "metadata"), "name");
  for (const char* const field : {"uid", "resourceVersion", "creationTimestamp", "finalizers"}) {
    pod["metadata"].erase(field);
  }
  bool came = false;
  std::vector<std::string> asked;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    const bool records = request.method == "PUT" && request.target.ends_with("small/status");
    if (records && pods().empty() && !std::exchange(came, true)) world_.create(kPods, pod);
    if (request.method == "POST" && request.target.find("/pods") != std::string::npos) {
      asked.push_back(string_at(at(*parse_json(request.body), "metadata"), "name"));
    }
    return std::nullopt;
  };
  world_.remove(std::string(kPods) + "/" + name);
  ASSERT_TRUE(until([&] { return came; }, minutes(1)));
  world_.run(seconds(20));
  world_.before = nullptr;
  EXPECT_THAT(asked, ElementsAre(name));
  EXPECT_EQ(pods().size(), 1u);
}

// Without a record of this owner it makes no pod, so the plan stays the same.
TEST_F(PoolControllerTest, AStatusThatIsRefusedIsTriedAgainWithBackOff) {
  world_.create(kPools, pool());
  int refused = 0;
  world_.before = [&](const ApiRequest& request) -> std::optional<ApiAnswer> {
    if (request.method != "PUT" || !request.target.ends_with("small/status")) return std::nullopt;
    ++refused;
    return ApiAnswer{403, R"({"kind": "Status", "code": 403, "reason": "Forbidden"})", 0};
  };
  world_.start();
  world_.create(kJobs, job("one"));
  ASSERT_TRUE(until([&] { return refused > 0; }, minutes(1)));
  refused = 0;
  world_.run(minutes(1));
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 30);
  EXPECT_THAT(pods(), IsEmpty());
  world_.before = nullptr;
  EXPECT_TRUE(until([&] { return pods().size() == 1; }, minutes(1)));
}

// The queue counts permits, and a permit may mean a thing that the command uses.
TEST_F(PoolControllerTest, AJobKeepsItsPermitUntilItsSlotIsEmpty) {
  const char* const queues = "/apis/holdfast.dev/v1alpha1/namespaces/default/jobqueues";
  world_.create(queues, {{"apiVersion", "holdfast.dev/v1alpha1"},
                         {"kind", "JobQueue"},
                         {"metadata", {{"name", "licences"}}},
                         {"spec", {{"concurrency", 1}}}});
  const Json queued = {{"queue", {{"name", "licences"}}}};
  const std::string pod = running_job("first", queued);
  Json second = job("second");
  second["spec"].update(queued);
  world_.create(kJobs, second);
  world_.patch(std::string(kJobs) + "/first", {{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(until([&] { return phase("first") == "Suspended"; }));
  ASSERT_TRUE(until([&] {
    const Work work = world_.work(pod);
    return !work.entries.empty() && work.entries[0].stop;
  }));
  answer_running(pod);  // its command ignores SIGTERM
  world_.run(seconds(10));
  EXPECT_EQ(attempt("second"), 0);
  EXPECT_EQ(reason("second"), "Queued");
  WorkerReport says = report();
  says.answers.resize(1);
  says.answers[0].id = world_.work(pod).entries.at(0).id;
  says.answers[0].kind = AnswerKind::kStopped;
  world_.renew(pod, says);
  EXPECT_TRUE(until([&] { return phase("second") == "Running"; }));
}

}  // namespace
}  // namespace holdfast::pools::testing
