#include "operator/runtime/release_pods.h"
#include "core/json.h"

#include <gmock/gmock.h>

#include "tests/unit/kube/client_fixture.h"

namespace holdfast::runtime {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

Json lease(int version, int duration = 15) {
  return {{"metadata",
           {{"name", "holdfast-member-a"},
            {"namespace", "ops"},
            {"uid", "lease-a"},
            {"resourceVersion", std::to_string(version)},
            {"labels", {{"holdfast.dev/lease", "member"}}},
            {"annotations", {{"holdfast.dev/shards", "32"}}}}},
          {"spec", {{"holderIdentity", "a"}, {"leaseDurationSeconds", duration}}}};
}

Json pod(const std::string& name, const std::string& finalizer) {
  return {{"metadata",
           {{"name", name},
            {"namespace", "team"},
            {"uid", "uid-of-" + name},
            {"resourceVersion", "7"},
            {"finalizers", Json::array({"other.dev/f", finalizer})}}}};
}

std::string list_of(const std::vector<Json>& items, const std::string& next = "") {
  return Json{{"metadata", {{"resourceVersion", "9"}, {"continue", next}}}, {"items", items}}
      .dump();
}

class ReleasePodsTest : public kube::ClientTest {
 protected:
  void start_release(ReleaseOptions options) {
    outcome_ = start(release_pods(client_, std::move(options), Log()));
  }
  // The oldest request, which is to be this one, gets the answer.
  void expect(const std::string& method, const std::string& path, const std::string& answer,
              int status = 200) {
    ASSERT_EQ(transport_.pending(), 1U) << method << " " << path;
    EXPECT_EQ(transport_.request().method, method);
    EXPECT_THAT(transport_.request().target, HasSubstr(path));
    transport_.answer(status, answer);
    loop_.run_ready();
  }
  void expect_leases(const std::vector<Json>& leases) {
    expect("GET", "/namespaces/ops/leases?", list_of(leases));
  }
  // None of them names targets.
  void expect_jobs(const std::string& namespace_ = "") {
    expect("GET", (namespace_.empty() ? "" : "/namespaces/" + namespace_) + "/durablejobs?",
           list_of({}));
  }
  bool over() const { return outcome_->has_value(); }
  int released() const { return outcome_->value().ok() ? *outcome_->value() : -1; }

