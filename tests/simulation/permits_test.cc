// The checker of S19 sees each of its rules broken, and nothing else. The writes are real requests
// to the simulated API server; no operator is there.
#include "tests/simulation/permits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "reconciler/names.h"
#include "tests/simulation/acts.h"
#include "tests/simulation/users.h"

namespace holdfast::simulation {
namespace {

using std::chrono::seconds;

const std::string kNamespace = "default";
constexpr const char* kHolder = "holdfast-0/1";

class PermitsCheck : public ::testing::Test {
 protected:
  PermitsCheck() {
    server_.on_applied([this](const Applied& write) {
      if (write.resource == "jobqueues") permits_.queue_written(write, by_);
      if (write.resource == "durablejobs") permits_.job_written(write);
      if (write.resource == "pods") permits_.pod_written(write, by_ != nullptr);
    });
  }

  void make_queue(const Json& spec) {
    user("POST", queue_target(kNamespace), of_kind("JobQueue", "q", spec));
  }
  void queue(const Json& spec = Json::object()) {
    make_queue(spec);
    claim(kHolder);
  }
  void job(const std::string& name, const Json& place = Json::object(),
           const Json& more = Json::object()) {
    Json spec = lasting_spec(4);
    spec["podReplacementPolicy"] = "TerminatingOrFailed";
    spec["queue"] = {{"name", "q"}};
    spec["queue"].update(place);
    spec.update(more);
    user("POST", job_target(kNamespace), of_kind("DurableJob", name, spec));
  }
  void queue_of(const std::vector<std::string>& jobs, const Json& spec = Json::object()) {
    queue(spec);
    for (const std::string& name : jobs) job(name);
  }
  void patch_job(const std::string& name, const Json& spec) {
    user("PATCH", job_target(kNamespace, name), {{"spec", spec}});
  }
  void patch_queue(const Json& spec) {
    user("PATCH", queue_target(kNamespace, "q"), {{"spec", spec}});
  }
  void delete_queue() { user("DELETE", queue_target(kNamespace, "q"), nullptr); }
  void delete_job(const std::string& name) {
    user("DELETE", job_target(kNamespace, name), nullptr);
  }

  // What a replica writes.
  void claim(const std::string& holder) {
    queue_status([&](Json& status) { status["holderIdentity"] = holder; });
  }
  void admit(const std::vector<std::string>& jobs) {
    queue_status([&](Json& status) {
      drop_old(status);
      for (const std::string& name : jobs) status["admitting"].push_back(admission(name));
    });
  }
  // Those whose jobs have moved.
  void drop_old(Json& status) const {
    Json open = Json::array();
    for (const Json& entry : at(status, "admitting")) {
      const Permits::Job* const job = permits_.job(string_at(entry, "uid"));
      if (job && !job->over && job->attempt == int_at(entry, "attempt")) open.push_back(entry);
    }
    status["admitting"] = open;
  }
  Json admission(const std::string& name) const {
    const Json* const job = server_.find("durablejobs", kNamespace, name);
    return {{"uid", uid_of(*job)}, {"attempt", int_at(at(*job, "status"), "attempt")}};
  }
  void queue_status(const std::function<void(Json& status)>& change) {
    Json body = *server_.find("jobqueues", kNamespace, "q");
    if (!body.contains("status")) body["status"] = Json::object();
    change(body["status"]);
    replica("PUT", queue_target(kNamespace, "q") + "/status", body);
  }
  void phase(const std::string& name, const std::string& phase, int more_attempts = 0,
             const std::string& reason = "Because") {
    Json body = *server_.find("durablejobs", kNamespace, name);
    Json& status = body["status"];
    status["phase"] = phase;
    status["attempt"] = int_at(status, "attempt") + more_attempts;
    status["waiting"] = {{"reason", reason}, {"message", "m"}, {"nextAction", "n"}};
    replica("PUT", job_target(kNamespace, name) + "/status", body);
  }
  void start(const std::string& name) { phase(name, "Running", 1); }
  void run(const std::string& name) {
    admit({name});
    start(name);
  }
  void wait_in_queue(const std::string& name) { phase(name, "Pending", 0, "Queued"); }
  void pod_of(const std::string& name) {
    const Json* const job = server_.find("durablejobs", kNamespace, name);
    const Json meta = {{"name", name + "-1"},
                       {"labels", {{reconciler::kJobUidLabel, uid_of(*job)}}},
                       {"ownerReferences", Json::array({{{"apiVersion", "holdfast.dev/v1alpha1"},
                                                         {"kind", "DurableJob"},
                                                         {"name", name},
                                                         {"uid", uid_of(*job)},
                                                         {"controller", true}}})}};
    const Json spec = {{"containers", Json::array({{{"name", "main"}, {"image", "image"}}})}};
    replica("POST", "/api/v1/namespaces/default/pods", {{"metadata", meta}, {"spec", spec}});
  }
  void end_pod_of(const std::string& name) {
    user("PATCH", pod_target(kNamespace, name + "-1") + "/status",
         {{"status", {{"phase", "Failed"}}}});
  }

