// One tenant's trouble stays that tenant's: certain worlds, in which one namespace, or one kind of
// request, is in trouble, and what others must not notice of it.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "operator/controller/job_codec.h"
#include "tests/simulation/run.h"
#include "tests/support/json_document.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Fate = Gateway::Fate;

bool is_of(const ApiRequest& request, const std::string& namespace_) {
  return request.target.find("/namespaces/" + namespace_ + "/") != std::string::npos;
}
// A list or a watch.
bool is_collection(const ApiRequest& request) {
  return request.method == "GET" && request.target.find('?') != std::string::npos;
}

// A world without faults but those that the test makes.
class Tenancy : public testing::Test {
 protected:
  using Then = std::function<void()>;

  // `play` plans what happens; nothing happens after `length`.
  void run(Duration length, const std::function<void()>& play) {
    RunRequest run;
    run.seed = 1;
    run.profile = "calm";
    run.length = minutes(60);
    run.stop_at = length;
    run.rewrite = [this](Script& script) {
      script.events.clear();
      script.nodes = 4;
      script.replicas = replicas;
      script.shards = shards;
      script.by_namespace = by_namespace;
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
    return job ? controller::decode_status(document(holdfast::at(*job, "status"))) : reconciler::Status();
  }
  bool has_pod(const std::string& ns, const std::string& name) {
    const std::string pod = status(ns, name).pod_name;
    return !pod.empty() && world_->server().find("pods", ns, pod) != nullptr;
  }
  void trouble(std::function<Fate(const ApiRequest&)> fate) { world_->gateway().fate_of = fate; }
  void no_trouble() {
    trouble([](const ApiRequest&) { return Fate(); });
  }

  int replicas = 1;
  int shards = 8;
  bool by_namespace = true;
  Duration work_lasts = minutes(30);
  World* world_ = nullptr;
};

// ---- A namespace that cannot be listed or watched.

struct Failure {
  const char* name;
  Fate fate;
};
class FailingNamespace : public Tenancy, public testing::WithParamInterface<Failure> {
 protected:
  void fail(const std::string& ns) {
    trouble([ns](const ApiRequest& request) {
      return is_of(request, ns) && is_collection(request) ? GetParam().fate : Fate();
    });
  }
};

TEST_P(FailingNamespace, AtTheStartHoldsUpNoOther) {
  run(minutes(3), [this] {
    fail("team-b");
    world_->cluster().image_errors(true);
    at(milliseconds(50), [this] {
      create("team-a", "a", {{"startDeadlineSeconds", 20}});
      create("team-b", "b");
    });
    at(seconds(12), [this] { EXPECT_TRUE(has_pod("team-a", "a")) << "after 12 s"; });
    // Its deadline counts once its watch has been live for 15 s.
    at(seconds(36), [this] { EXPECT_EQ(status("team-a", "a").disruptions, 1); });
    at(seconds(40), [this] {
      EXPECT_EQ(status("team-b", "b").phase, reconciler::Phase::kNone) << "it cannot be read";
      no_trouble();
    });
    // A request that hangs is given up after a minute, and the reflectors have backed off.
    at(seconds(40 + 61 + 32), [this] { EXPECT_TRUE(has_pod("team-b", "b")); });
  });
}

TEST_P(FailingNamespace, LaterStopsNoOthersClocks) {
  run(minutes(2), [this] {
    at(seconds(10), [this] {
      world_->cluster().image_errors(true);
      create("team-a", "a", {{"startDeadlineSeconds", 20}});
      fail("team-b");
      world_->network().break_watches(-1);
    });
    at(seconds(35), [this] { EXPECT_EQ(status("team-a", "a").disruptions, 1); });
  });
}

INSTANTIATE_TEST_SUITE_P(All, FailingNamespace,
                         testing::Values(Failure{"With500", {.refused = 500}},
                                         Failure{"With503", {.refused = 503}},
                                         Failure{"Hanging", {.held = seconds(61), .refused = 500}}),
                         [](const auto& failure) { return failure.param.name; });

}  // namespace
}  // namespace holdfast::simulation
