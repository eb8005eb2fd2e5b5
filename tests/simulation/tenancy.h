// Worlds without random faults. A test makes its own: in one namespace, or for one kind of request.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "operator/codecs/job_codec.h"
#include "tests/simulation/run.h"
#include "tests/support/json_document.h"

namespace holdfast::simulation {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Fate = Gateway::Fate;

inline bool is_of(const ApiRequest& request, const std::string& namespace_) {
  return request.target.find("/namespaces/" + namespace_ + "/") != std::string::npos;
}
inline bool is_creation(const ApiRequest& request) {
  return request.method == "POST" && request.target.ends_with("/pods");
}
inline bool is_status_write(const ApiRequest& request) {
  return request.method == "PUT" && request.target.ends_with("/status");
}
// A list or a watch.
inline bool is_collection(const ApiRequest& request) {
  return request.method == "GET" && request.target.find('?') != std::string::npos;
}
inline bool is_live_look(const ApiRequest& request) {
  return request.method == "GET" && !is_collection(request) &&
         request.target.find("/pods/") != std::string::npos;
}

class Tenancy : public testing::Test {
 protected:
  using Then = std::function<void()>;

  // `play` plans the events. Nothing happens after `length`.
  void run(Duration length, const std::function<void()>& play) {
    RunRequest run = run_request(1, "calm", minutes(60));
    run.stop_at = length;
    run.rewrite = [this](Script& script) {
      script.events.clear();
      script.nodes = 4;
      script.replicas = replicas;
      script.shards = shards;
      script.by_namespace = by_namespace;
      script.lane = lane;
      script.clocks.resize(static_cast<std::size_t>(replicas));
    };
    run.sabotage = [&](World& world) {
      world_ = &world;
      world.cluster().work_of = [this](const std::string&) {
        return Cluster::Work{.lasts = work_lasts};
      };
      play();
    };
    EXPECT_EQ(run_seed(run).violation, "");
  }
  void at(Duration when, Then then) { world_->scheduler().at(when, std::move(then)); }

  void create(const std::string& ns, const std::string& name, Json more = Json::object()) {
    Json spec = drawn_spec(7);
    for (const char* field : {"suspend", "attemptDeadlineSeconds", "activeDeadlineSeconds",
                              "podReplacementPolicy", "ttlSecondsAfterFinished"}) {
      spec.erase(field);
    }
    spec["lostAfterSeconds"] = 30;
    spec["disruptionLimit"] = 50;
    spec["retryBackoff"] = {{"initialSeconds", 1}, {"maxSeconds", 5}, {"jitterPercent", 0}};
    spec.update(more);
    ASSERT_TRUE(world_->users().create(ns, name, spec));
  }
  reconciler::Status status(const std::string& ns, const std::string& name) {
    const Json* const job = world_->server().find("durablejobs", ns, name);
    return job ? codecs::decode_status(codecs::decode_spec(document(holdfast::at(*job, "spec"))),
                                       document(holdfast::at(*job, "status")))
               : reconciler::Status();
  }
  bool has_pod(const std::string& ns, const std::string& name) {
    const std::string pod = status(ns, name).run().pod_name;
    return !pod.empty() && world_->server().find("pods", ns, pod) != nullptr;
  }
  void kill_pod(const std::string& ns, const std::string& name) {
    EXPECT_TRUE(
        world_->users().delete_pod(ns + "/" + status(ns, name).run().pod_name, /*force=*/true));
  }
  void trouble(std::function<Fate(const ApiRequest&)> fate) { world_->gateway().fate_of = fate; }
  void no_trouble() {
    trouble([](const ApiRequest&) { return Fate(); });
  }

  int replicas = 1;
  int shards = 8;
  bool by_namespace = true;
  bool lane = false;
  Duration work_lasts = minutes(30);
  World* world_ = nullptr;
};

}  // namespace holdfast::simulation
