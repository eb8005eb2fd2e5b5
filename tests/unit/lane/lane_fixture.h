// One operator that runs batch/v1 Jobs over a simulated API server. The test is the user and the
// kubelet.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/json_time.h"
#include "tests/unit/pools/operator_world.h"

namespace holdfast::lane_controller::testing {

using namespace pools::testing;  // NOLINT: the world of a whole operator
using simulation::ApiAnswer;
using simulation::ApiRequest;
using std::chrono::minutes;
using std::chrono::seconds;

inline Json batch_job(const Json& over = Json::object(), const std::string& name = "pi") {
  Json spec = {
      {"managedBy", "holdfast.dev/operator"},
      {"template",
       {{"spec",
         {{"restartPolicy", "Never"},
          {"containers",
           Json::array({{{"name", "main"}, {"image", "image"}, {"command", {"/work"}}}})}}}}}};
  spec.update(over);
  return {{"apiVersion", "batch/v1"},
          {"kind", "Job"},
          {"metadata", {{"name", name}}},
          {"spec", std::move(spec)}};
}

inline ApiAnswer refusal(int status, const std::string& reason, const std::string& field = "") {
  Json body = {{"kind", "Status"},      {"apiVersion", "v1"}, {"status", "Failure"},
               {"message", "the test"}, {"reason", reason},   {"code", status}};
  if (!field.empty()) {
    body["details"]["causes"] =
        Json::array({{{"reason", "FieldValueInvalid"}, {"field", field}, {"message", "no"}}});
  }
  return {status, body.dump(), 0};
}

class LaneControllerTest : public ::testing::Test {
 protected:
  LaneControllerTest() { world_.batch_jobs = true; }

  static std::string path(const char* collection, const std::string& name) {
    return std::string(collection) + "/" + name;
  }
  Json job() const { return world_.find("jobs", "pi"); }
  Json status() const { return at(job(), "status"); }
  Json durable(const std::string& name = "pi") const { return world_.find("durablejobs", name); }
  static std::string uid_of(const Json& object) { return string_at(at(object, "metadata"), "uid"); }
  static std::string phase_of(const Json& durable) {
    return string_at(at(durable, "status"), "phase");
  }
  std::string record() const {
    return string_at(at(at(job(), "metadata"), "annotations"), "holdfast.dev/durable-job");
  }
  // The reason of a condition that holds; empty: it does not.
  std::string holds(const std::string& type) const {
    const Json now = status();
    for (const Json& one : at(now, "conditions")) {
      const bool is_true = string_at(one, "status") == "True";
      if (string_at(one, "type") == type && is_true) return string_at(one, "reason");
    }
    return "";
  }
  std::ptrdiff_t count(const std::string& event) const {
    return std::count(world_.events.begin(), world_.events.end(), event);
  }
  std::vector<std::string> names(const std::string& resource) const {
    std::vector<std::string> names;
    for (const Json& one : world_.all(resource)) names.push_back(at(one["metadata"], "name"));
    return names;
  }

  bool until(const std::function<bool()>& done, Duration limit = seconds(10)) {
    return world_.run_until(done, limit);
  }
  void start() {
    world_.start();
    world_.run(seconds(20));  // an earlier process's Leases run out
  }
  // Until the pod is there; the kubelet starts it.
  void begin() {
    world_.create(kBatchJobs, batch_job());
    start();
    ASSERT_TRUE(until([&] { return !world_.all("pods").empty(); }));
    run_pod();
    ASSERT_TRUE(until([&] { return phase_of(durable()) == "Running"; }));
    ASSERT_TRUE(until([&] { return int_at(status(), "active") == 1; }));
  }
  static std::string pod_path(const Json& pod) {
    return path(kPods, string_at(at(pod, "metadata"), "name"));
  }
  void run_pod() {
    const Json pod = world_.all("pods").at(0);
    world_.create(pod_path(pod) + "/binding", {{"target", {{"name", "node-1"}}}});
    report(pod, "Running", {{"running", {{"startedAt", "2023-11-14T22:13:20Z"}}}});
  }
  void end_pod(bool succeeds) {
    const Json pod = world_.all("pods").at(0);
    report(pod, succeeds ? "Succeeded" : "Failed",
           {{"terminated",
             {{"exitCode", succeeds ? 0 : 1},
              {"reason", succeeds ? "Completed" : "Error"},
              {"startedAt", "2023-11-14T22:13:20Z"},
              {"finishedAt", "2023-11-14T22:13:21Z"}}}});
  }
  void be_ready(bool ready) {
    const Json condition = {{"type", "Ready"}, {"status", ready ? "True" : "False"}};
    world_.patch(pod_path(world_.all("pods").at(0)) + "/status",
                 {{"status", {{"conditions", Json::array({condition})}}}});
  }
  void report(const Json& pod, const std::string& phase, const Json& state) {
    const Json container = {{"name", "main"}, {"ready", false}, {"restartCount", 0},
                            {"image", "i"},   {"imageID", ""},  {"state", state}};
    world_.patch(pod_path(pod) + "/status",
                 {{"status", {{"phase", phase}, {"containerStatuses", Json::array({container})}}}});
  }
  // The kubelet stops the pods that are being deleted.
  void stop_pods() {
    for (const Json& pod : world_.all("pods")) {
      if (!at(pod["metadata"], "deletionTimestamp").is_string()) continue;
      world_.remove(pod_path(pod), {{"gracePeriodSeconds", 0}});
    }
  }
  void delete_job(const char* propagation = "Background") {
    world_.remove(path(kBatchJobs, "pi"), {{"propagationPolicy", propagation}});
    world_.collect_garbage();
  }
  // The DurableJob and the pods go, too.
  void expect_nothing_left() {
    EXPECT_TRUE(until(
        [&] {
          world_.collect_garbage();
          stop_pods();
          return world_.all("durablejobs").empty() && world_.all("pods").empty();
        },
        minutes(2)));
  }
  // Answers requests of this method whose path has this in it.
  void answer(const std::string& method, const std::string& part, const ApiAnswer& with) {
    world_.before = [=, this](const ApiRequest& request) -> std::optional<ApiAnswer> {
      const bool is_it = request.method == method && request.target.find(part) != std::string::npos;
      answered_ += is_it ? 1 : 0;
      return is_it ? std::optional(with) : std::nullopt;
    };
  }

  int answered_ = 0;  // requests, by answer()
  OperatorWorld world_;
};

}  // namespace holdfast::lane_controller::testing
