// How objects go: grace, finalizers, owners, namespaces, time.
#include "tests/simulation/server/fixture.h"

namespace holdfast::simulation {
namespace {

constexpr const char* kNamespaces = "/api/v1/namespaces";

class RemovalTest : public ApiServerTest {
 protected:
  Answer bound(const std::string& name, Json object) {
    object["metadata"]["name"] = name;
    object["spec"]["nodeName"] = "n";
    return post(kPods, object);
  }
};

TEST_F(RemovalTest, APodOnANodeIsAskedToGoAndGoesWhenItsKubeletSaysSo) {
  const Answer made = bound("p", pod("p"));
  const Answer removed = remove(path(kPods, "p"));
  EXPECT_EQ(removed.body["metadata"]["deletionTimestamp"],
            format_time(now_ + std::chrono::seconds(30)));
  EXPECT_EQ(removed.body["metadata"]["deletionGracePeriodSeconds"], 30);
  EXPECT_EQ(removed.body["metadata"]["generation"], 2);
  EXPECT_EQ(remove(path(kPods, "p")).body, removed.body);

  const Answer sooner = remove(path(kPods, "p"), {{"gracePeriodSeconds", 5}});
  EXPECT_EQ(sooner.body["metadata"]["deletionTimestamp"],
            format_time(now_ + std::chrono::seconds(5)));
  EXPECT_EQ(remove(path(kPods, "p"), {{"gracePeriodSeconds", 9}}).body, sooner.body);
  remove(path(kPods, "p"), {{"gracePeriodSeconds", 0}, {"preconditions", {{"uid", made.uid()}}}});
  EXPECT_FALSE(exists("pods", "p"));
}

TEST_F(RemovalTest, ADeletionIsNeverMovedIntoThePast) {
  bound("p", held(pod("p")));
  remove(path(kPods, "p"));
  now_ += std::chrono::seconds(20);
  const Answer sooner = remove(path(kPods, "p"), {{"gracePeriodSeconds", 5}});
  EXPECT_EQ(sooner.body["metadata"]["deletionTimestamp"], format_time(now_));
  EXPECT_EQ(sooner.body["metadata"]["deletionGracePeriodSeconds"], 1);
  now_ += std::chrono::seconds(20);
  remove(path(kPods, "p"), {{"gracePeriodSeconds", 0}});
  const Json last = get(path(kPods, "p")).body["metadata"];
  EXPECT_EQ(last["deletionTimestamp"], format_time(now_));
  EXPECT_EQ(last["deletionGracePeriodSeconds"], 0);
}

TEST_F(RemovalTest, APodThatRunsNowhereGoesAtOnce) {
  post(kPods, pod("waits"));
  remove(path(kPods, "waits"));
  EXPECT_FALSE(exists("pods", "waits"));
  bound("ended", pod("ended"));
  patch(path(kPods, "ended/status"), {{"status", {{"phase", "Failed"}}}});
  remove(path(kPods, "ended"));
  EXPECT_FALSE(exists("pods", "ended"));
}

TEST_F(RemovalTest, AFinalizerHoldsAPodAlsoWhenItIsForced) {
  bound("p", held(pod("p")));
  remove(path(kPods, "p"), {{"gracePeriodSeconds", 0}});
  EXPECT_TRUE(exists("pods", "p"));
  patch(path(kPods, "p"), {{"metadata", {{"finalizers", nullptr}}}});
  EXPECT_FALSE(exists("pods", "p"));
}

TEST_F(RemovalTest, GraceOutlastsTheFinalizer) {
  bound("p", held(pod("p")));
  remove(path(kPods, "p"));
  patch(path(kPods, "p"), {{"metadata", {{"finalizers", nullptr}}}});
  EXPECT_TRUE(exists("pods", "p"));
  remove(path(kPods, "p"), {{"gracePeriodSeconds", 0}});
  EXPECT_FALSE(exists("pods", "p"));
}

TEST_F(RemovalTest, PreconditionsAreCompared) {
  const Answer made = post(kJobs, job("a"));
  const auto with = [&](const char* what, const std::string& value) {
    return remove(path(kJobs, "a"), {{"preconditions", {{what, value}}}});
  };
  EXPECT_EQ(with("uid", "another").reason(), "Conflict");
  EXPECT_EQ(with("resourceVersion", "1").reason(), "Conflict");
  EXPECT_EQ(with("resourceVersion", made.version()).status, 200);
  EXPECT_EQ(with("uid", made.uid()).status, 404);
}

TEST_F(RemovalTest, WhatIsBeingDeletedStaysSo) {
  post(kJobs, held(job("a")));
  const Answer removed = remove(path(kJobs, "a"));
  now_ += std::chrono::seconds(10);
  Json object = removed.body;
  object["metadata"].erase("deletionTimestamp");
  object["metadata"]["labels"] = {{"x", "y"}};
  EXPECT_EQ(put(path(kJobs, "a"), object).body["metadata"]["deletionTimestamp"],
            removed.body["metadata"]["deletionTimestamp"]);
  object["metadata"]["finalizers"].push_back("example.com/late");
  object["metadata"].erase("resourceVersion");
  EXPECT_EQ(patch(path(kJobs, "a"), {{"metadata", object["metadata"]}}).status, 422);
}

TEST_F(RemovalTest, DependentsGoInTheBackground) {
  const Answer owner = post(kJobs, job("a"));
  post(kPods, owned(pod("p"), owner));
  post(kLeases, owned(lease("l"), owner));
  EXPECT_FALSE(server_.collect_garbage());
  remove(path(kJobs, "a"));
  EXPECT_TRUE(exists("pods", "p"));
  collect_all_garbage();
  EXPECT_FALSE(exists("pods", "p"));
  EXPECT_FALSE(exists("leases", "l"));
  EXPECT_FALSE(server_.collect_garbage());
}

TEST_F(RemovalTest, AnOwnerOfTheSameNameButAnotherUidIsNone) {
  const Answer old = post(kJobs, job("a"));
  remove(path(kJobs, "a"));
  post(kJobs, job("a"));
  post(kPods, owned(pod("p"), old));
  collect_all_garbage();
  EXPECT_FALSE(exists("pods", "p"));
  EXPECT_TRUE(exists("durablejobs", "a"));
}

TEST_F(RemovalTest, InTheForegroundTheOwnerWaitsForThoseThatBlockIt) {
  const Answer owner = post(kJobs, job("a"));
  bound("p", owned(pod("p"), owner, /*blocks=*/true));
  remove(path(kJobs, "a"), {{"propagationPolicy", "Foreground"}});
  collect_all_garbage();
  EXPECT_TRUE(exists("durablejobs", "a"));
  EXPECT_TRUE(get(path(kPods, "p")).body["metadata"].contains("deletionTimestamp"));
  remove(path(kPods, "p"), {{"gracePeriodSeconds", 0}});
  collect_all_garbage();
  EXPECT_FALSE(exists("durablejobs", "a"));
}

TEST_F(RemovalTest, OrphansStayWithoutTheirOwner) {
  const Answer owner = post(kJobs, job("a"));
  post(kPods, owned(pod("p"), owner));
  remove(path(kJobs, "a"), {{"propagationPolicy", "Orphan"}});
  EXPECT_TRUE(exists("durablejobs", "a"));
  collect_all_garbage();
  EXPECT_FALSE(exists("durablejobs", "a"));
  EXPECT_FALSE(get(path(kPods, "p")).body["metadata"].contains("ownerReferences"));
}

TEST_F(RemovalTest, ANamespaceLosesItsPodsFirstAndTakesNothingNew) {
  post(kNamespaces, {{"metadata", {{"name", "x"}}}});
  const std::string pods = "/api/v1/namespaces/x/pods";
  const std::string jobs = "/apis/holdfast.dev/v1alpha1/namespaces/x/durablejobs";
  post(jobs, job("a"));
  post(pods, held(pod("p")));
  EXPECT_EQ(remove(path(kNamespaces, "x")).body["status"]["phase"], "Terminating");
  const Answer refused = post(pods, pod("q"));
  EXPECT_EQ(refused.status, 403);
  EXPECT_EQ(refused.body["details"]["causes"][0]["reason"], "NamespaceTerminating");
  collect_all_garbage();
  EXPECT_EQ(get(path(jobs, "a")).status, 200);
  patch(path(pods, "p"), {{"metadata", {{"finalizers", nullptr}}}});
  collect_all_garbage();
  EXPECT_EQ(get(path(jobs, "a")).status, 404);
  EXPECT_EQ(get(path(kNamespaces, "x")).status, 404);
  EXPECT_EQ(post(jobs, job("a")).status, 404);
}

TEST_F(RemovalTest, GarbageOfARestoredMomentIsCollected) {
  const Answer owner = post(kJobs, job("a"));
  remove(path(kJobs, "a"));
  post(kPods, owned(pod("p"), owner));
  const std::string snapshot = server_.snapshot();
  collect_all_garbage();
  ASSERT_FALSE(exists("pods", "p"));
  server_.restore(snapshot);
  EXPECT_TRUE(exists("pods", "p"));
  collect_all_garbage();
  EXPECT_FALSE(exists("pods", "p"));
}

TEST_F(RemovalTest, EventsLiveForAnHour) {
  const std::string events = "/apis/events.k8s.io/v1/namespaces/default/events";
  const Answer made = post(events, {{"metadata", {{"name", "e"}}},
                                    {"eventTime", "2026-01-02T03:04:05.000000Z"},
                                    {"action", "Act"},
                                    {"reason", "Reason"},
                                    {"type", "Normal"},
                                    {"reportingController", "example.com/c"},
                                    {"reportingInstance", "c-1"}});
  ASSERT_EQ(made.status, 201) << made.body;
  now_ += std::chrono::minutes(59);
  EXPECT_FALSE(server_.collect_garbage());
  now_ += std::chrono::minutes(2);
  EXPECT_TRUE(server_.collect_garbage());
  EXPECT_EQ(get(path(events, "e")).status, 404);
}

}  // namespace
}  // namespace holdfast::simulation