  std::shared_ptr<std::optional<Result<int>>> outcome_;
};

TEST_F(ReleasePodsTest, TakesItsFinalizerAloneOffAndEndsWhenAWholeListHasNone) {
  start_release({"ops", {}, ""});
  expect_leases({});
  expect("GET", "/api/v1/pods?",
         list_of({pod("theirs", "x.dev/y"), pod("ours", "holdfast.dev/outcome")}));
  const Json body = Json::parse(transport_.request().body);
  EXPECT_EQ(body["metadata"]["uid"], "uid-of-ours");
  EXPECT_EQ(body["metadata"]["$deleteFromPrimitiveList/finalizers"],
            Json::array({"holdfast.dev/outcome"}));
  expect("PATCH", "/namespaces/team/pods/ours", "{}");
  EXPECT_FALSE(over());
  expect("GET", "/api/v1/pods?", list_of({pod("theirs", "x.dev/y")}));
  expect_jobs();
  EXPECT_FALSE(over());
  expect_leases({});
  ASSERT_TRUE(over());
  EXPECT_EQ(released(), 1);
}

// Nobody would notify its targets any more.
TEST_F(ReleasePodsTest, JobsThatTheirOutboxHoldsAreReleasedToo) {
  start_release({"ops", {}, ""});
  expect_leases({});
  expect("GET", "/api/v1/pods?", list_of({}));
  Json held = pod("pi", "holdfast.dev/outbox");
  expect("GET", "/apis/holdfast.dev/v1alpha1/durablejobs?",
         list_of({pod("theirs", "x.dev/y"), held}));
  const Json body = Json::parse(transport_.request().body);
  EXPECT_EQ(body["metadata"]["uid"], "uid-of-pi");
  EXPECT_EQ(body["metadata"]["resourceVersion"], held["metadata"]["resourceVersion"]);
  EXPECT_EQ(body["metadata"]["finalizers"], Json::array({"other.dev/f"}));
  expect("PATCH", "/namespaces/team/durablejobs/pi", R"({"message": "changed"})", 409);
  expect("GET", "/durablejobs?", list_of({}));
  expect_leases({});
  ASSERT_TRUE(over());
  EXPECT_EQ(released(), 0);
}

// An uninstall that is done in another order.
TEST_F(ReleasePodsTest, WithoutTheDefinitionOfJobsNoneIsHeld) {
  start_release({"ops", {}, ""});
  expect_leases({});
  expect("GET", "/api/v1/pods?", list_of({}));
  expect("GET", "/durablejobs?", "{}", 404);
  expect_leases({});
  EXPECT_TRUE(over() && outcome_->value().ok());
}

TEST_F(ReleasePodsTest, ScalesTheDeploymentToZeroFirst) {
  start_release({"ops", {}, "operator"});
  EXPECT_EQ(transport_.request().body, R"({"spec":{"replicas":0}})");
  expect("PATCH", "/apis/apps/v1/namespaces/ops/deployments/operator/scale", "{}");
  expect_leases({});
  expect("GET", "/api/v1/pods?", list_of({}));
  expect_jobs();
  expect_leases({});
  ASSERT_TRUE(over());
  EXPECT_EQ(released(), 0);
}

TEST_F(ReleasePodsTest, ADeploymentThatIsGoneNeedsNoStop) {
  start_release({"ops", {}, "operator"});
  expect("PATCH", "/scale", "{}", 404);
  expect_leases({});
  expect("GET", "/api/v1/pods?", list_of({}));
  expect_jobs();
  expect_leases({});
  EXPECT_TRUE(over());
}

// A replica that lives would put the finalizer on the next pod, and its writes count.
TEST_F(ReleasePodsTest, WaitsUntilAReplicaThatRenewsIsGone) {
  start_release({"ops", {}, ""});
  for (int version = 1; version <= 40; ++version) {
    expect_leases({lease(version)});
    loop_.advance(seconds(1));
  }
  expect_leases({});
  expect("GET", "/api/v1/pods?", list_of({}));
  expect_jobs();
  expect_leases({});
  EXPECT_TRUE(over());
}

TEST_F(ReleasePodsTest, ALeaseThatHasNotChangedForItsDurationIsOfADeadReplica) {
  start_release({"ops", {}, ""});
  for (int second = 0; second <= 15; ++second) {
    expect_leases({lease(1)});
    loop_.advance(seconds(1));
  }
  expect_leases({lease(1)});  // 16 s after it was first seen
  expect("GET", "/api/v1/pods?", list_of({}));
  expect_jobs();
  expect_leases({lease(1)});
  EXPECT_TRUE(over());
  EXPECT_EQ(released(), 0);
}

TEST_F(ReleasePodsTest, ADeadReplicaWithALongLeaseIsWaitedForAsLongAsThatLasts) {
  start_release({"ops", {}, ""});
  for (int second = 0; second <= 3600; ++second) {
    expect_leases({lease(1, 3600)});
    loop_.advance(seconds(1));
  }
  expect_leases({lease(1, 3600)});
  expect("GET", "/api/v1/pods?", list_of({}));
  expect_jobs();
  expect_leases({lease(1, 3600)});
  EXPECT_EQ(released(), 0);
}

TEST_F(ReleasePodsTest, AReplicaThatCameBackMeanwhileIsNamed) {
  start_release({"ops", {}, ""});
  expect_leases({});
  expect("GET", "/api/v1/pods?", list_of({}));
  expect_jobs();
  expect_leases({lease(1)});
  ASSERT_TRUE(over());
  EXPECT_THAT(outcome_->value().error().message, HasSubstr("replica a was started meanwhile"));
}

TEST_F(ReleasePodsTest, AReplicaThatStaysAliveIsNamedAndNothingIsReleased) {
  start_release({"ops", {}, ""});
  int version = 1;
  while (!over() && version < 1000) {
    expect_leases({lease(++version)});
    loop_.advance(seconds(1));
  }
  ASSERT_TRUE(over());
  ASSERT_FALSE(outcome_->value().ok());
  EXPECT_THAT(outcome_->value().error().message, HasSubstr("replica a is still alive"));
}

TEST_F(ReleasePodsTest, ListedNamespacesAloneAreLookedAtPageByPage) {
  start_release({"ops", {"x", "y"}, ""});
  expect_leases({});
  expect("GET", "/namespaces/x/pods?limit=500", list_of({}, "next page"));
  expect("GET", "continue=next%20page", list_of({pod("ours", "holdfast.dev/outcome")}));
  expect("PATCH", "/pods/ours", "{}", 404);  // gone meanwhile
  expect("GET", "/namespaces/x/pods?limit=500", list_of({}));
  expect("GET", "/namespaces/y/pods?limit=500", list_of({}));
  expect_jobs("x");
  expect_jobs("y");
  expect_leases({});
  EXPECT_TRUE(over());
  EXPECT_EQ(released(), 1);
}

Json batch_job(const char* manager, const char* finished = "False") {
  return {
      {"metadata",
       {{"name", "pi"},
        {"namespace", "team"},
        {"uid", "uid-of-pi"},
        {"resourceVersion", "8"},
        {"labels", {{"app", "x"}}}}},
      {"spec", {{"managedBy", manager}}},
      {"status",
       {{"active", 1}, {"conditions", Json::array({{{"type", "Failed"}, {"status", finished}}})}}}};
}

// Nothing else could end them: spec.managedBy cannot be changed.
TEST_F(ReleasePodsTest, JobsThatOnlyTheOperatorRunsAreFailedWithAMessage) {
  transport_.date = parse_time("2026-03-01T12:00:00Z");
  start_release({"ops", {}, "", true});
  expect_leases({});
  expect("GET", "/api/v1/pods?", list_of({}));
  expect_jobs();
  expect("GET", "/apis/batch/v1/jobs?",
         list_of({batch_job("example.com/other"), batch_job("holdfast.dev/operator", "True"),
                  batch_job("holdfast.dev/operator")}));
  expect("GET", "/namespaces/team/jobs/pi", batch_job("holdfast.dev/operator").dump());
  const Json body = Json::parse(transport_.request().body);
  EXPECT_EQ(body["metadata"]["resourceVersion"], "8");
  EXPECT_EQ(body["metadata"]["labels"]["app"], "x") << "others keep what is theirs";
  EXPECT_FALSE(body["status"].contains("active"));
  EXPECT_EQ(body["status"]["conditions"][1]["type"], "FailureTarget");
  EXPECT_EQ(body["status"]["conditions"][0]["reason"], "HoldfastUninstalled");
  expect("PUT", "/namespaces/team/jobs/pi/status", R"({"message": "changed"})", 409);
  expect("GET", "/apis/batch/v1/jobs?", list_of({batch_job("holdfast.dev/operator")}));
  expect("GET", "/namespaces/team/jobs/pi", batch_job("holdfast.dev/operator").dump());
  expect("PUT", "/namespaces/team/jobs/pi/status", "{}");
  expect_leases({});
  EXPECT_EQ(released(), 0);
}

TEST_F(ReleasePodsTest, AJobWhoseStatusIsRefusedKeepsNoOtherActive) {
  transport_.date = parse_time("2026-03-01T12:00:00Z");
  start_release({"ops", {"x", "y"}, "", true});
  expect_leases({});
  expect("GET", "/namespaces/x/pods?", list_of({}));
  expect("GET", "/namespaces/y/pods?", list_of({}));
  expect_jobs("x");
  expect_jobs("y");
  for (const char* const namespace_ : {"x", "y"}) {
    expect("GET", "/namespaces/" + std::string(namespace_) + "/jobs?",
           list_of({batch_job("holdfast.dev/operator")}));
    expect("GET", "/namespaces/team/jobs/pi", batch_job("holdfast.dev/operator").dump());
    expect("PUT", "/namespaces/team/jobs/pi/status", R"({"message": "a webhook says no"})", 403);
  }
  ASSERT_TRUE(over());
  EXPECT_THAT(outcome_->value().error().message, HasSubstr("Job team/pi: a webhook says no"));
}

// Its Role went with it.
TEST_F(ReleasePodsTest, AListedNamespaceThatIsGoneIsPassedOver) {
  start_release({"ops", {"gone", "y"}, "", true});
  expect_leases({});
  expect("GET", "/namespaces/gone/pods?", R"({"message": "no right to list pods"})", 403);
  expect("GET", "/api/v1/namespaces/gone", R"({"code": 404})", 404);
  expect("GET", "/namespaces/y/pods?", list_of({}));
  expect("GET", "/namespaces/gone/durablejobs?", R"({"message": "no right"})", 403);
  expect("GET", "/api/v1/namespaces/gone", R"({"code": 404})", 404);
  expect_jobs("y");
  expect("GET", "/namespaces/gone/jobs?", R"({"message": "no right"})", 403);
  expect("GET", "/api/v1/namespaces/gone", R"({"code": 404})", 404);
  expect("GET", "/namespaces/y/jobs?", list_of({}));
  expect_leases({});
  EXPECT_EQ(released(), 0);
}

TEST_F(ReleasePodsTest, AListedNamespaceThatIsThereAndForbiddenIsAnErrorThatKeepsNoOther) {
  start_release({"ops", {"x", "y"}, ""});
  expect_leases({});
  expect("GET", "/namespaces/x/pods?", R"({"message": "no right to list pods"})", 403);
  expect("GET", "/api/v1/namespaces/x", R"({"metadata": {"name": "x"}})");
  expect("GET", "/namespaces/y/pods?", list_of({}));
  ASSERT_TRUE(over());
  EXPECT_THAT(outcome_->value().error().message, HasSubstr("no right to list pods"));
}

TEST_F(ReleasePodsTest, ThatAllPodsMayNotBeListedIsAnError) {
  start_release({"ops", {}, ""});
  expect_leases({});
  expect("GET", "/api/v1/pods?", R"({"message": "no right to list pods"})", 403);
  ASSERT_TRUE(over());
  EXPECT_FALSE(outcome_->value().ok());
}

TEST_F(ReleasePodsTest, AListThatBrokeOffProvesNothing) {
  start_release({"ops", {}, ""});
  expect_leases({});
  expect("GET", "/api/v1/pods?limit=500", list_of({}, "next"));
  expect("GET", "continue=next", R"({"message": "too old", "reason": "Expired", "code": 410})",
         410);
  EXPECT_FALSE(over());
  expect("GET", "/api/v1/pods?limit=500", list_of({}));
  expect_jobs();
  expect_leases({});
  EXPECT_EQ(released(), 0);
}

TEST_F(ReleasePodsTest, ARefusedPatchSaysWhichPodAndKeepsNoOther) {
  start_release({"ops", {}, ""});
  expect_leases({});
  expect("GET", "/api/v1/pods?",
         list_of({pod("ours", "holdfast.dev/outcome"), pod("another", "holdfast.dev/outcome")}));
  expect("PATCH", "/pods/ours", R"({"message": "no right to patch pods"})", 403);
  expect("PATCH", "/pods/another", "{}");
  ASSERT_TRUE(over());
  EXPECT_THAT(outcome_->value().error().message, HasSubstr("pod team/ours: "));
}

}  // namespace
}  // namespace holdfast::runtime
