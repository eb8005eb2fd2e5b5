// What single requests do to the simulated API server, and what it says of them. That the real one
// says the same is shown by tests/integration/test_simulated_server.py.
#include "tests/simulation/server/fixture.h"

namespace holdfast::simulation {
namespace {

using ::testing::ElementsAre;

TEST_F(ApiServerTest, AJobIsStoredWithDefaultsAndGenerationOne) {
  const Answer made = post(kJobs, job("a"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.body["metadata"]["generation"], 1);
  EXPECT_EQ(made.body["spec"]["disruptionLimit"], 50);
  EXPECT_EQ(made.body["spec"]["retryBackoff"]["factor"], 2);
  EXPECT_EQ(made.body["spec"]["template"]["spec"]["restartPolicy"], "Never");
}

TEST_F(ApiServerTest, ANameIsTakenUntilItsObjectIsGone) {
  const Answer first = post(kJobs, job("a"));
  EXPECT_EQ(post(kJobs, job("a")).reason(), "AlreadyExists");
  remove(path(kJobs, "a"));
  const Answer second = post(kJobs, job("a"));
  EXPECT_EQ(second.status, 201);
  EXPECT_NE(second.uid(), first.uid());
}

TEST_F(ApiServerTest, VersionsAreOneCounterOverAllResources) {
  const std::uint64_t before = server_.version();
  EXPECT_EQ(post(kJobs, job("a")).version(), std::to_string(before + 1));
  EXPECT_EQ(post(kLeases, lease("l")).version(), std::to_string(before + 2));
  EXPECT_EQ(server_.version(), before + 2);
}

TEST_F(ApiServerTest, AWriteFromAnOldVersionIsAConflictAndChangesNothing) {
  Json object = post(kLeases, lease("l")).body;
  ASSERT_EQ(put(path(kLeases, "l"), object).status, 200);
  object["spec"]["holderIdentity"] = "b";
  const Answer won = put(path(kLeases, "l"), object);
  ASSERT_EQ(won.status, 200);
  object["spec"]["holderIdentity"] = "c";
  EXPECT_EQ(put(path(kLeases, "l"), object).reason(), "Conflict");
  EXPECT_EQ(get(path(kLeases, "l")).body, won.body);
}

TEST_F(ApiServerTest, AWriteThatChangesNothingHasNoVersionOfItsOwn) {
  const Answer made = post(kLeases, lease("l"));
  EXPECT_EQ(put(path(kLeases, "l"), made.body).version(), made.version());
  EXPECT_EQ(patch(path(kLeases, "l"), Json::object()).version(), made.version());
}

TEST_F(ApiServerTest, APutOnALeaseThatIsGoneCreatesItUnlessItNamesAUid) {
  EXPECT_EQ(put(path(kLeases, "l"), lease("l")).status, 201);
  Json other = lease("m");
  other["metadata"]["uid"] = "gone";
  EXPECT_EQ(put(path(kLeases, "m"), other).reason(), "Conflict");
  EXPECT_EQ(patch(path(kLeases, "m"), Json::object()).status, 404);
}

TEST_F(ApiServerTest, AStatusWriteKeepsTheSpecAndASpecWriteTheStatus) {
  Json object = post(kJobs, job("a")).body;
  object["status"] = status("Running");
  object["spec"]["suspend"] = true;
  const Answer written = put(path(kJobs, "a/status"), object);
  ASSERT_EQ(written.status, 200) << written.body;
  EXPECT_EQ(written.body["spec"]["suspend"], false);
  EXPECT_EQ(written.body["metadata"]["generation"], 1);

  object = written.body;
  object["status"]["phase"] = "Succeeded";
  object["spec"]["suspend"] = true;
  const Answer changed = put(path(kJobs, "a"), object);
  ASSERT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(changed.body["status"]["phase"], "Running");
  EXPECT_EQ(changed.body["metadata"]["generation"], 2);
}

TEST_F(ApiServerTest, ARefusalNamesTheFields) {
  const Answer refused = patch(path(kJobs, "a"), Json::object());
  EXPECT_EQ(refused.status, 404);
  Json wrong = job("a");
  wrong["spec"]["backoffLimit"] = -1;
  const Answer invalid = post(kJobs, wrong);
  EXPECT_EQ(invalid.status, 422);
  EXPECT_EQ(invalid.body["details"]["causes"][0]["field"], "spec.backoffLimit");
}

TEST_F(ApiServerTest, AFinalStatusIsFinalForEverybody) {
  post(kJobs, job("a"));
  const std::string place = path(kJobs, "a/status");
  patch(place, {{"status", status("Running")}});
  const Json end = {
      {"phase", "Failed"}, {"waiting", nullptr}, {"completionTime", "2026-01-02T03:04:05Z"}};
  ASSERT_EQ(patch(place, {{"status", end}}).status, 200);
  EXPECT_EQ(patch(place, {{"status", {{"phase", "Succeeded"}}}}).status, 422);
  EXPECT_EQ(patch(place, {{"status", {{"runs", {{{"index", 0}, {"attempt", 1}}}}}}}).status, 422);
  EXPECT_EQ(patch(place, {{"status", nullptr}}).status, 422);
  EXPECT_EQ(patch(place, {{"status", {{"observedGeneration", 2}}}}).status, 200);
}

TEST_F(ApiServerTest, OnlyABindingGivesAPodToANode) {
  Json object = post(kPods, pod("p")).body;
  object["spec"]["nodeName"] = "n";
  EXPECT_EQ(put(path(kPods, "p"), object).status, 422);
  EXPECT_EQ(post(path(kPods, "p/binding"), {{"target", {{"name", "n"}}}}).status, 201);
  EXPECT_EQ(post(path(kPods, "p/binding"), {{"target", {{"name", "m"}}}}).reason(), "Conflict");
  EXPECT_EQ(get(path(kPods, "p")).body["spec"]["nodeName"], "n");
}

TEST_F(ApiServerTest, AStrategicPatchTakesOneFinalizerAway) {
  Json object = pod("p");
  object["metadata"]["finalizers"] = {"example.com/a", "example.com/b"};
  const Answer made = post(kPods, object);
  const auto take = [&](const std::string& uid) {
    return call(
        "PATCH", path(kPods, "p"),
        {{"metadata", {{"uid", uid}, {"$deleteFromPrimitiveList/finalizers", {"example.com/a"}}}}},
        "application/strategic-merge-patch+json");
  };
  EXPECT_EQ(take("another").status, 422);
  EXPECT_THAT(take(made.uid()).body["metadata"]["finalizers"], ElementsAre("example.com/b"));
}

TEST_F(ApiServerTest, EveryAppliedWriteIsReportedWithItsRequest) {
  std::vector<std::string> reported;
  server_.on_applied([&](const Applied& applied) {
    reported.push_back((applied.request ? applied.request->method : "none") + " " +
                       applied.resource + (applied.before ? " before" : "") +
                       (applied.after ? " after" : ""));
  });
  const Answer owner = post(kJobs, job("a"));
  post(kPods, owned(pod("p"), owner));
  post(kJobs, job("a"));  // refused
  get(path(kJobs, "a"));
  remove(path(kJobs, "a"));
  collect_all_garbage();
  EXPECT_THAT(reported,
              ElementsAre("POST durablejobs after", "POST pods after", "DELETE durablejobs before",
                          "none pods before after", "none pods before"));
}

TEST_F(ApiServerTest, OneSeedGivesOneRun) {
  ApiServer again([this] { return now_; }, 1);
  ApiServer other([this] { return now_; }, 2);
  ApiRequest request;
  request.method = "POST";
  request.target = kJobs;
  request.body = job("a").dump();
  const std::string body = server_.handle(request).body;
  EXPECT_EQ(again.handle(request).body, body);
  EXPECT_NE(other.handle(request).body, body);
  EXPECT_EQ(again.snapshot(), server_.snapshot());
}

}  // namespace
}  // namespace holdfast::simulation
