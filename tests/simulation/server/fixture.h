// A simulated API server, and short ways to call and to watch it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/api_server.h"

namespace holdfast::simulation {

inline constexpr const char* kJobs = "/apis/holdfast.dev/v1alpha1/namespaces/default/durablejobs";
inline constexpr const char* kPods = "/api/v1/namespaces/default/pods";
inline constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
inline constexpr const char* kMerge = "application/merge-patch+json";

class ApiServerTest : public ::testing::Test {
 protected:
  struct Answer {
    int status = 0;
    Json body;
    std::string version() const { return string_at(at(body, "metadata"), "resourceVersion"); }
    std::string uid() const { return string_at(at(body, "metadata"), "uid"); }
    std::string reason() const { return string_at(body, "reason"); }
  };

  Answer call(const std::string& method, const std::string& target, const Json& body = nullptr,
              const std::string& content_type = "application/json") {
    ApiRequest request;
    request.user = "test";
    request.method = method;
    request.target = target;
    request.content_type = content_type;
    if (!body.is_null()) request.body = body.dump();
    const ApiAnswer answer = server_.handle(request);
    return {answer.status, Json::parse(answer.body)};
  }
  Answer get(const std::string& target) { return call("GET", target); }
  Answer post(const std::string& target, const Json& body) { return call("POST", target, body); }
  Answer put(const std::string& target, const Json& body) { return call("PUT", target, body); }
  Answer patch(const std::string& target, const Json& body) {
    return call("PATCH", target, body, kMerge);
  }
  Answer remove(const std::string& target, const Json& body = nullptr) {
    return call("DELETE", target, body);
  }
  static std::string path(const std::string& collection, const std::string& name) {
    return collection + "/" + name;
  }

  static Json containers() { return Json::array({{{"name", "main"}, {"image", "image"}}}); }
  static Json job(const std::string& name) {
    return {{"apiVersion", "holdfast.dev/v1alpha1"},
            {"kind", "DurableJob"},
            {"metadata", {{"name", name}}},
            {"spec", {{"template", {{"spec", {{"containers", containers()}}}}}}}};
  }
  static Json pod(const std::string& name) {
    return {{"metadata", {{"name", name}}}, {"spec", {{"containers", containers()}}}};
  }
  static Json lease(const std::string& name) {
    return {{"metadata", {{"name", name}}}, {"spec", {{"holderIdentity", "a"}}}};
  }
  static Json status(const std::string& phase) {
    return {{"phase", phase},
            {"attempt", 1},
            {"waiting", {{"reason", "r"}, {"message", "m"}, {"nextAction", "n"}}}};
  }
  static Json owned(Json object, const Answer& owner, bool blocks = false) {
    const Json& metadata = owner.body["metadata"];
    object["metadata"]["ownerReferences"] = Json::array({{{"apiVersion", owner.body["apiVersion"]},
                                                          {"kind", owner.body["kind"]},
                                                          {"name", metadata["name"]},
                                                          {"uid", metadata["uid"]},
                                                          {"blockOwnerDeletion", blocks}}});
    return object;
  }
  static Json held(Json object) {
    object["metadata"]["finalizers"] = {"example.com/held"};
    return object;
  }

  struct Watched {
    ApiServer::Opened opened;
    std::vector<std::string> lines;  // "ADDED a", "BOOKMARK 7", "ERROR 410"
    std::vector<Json> events;
    bool ended = false;
  };
  std::shared_ptr<Watched> watch(const std::string& collection, const std::string& query) {
    auto watched = std::make_shared<Watched>();
    WatchSink sink;
    sink.on_line = [watched](const std::string& line) {
      const Json event = Json::parse(line);
      const std::string type = event["type"];
      const Json& object = event["object"];
      const std::string about = type == "ERROR" ? std::to_string(object["code"].get<int>())
                                : type == "BOOKMARK"
                                    ? string_at(object["metadata"], "resourceVersion")
                                    : string_at(object["metadata"], "name");
      watched->lines.push_back(type + " " + about);
      watched->events.push_back(event);
    };
    sink.on_end = [watched] { watched->ended = true; };
    ApiRequest request;
    request.method = "GET";
    request.target = collection + "?watch=1" + (query.empty() ? "" : "&" + query);
    watched->opened = server_.watch(request, sink);
    return watched;
  }
  std::shared_ptr<Watched> watch_from(const std::string& collection, std::uint64_t version) {
    return watch(collection, "resourceVersion=" + std::to_string(version));
  }

  void collect_all_garbage() {
    while (server_.collect_garbage()) {
    }
  }
  bool exists(const std::string& resource, const std::string& name) {
    return server_.find(resource, "default", name) != nullptr;
  }

  Time now_{std::chrono::seconds(1'800'000'000)};
  ApiServer server_{[this] { return now_; }, 1};
};

}  // namespace holdfast::simulation
