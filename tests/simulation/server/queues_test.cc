// JobQueues on the simulated API server, and the queue of a DurableJob.
#include "tests/simulation/server/fixture.h"

namespace holdfast::simulation {
namespace {

constexpr const char* kQueues = "/apis/holdfast.dev/v1alpha1/namespaces/default/jobqueues";

class QueuesOnServer : public ApiServerTest {
 protected:
  static Json queue(const std::string& name, const Json& spec = Json::object()) {
    return {{"apiVersion", "holdfast.dev/v1alpha1"},
            {"kind", "JobQueue"},
            {"metadata", {{"name", name}}},
            {"spec", spec}};
  }
  static Json in_queue(Json job, const Json& ref) {
    job["spec"]["queue"] = ref;
    return job;
  }
  // The cause's field of a refusal; empty: it was taken.
  static std::string refused(const Answer& answer) {
    if (answer.status / 100 == 2) return "";
    return string_at(at(at(answer.body, "details"), "causes")[0], "field");
  }
};

TEST_F(QueuesOnServer, AQueueIsStoredWithItsDefaultsAndWithoutAStatus) {
  const Answer made = post(kQueues, queue("q", {{"concurrency", 2}, {"unknown", 1}}));
  ASSERT_EQ(made.status, 201);
  EXPECT_EQ(made.body["spec"], Json({{"concurrency", 2}, {"hold", false}}));
  EXPECT_FALSE(made.body.contains("status"));
  EXPECT_EQ(made.body["metadata"]["generation"], 1);
}

TEST_F(QueuesOnServer, NumbersOutsideOfTheirLimitsAreRefused) {
  EXPECT_EQ(refused(post(kQueues, queue("q", {{"concurrency", 0}}))), "spec.concurrency");
  EXPECT_EQ(refused(post(kQueues, queue("q", {{"concurrencyPerKey", 1'000'001}}))),
            "spec.concurrencyPerKey");
  EXPECT_EQ(refused(post(kQueues, queue("q", {{"rate", {{"jobs", 1}}}}))),
            "spec.rate.periodSeconds");
  const Json rate = {{"jobs", 1}, {"periodSeconds", 0}};
  EXPECT_EQ(refused(post(kQueues, queue("q", {{"rate", rate}}))), "spec.rate");
}

TEST_F(QueuesOnServer, TheStatusIsWrittenByCompareAndSwapAndTheSpecStays) {
  const Answer made = post(kQueues, queue("q", {{"concurrency", 2}}));
  Json body = made.body;
  body["spec"]["concurrency"] = 9;
  body["status"] = {{"holderIdentity", "a/1"},
                    {"admitting", Json::array({{{"uid", "u"}, {"attempt", 0}}})},
                    {"rate", {{"tokens", 1}, {"time", "2026-03-01T00:00:00.250000Z"}}}};
  const Answer written = put(path(kQueues, "q") + "/status", body);
  ASSERT_EQ(written.status, 200);
  EXPECT_EQ(written.body["spec"]["concurrency"], 2);
  EXPECT_EQ(written.body["status"], body["status"]);
  EXPECT_EQ(written.body["metadata"]["generation"], 1);
  EXPECT_EQ(put(path(kQueues, "q") + "/status", body).status, 409);

  body["metadata"] = written.body["metadata"];
  EXPECT_EQ(put(path(kQueues, "q") + "/status", body).version(), written.version())
      << "nothing changed, so the version stays";
  body["status"]["admitting"][0]["attempt"] = -1;
  EXPECT_EQ(refused(put(path(kQueues, "q") + "/status", body)), "status.admitting[0].attempt");
}

TEST_F(QueuesOnServer, AWatchReportsQueues) {
  const auto watched = watch(kQueues, "resourceVersion=0");
  post(kQueues, queue("q"));
  patch(path(kQueues, "q"), {{"spec", {{"hold", true}}}});
  remove(path(kQueues, "q"));
  server_.advance_watch_cache();
  EXPECT_THAT(watched->lines, testing::ElementsAre("ADDED q", "MODIFIED q", "DELETED q"));
  EXPECT_EQ(get(kQueues).body["kind"], "JobQueueList");
}

TEST_F(QueuesOnServer, AJobKeepsItsQueueAndItsKeyAndMayChangeItsPriority) {
  const Json ref = {{"name", "q"}, {"key", "k"}};
  const Answer made = post(kJobs, in_queue(job("j"), ref));
  ASSERT_EQ(made.status, 201);
  EXPECT_EQ(made.body["spec"]["queue"]["priority"], 0);
  const std::string target = path(kJobs, "j");
  const auto change = [&](const Json& queue) {
    return refused(patch(target, {{"spec", {{"queue", queue}}}}));
  };
  EXPECT_EQ(change({{"priority", -5}}), "");
  EXPECT_EQ(get(target).body["spec"]["queue"]["priority"], -5);
  EXPECT_EQ(change({{"name", "other"}}), "spec.queue");
  EXPECT_EQ(change({{"key", "other"}}), "spec.queue");
  EXPECT_EQ(change({{"key", nullptr}}), "spec.queue");
  EXPECT_EQ(change(nullptr), "spec.queue");
  EXPECT_EQ(change({{"priority", 1'000'001}}), "spec.queue.priority");

  ASSERT_EQ(post(kJobs, job("free")).status, 201);
  EXPECT_EQ(refused(patch(path(kJobs, "free"), {{"spec", {{"queue", ref}}}})), "spec.queue");
}

TEST_F(QueuesOnServer, AJobNamesAQueueThatCanBe) {
  EXPECT_EQ(refused(post(kJobs, in_queue(job("j"), {{"name", "Q"}}))), "spec.queue.name");
  EXPECT_EQ(refused(post(kJobs, in_queue(job("j"), {{"name", ""}}))), "spec.queue.name");
  EXPECT_EQ(refused(post(kJobs, in_queue(job("j"), {{"name", "q"}, {"key", ""}}))),
            "spec.queue.key");
  EXPECT_EQ(refused(post(kJobs, in_queue(job("j"), {{"key", "k"}}))), "spec.queue.name");
  EXPECT_EQ(refused(post(kJobs, in_queue(job("j"), {{"name", "a.b-c"}}))), "");
}

TEST_F(QueuesOnServer, ANamespaceTakesItsQueuesAlong) {
  ASSERT_EQ(post("/api/v1/namespaces", {{"metadata", {{"name", "n"}}}}).status, 201);
  ASSERT_EQ(post("/apis/holdfast.dev/v1alpha1/namespaces/n/jobqueues", queue("q")).status, 201);
  remove("/api/v1/namespaces/n");
  collect_all_garbage();
  EXPECT_EQ(server_.find("jobqueues", "n", "q"), nullptr);
}

}  // namespace
}  // namespace holdfast::simulation
