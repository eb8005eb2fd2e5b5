#include "tests/simulation/api_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace holdfast::simulation {
namespace {

using ::testing::ElementsAre;

constexpr const char* kJobs = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs";
constexpr const char* kPods = "/api/v1/namespaces/default/pods";
constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";

class ApiServerTest : public ::testing::Test {
 protected:
  struct Answer {
    int status = 0;
    Json body;
  };

  Answer call(const std::string& method, const std::string& target, const Json& body = nullptr,
              const std::string& content_type = "application/json") {
    ApiRequest request;
    request.method = method;
    request.target = target;
    request.content_type = content_type;
    if (!body.is_null()) request.body = body.dump();
    const ApiAnswer answer = server_.handle(request);
    return {answer.status, Json::parse(answer.body)};
  }

  static Json job(const std::string& name) {
    return {
        {"apiVersion", "holdfast.dev/v1alpha1"},
        {"kind", "DurableJob"},
        {"metadata", {{"name", name}}},
        {"spec",
         {{"template",
           {{"spec", {{"containers", Json::array({{{"name", "main"}, {"image", "image"}}})}}}}}}}};
  }
  static Json pod(const std::string& name) {
    return {{"metadata", {{"name", name}}},
            {"spec", {{"containers", Json::array({{{"name", "main"}, {"image", "image"}}})}}}};
  }
  static Json running() {
    return {{"phase", "Running"},
            {"attempt", 1},
            {"waiting", {{"reason", "r"}, {"message", "m"}, {"nextAction", "n"}}}};
  }

  struct Watched {
    std::vector<std::string> lines;
    bool ended = false;
    ApiServer::Opened opened;
  };
  // As "ADDED a", "BOOKMARK".
  std::shared_ptr<Watched> watch(const std::string& target) {
    auto watched = std::make_shared<Watched>();
    WatchSink sink;
    sink.on_line = [watched](const std::string& line) {
      const Json event = Json::parse(line);
      const Json& object = event["object"];
      watched->lines.push_back(event["type"].get<std::string>() + " " +
                               (event["type"] == "ERROR" ? std::to_string(object["code"].get<int>())
                                                         : string_at(object["metadata"], "name")));
    };
    sink.on_end = [watched] { watched->ended = true; };
    ApiRequest request;
    request.method = "GET";
    request.target = target;
    watched->opened = server_.watch(request, sink);
    return watched;
  }

  Time now_{std::chrono::seconds(1'800'000'000)};
  ApiServer server_{[this] { return now_; }, 1};
};

TEST_F(ApiServerTest, AJobIsStoredWithDefaultsAndGenerationOne) {
  const Answer made = call("POST", kJobs, job("a"));
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.body["metadata"]["generation"], 1);
  EXPECT_EQ(made.body["spec"]["backoffLimit"], 6);
  EXPECT_EQ(made.body["spec"]["retryBackoff"]["factor"], 2);
  EXPECT_EQ(made.body["spec"]["template"]["spec"]["restartPolicy"], "Never");
  EXPECT_EQ(call("POST", kJobs, job("a")).body["reason"], "AlreadyExists");
}

TEST_F(ApiServerTest, AStatusWriteComparesTheVersionAndKeepsTheSpec) {
  Json made = call("POST", kJobs, job("a")).body;
  made["status"] = running();
  made["spec"]["suspend"] = true;
  const Answer written = call("PUT", std::string(kJobs) + "/a/status", made);
  ASSERT_EQ(written.status, 200) << written.body;
  EXPECT_EQ(written.body["spec"]["suspend"], false);
  EXPECT_EQ(written.body["metadata"]["generation"], 1);
  EXPECT_EQ(call("PUT", std::string(kJobs) + "/a/status", made).body["reason"], "Conflict");
}

TEST_F(ApiServerTest, APutOnALeaseThatIsGoneCreatesItUnlessItNamesAUid) {
  Json lease = {{"metadata", {{"name", "l"}}}, {"spec", {{"holderIdentity", "a"}}}};
  EXPECT_EQ(call("PUT", std::string(kLeases) + "/l", lease).status, 201);
  lease["metadata"]["name"] = "m";
  lease["metadata"]["uid"] = "gone";
  EXPECT_EQ(call("PUT", std::string(kLeases) + "/m", lease).status, 409);
}

TEST_F(ApiServerTest, AWatchTellsWhatTheCacheHasSeen) {
  const auto watched =
      watch("/api/v1/pods?watch=1&resourceVersion=" + std::to_string(server_.version()));
  call("POST", kPods, pod("a"));
  EXPECT_THAT(watched->lines, ElementsAre());
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, ElementsAre("ADDED a"));
  call("DELETE", std::string(kPods) + "/a");
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, ElementsAre("ADDED a", "MODIFIED a", "DELETED a"));
}

TEST_F(ApiServerTest, AStreamedListEndsWithItsBookmark) {
  call("POST", kPods, pod("a"));
  const auto watched = watch(
      "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
      "allowWatchBookmarks=true");
  EXPECT_THAT(watched->lines, ElementsAre());
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, ElementsAre("ADDED a", "BOOKMARK "));
}

TEST_F(ApiServerTest, DependentsGoWithTheirOwner) {
  const Json owner = call("POST", kJobs, job("a")).body;
  Json dependent = pod("p");
  dependent["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", "holdfast.dev/v1alpha1"},
                                                           {"kind", "DurableJob"},
                                                           {"name", "a"},
                                                           {"uid", owner["metadata"]["uid"]}}});
  call("POST", kPods, dependent);
  EXPECT_FALSE(server_.collect_garbage());
  call("DELETE", std::string(kJobs) + "/a");
  EXPECT_TRUE(server_.collect_garbage());
  EXPECT_EQ(server_.find("pods", "default", "p"), nullptr);
  EXPECT_FALSE(server_.collect_garbage());
}

}  // namespace
}  // namespace holdfast::simulation
