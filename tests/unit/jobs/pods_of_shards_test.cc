// What an operator does before it has seen the pods of its shards, over a simulated API server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/pools/operator_world.h"

namespace holdfast::jobs::testing {
namespace {

using namespace pools::testing;  // NOLINT: the world of a whole operator
using simulation::ApiAnswer;
using simulation::ApiRequest;
using std::chrono::seconds;

constexpr const char* kQueues = "/apis/holdfast.dev/v1alpha1/namespaces/default/jobqueues";

class PodsOfShardsTest : public ::testing::Test {
 protected:
  void job(const std::string& name, const Json& more = Json::object()) {
    Json spec = {{"retryBackoff", {{"initialSeconds", 1}, {"factor", 1}, {"maxSeconds", 1}}}};
    spec.update(more);
    world_.create(kJobs, durable_job(name, spec));
  }
  Json status(const std::string& name) const {
    return at(world_.find("durablejobs", name), "status");
  }
  std::string waits(const std::string& name) const {
    const Json now = status(name);
    return string_at(at(now, "waiting"), "reason");
  }
  static std::string label_of(const Json& pod) {
    return string_at(at(at(pod, "metadata"), "labels"), "holdfast.dev/shard");
  }
  void start() {
    if (world_.find("nodes", "node-1").is_null()) {
      world_.create("/api/v1/nodes", {{"metadata", {{"name", "node-1"}}}});
    }
    world_.start();
    world_.run(seconds(20));  // an earlier process's Leases run out
  }
  // The pod of an attempt that is over, on a node that does not end it.
  void holds_on(const std::string& name) {
    ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
    const std::string pod = path_of(world_.all("pods").at(0));
    world_.create(pod + "/binding", {{"target", {{"name", "node-1"}}}});
    world_.patch(pod + "/status", {{"status", {{"phase", "Running"}}}});
    world_.run(seconds(1));
    world_.patch(std::string(kJobs) + "/" + name, {{"spec", {{"suspend", true}}}});
    world_.run(seconds(2));
    world_.patch(std::string(kJobs) + "/" + name, {{"spec", {{"suspend", false}}}});
    ASSERT_TRUE(world_.run_until([&] { return waits(name) == "OldPodNotEnded"; }, seconds(60)));
  }
  // Another process, which sees the pods without a label only.
  void start_without_pods() {
    world_.stop();
    world_.before = [this](const ApiRequest& request) -> std::optional<ApiAnswer> {
      if (request.target.starts_with(std::string(kPods) + "/")) ++looks_;
      const bool lists = request.target.starts_with("/api/v1/pods?") &&
                         request.target.find("worker") == std::string::npos;
      if (!lists || request.target.find("notin") != std::string::npos) return std::nullopt;
      ++refused_;
      return ApiAnswer{503, "{}", 0};
    };
    start();
    world_.run(seconds(60));
    ASSERT_GT(refused_, 0);
  }

  OperatorWorld world_;
  int refused_ = 0;
  int looks_ = 0;  // at one pod, meanwhile
};

TEST_F(PodsOfShardsTest, APodHasTheShardOfItsJobAndGetsItBack) {
  job("a");
  start();
  ASSERT_TRUE(world_.run_until([&] { return !world_.all("pods").empty(); }, seconds(10)));
  const Json pod = world_.all("pods").at(0);
  EXPECT_EQ(label_of(pod), "0-of-1");
  // Nothing hides a pod whose label means nothing, and it gets its own back.
  world_.patch(path_of(pod), {{"metadata", {{"labels", {{"holdfast.dev/shard", "0-of-2"}}}}}});
  world_.run(seconds(5));
  EXPECT_EQ(label_of(world_.all("pods").at(0)), "0-of-1");
  EXPECT_EQ(int_at(status("a"), "attempt"), 1);
}

TEST_F(PodsOfShardsTest, AnOldPodHoldsTheNextAttemptBackAlsoWhileThePodsCannotBeListed) {
  job("a", {{"podReplacementPolicy", "Failed"}, {"lostAfterSeconds", 3600}});
  start();
  holds_on("a");
  const Json before = world_.find("durablejobs", "a");
  start_without_pods();
  EXPECT_EQ(world_.all("pods").size(), 1u);
  EXPECT_EQ(world_.find("durablejobs", "a"), before) << "nothing is decided";
  EXPECT_EQ(looks_, 0) << "of many jobs these would be very many requests";
  world_.before = nullptr;
  world_.run(seconds(60));
  EXPECT_EQ(waits("a"), "OldPodNotEnded");
  EXPECT_EQ(world_.all("pods").size(), 1u);
  world_.patch(path_of(world_.all("pods").at(0)) + "/status", {{"status", {{"phase", "Failed"}}}});
  EXPECT_TRUE(world_.run_until([&] { return int_at(status("a"), "attempt") == 2; }, seconds(60)));
}

TEST_F(PodsOfShardsTest, AnOldPodKeepsThePermitOfItsJobAlsoWhileThePodsCannotBeListed) {
  world_.create(kQueues, {{"apiVersion", "holdfast.dev/v1alpha1"},
                          {"kind", "JobQueue"},
                          {"metadata", {{"name", "q"}}},
                          {"spec", {{"concurrency", 1}}}});
  const Json queued = {
      {"queue", {{"name", "q"}}}, {"podReplacementPolicy", "Failed"}, {"lostAfterSeconds", 3600}};
  job("a", queued);
  start();
  holds_on("a");
  job("b", queued);
  world_.run(seconds(5));
  ASSERT_EQ(waits("b"), "Queued");
  const Json before = world_.find("jobqueues", "q");
  start_without_pods();
  EXPECT_EQ(int_at(status("b"), "attempt"), 0);
  EXPECT_EQ(world_.find("jobqueues", "q"), before) << "nothing is counted";
  world_.before = nullptr;
  world_.run(seconds(60));
  EXPECT_EQ(int_at(status("b"), "attempt"), 0);
  EXPECT_EQ(world_.all("pods").size(), 1u);
}

}  // namespace
}  // namespace holdfast::jobs::testing