  void pass(Duration time) { scheduler_.run_until(scheduler_.now() + time); }
  // Up to what it says of this one case.
  const std::string& violation() const { return violation_; }

 private:
  static Json of_kind(const char* kind, const std::string& name, const Json& spec) {
    return {{"apiVersion", "holdfast.dev/v1alpha1"},
            {"kind", kind},
            {"metadata", {{"name", name}}},
            {"spec", spec}};
  }
  void user(const std::string& method, const std::string& target, const Json& body) {
    const char* const type =
        method == "PATCH" ? "application/merge-patch+json" : "application/json";
    const auto answer = gateway_.ask("user", method, target, body, type);
    ASSERT_EQ(answer->status / 100, 2) << answer->body;
  }
  void replica(const std::string& method, const std::string& target, const Json& body) {
    Delivery delivery;
    delivery.replica = 0;
    delivery.sent = scheduler_.now();
    delivery.request = {"holdfast-0", method, target, "application/json", body.dump()};
    by_ = &delivery;
    const ApiAnswer answer = server_.handle(delivery.request);
    by_ = nullptr;
    ASSERT_EQ(answer.status / 100, 2) << answer.body;
  }

  Scheduler scheduler_;
  ApiServer server_{[this] { return Gateway::beginning() + scheduler_.now(); }, 1};
  Gateway gateway_{scheduler_, server_, 1};
  Strikes strikes_{Selection()};
  Cluster cluster_{scheduler_, gateway_, strikes_, 1};
  std::string violation_;
  const Delivery* by_ = nullptr;

 protected:
  Permits permits_{scheduler_, gateway_, cluster_, [this](const std::string& what) {
                     if (violation_.empty()) violation_ = what;
                   }};
};

TEST_F(PermitsCheck, IsContentWithAsManyPermitsAsThereMayBe) {
  queue({{"concurrency", 2}, {"concurrencyPerKey", 1}});
  job("a", {{"key", "x"}});
  job("b", {{"key", "y"}});
  job("c", {{"key", "x"}});
  admit({"a", "b"});
  start("a");
  start("b");
  phase("a", "Backoff");
  run("c");
  phase("b", "Backoff");
  phase("c", "Backoff");
  run("a");
  EXPECT_EQ(violation(), "");
}

TEST_F(PermitsCheck, SeesMoreAdmissionsThanConcurrency) {
  queue_of({"a", "b", "c"}, {{"concurrency", 2}});
  admit({"a", "b", "c"});
  EXPECT_EQ(violation(), "S19 Permits: default/q gives 3 of 2 permits");
}

TEST_F(PermitsCheck, SeesAnAdmissionBesideAJobThatRuns) {
  queue_of({"a", "b"}, {{"concurrency", 1}});
  run("a");
  EXPECT_EQ(violation(), "");
  admit({"b"});
  EXPECT_EQ(violation(), "S19 Permits: default/q gives 2 of 1 permits");
}

TEST_F(PermitsCheck, SeesAPermitTooManyOfAKey) {
  queue({{"concurrencyPerKey", 1}});
  job("a", {{"key", "x"}});
  job("b", {{"key", "x"}});
  run("a");
  admit({"b"});
  EXPECT_EQ(violation(), "S19 Permits: default/q gives 2 of 1 permits of key 'x'");
}

TEST_F(PermitsCheck, ALimitThatIsLoweredTakesNoPermitAway) {
  queue_of({"a", "b", "c"}, {{"concurrency", 3}});
  run("a");
  admit({"b"});
  patch_queue({{"concurrency", 1}});
  start("b");
  phase("a", "Backoff");
  EXPECT_EQ(violation(), "");
  admit({"c"});
  EXPECT_EQ(violation(), "S19 Permits: default/q gives 2 of 1 permits");
}

TEST_F(PermitsCheck, SeesAnAttemptThatWasNotAdmitted) {
  queue_of({"a"});
  start("a");
  EXPECT_EQ(violation(), "S19 Permits: an attempt starts without an admission: a, attempt 1");
}

TEST_F(PermitsCheck, SeesAnAttemptByTheAdmissionOfAnEarlierOne) {
  queue_of({"a"});
  run("a");
  phase("a", "Backoff");
  start("a");
  EXPECT_EQ(violation(), "S19 Permits: an attempt starts without an admission: a, attempt 2");
}

TEST_F(PermitsCheck, SeesAForgottenAdmissionUnlessItsJobHasMoved) {
  queue_of({"a", "b"});
  admit({"a", "b"});
  phase("a", "Suspended", 1);
  queue_status([&](Json& status) { status["admitting"].erase(0); });
  EXPECT_EQ(violation(), "");
  queue_status([&](Json& status) { status["admitting"] = Json::array(); });
  EXPECT_EQ(violation(), "S19 Permits: an admission of default/q is forgotten: b");
}

TEST_F(PermitsCheck, SeesAClaimThatAdmits) {
  queue_of({"a"});
  queue_status([&](Json& status) {
    status["holderIdentity"] = "holdfast-1/1";
    status["admitting"].push_back(admission("a"));
  });
  EXPECT_EQ(violation(), "S19 Permits: a claim of default/q admits jobs");
}

TEST_F(PermitsCheck, SeesAHeldQueueThatAdmits) {
  queue_of({"a"}, {{"hold", true}});
  admit({"a"});
  EXPECT_EQ(violation(), "S19 Permits: default/q is held, and admits jobs");
}

TEST_F(PermitsCheck, SeesAJobOfAnotherQueue) {
  queue();
  job("a", {{"name", "other"}});
  admit({"a"});
  EXPECT_EQ(violation(), "S19 Permits: default/q admits a job of another: a");
}

TEST_F(PermitsCheck, SeesAJobThatIsAdmittedTwice) {
  queue_of({"a"});
  admit({"a", "a"});
  EXPECT_EQ(violation(), "S19 Permits: a job is admitted twice: default/q");
}

TEST_F(PermitsCheck, SeesMoreAdmissionsThanTheRateAllows) {
  queue_of({"a", "b", "c", "d"}, {{"rate", {{"jobs", 2}, {"periodSeconds", 100}}}});
  admit({"a", "b"});
  pass(seconds(50));
  admit({"c"});
  EXPECT_EQ(violation(), "");
  pass(seconds(40));
  admit({"d"});
  EXPECT_NE(violation().find("default/q admits 4 jobs within 1m30s"), std::string::npos)
      << violation();
}

TEST_F(PermitsCheck, SeesAJobThatIsPassedOverUnlessItsKeyIsFull) {
  permits_.check_order(true);
  queue({{"concurrencyPerKey", 1}});
  job("runs", {{"key", "x"}});
  job("full", {{"key", "x"}, {"priority", 3}});
  job("next", {{"key", "y"}, {"priority", 2}});
  job("late", {{"key", "z"}, {"priority", 1}});
  run("runs");
  for (const char* name : {"full", "next", "late"}) wait_in_queue(name);
  pass(seconds(1));
  admit({"late"});
  EXPECT_EQ(violation(), "") << "not everybody may have seen them";
  pass(seconds(5));
  job("later", {{"key", "w"}});
  admit({"later"});
  EXPECT_EQ(violation(), "S19 Permits: default/q admits later before next");
}

TEST_F(PermitsCheck, APodKeepsThePermitOnlyWithThatPolicy) {
  queue_of({"b"}, {{"concurrency", 1}});
  for (const std::string policy : {"TerminatingOrFailed", "Failed"}) {
    const std::string name = policy == "Failed" ? "strict" : "lax";
    job(name, Json::object(), {{"podReplacementPolicy", policy}});
    run(name);
    pod_of(name);
    phase(name, "Suspended");
    if (policy == "Failed") end_pod_of(name);
    run("b");
    phase("b", "Backoff");
    EXPECT_EQ(violation(), "") << policy;
  }
  phase("strict", "Pending");
  job("stricter", Json::object(), {{"podReplacementPolicy", "Failed"}});
  run("stricter");
  pod_of("stricter");
  phase("stricter", "Suspended");
  admit({"b"});
  EXPECT_EQ(violation(), "S19 Permits: default/q gives 2 of 1 permits");
}

TEST_F(PermitsCheck, AJobThatIsCancelledWhileItWaitsIsGivenNothing) {
  queue_of({"a", "b"}, {{"concurrency", 1}});
  run("a");
  phase("a", "Backoff");
  admit({"b"});
  patch_job("a", {{"cancel", true}});
  phase("a", "Cancelling");
  start("b");
  EXPECT_EQ(violation(), "");
}

TEST_F(PermitsCheck, SeesTheAdmissionsOfADeletedQueueForgottenByTheTenureThatGaveThem) {
  queue_of({"a"}, {{"concurrency", 1}});
  admit({"a"});
  delete_queue();
  queue({{"concurrency", 1}});
  EXPECT_EQ(violation(),
            "S19 Permits: an admission of the queue that default/q was before is forgotten: a");
}

TEST_F(PermitsCheck, AClaimMayCarryTheAdmissionsOfADeletedQueue) {
  queue_of({"a", "b"}, {{"concurrency", 1}});
  const Json first = admission("a");
  run("a");
  phase("a", "Backoff");
  const Json second = admission("b");
  admit({"b"});
  delete_queue();
  make_queue({{"concurrency", 1}});
  queue_status([&](Json& status) {
    status["holderIdentity"] = kHolder;
    status["admitting"] = {first, second};
  });
  start("b");
  EXPECT_EQ(violation(), "");
}

TEST_F(PermitsCheck, AnotherTenureCannotKnowTheAdmissionsOfADeletedQueue) {
  queue_of({"a", "b"}, {{"concurrency", 1}});
  admit({"a"});
  claim("holdfast-1/1");
  delete_queue();
  queue({{"concurrency", 1}});
  admit({"b"});
  start("a");
  start("b");
  EXPECT_EQ(violation(), "");
}

TEST_F(PermitsCheck, KnowsWhichAttemptsMayBeSkipped) {
  queue_of({"a"});
  admit({"a"});
  const std::string uid = string_at(admission("a"), "uid");
  EXPECT_TRUE(permits_.was_admitted(uid, 0));
  EXPECT_FALSE(permits_.was_admitted(uid, 1));
}

TEST_F(PermitsCheck, KnowsWhatDecidesTheShardOfAJob) {
  queue_of({"a"});
  const std::string uid = string_at(admission("a"), "uid");
  EXPECT_THAT(permits_.shard_keys(uid), testing::ElementsAre(kNamespace));
  delete_job("a");
  EXPECT_THAT(permits_.shard_keys(uid), testing::ElementsAre(kNamespace, uid));
  EXPECT_THAT(permits_.shard_keys("without a queue"), testing::ElementsAre("without a queue"));
}

}  // namespace
}  // namespace holdfast::simulation
