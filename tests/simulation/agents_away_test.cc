// After the API server was away for longer than the agents may go on, all jobs with a heartbeat are
// lost at one moment: their next attempts are spread, and those of a lone loss are not.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "operator/codecs/job_codec.h"
#include "tests/simulation/run.h"
#include "tests/support/json_document.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kJobs = 100;
constexpr seconds kDuration{30};
constexpr seconds kAway{60};   // the API server goes
constexpr seconds kBack{120};  // and comes back
constexpr seconds kLength{180};
// Kubelets report within two seconds, and a loss is judged within one.
constexpr seconds kFound{4};
constexpr seconds kSpread{kJobs / 20};

class AgentsAway : public testing::Test {
 protected:
  void run(const std::function<void()>& play) {
    RunRequest run = run_request(1, "calm", minutes(60));
    run.stop_at = kLength;
    run.rewrite = [this](Script& script) {
      script.events.clear();
      script.nodes = 3;
      script.replicas = replicas;
      script.shards = 8;
      script.clocks.resize(static_cast<std::size_t>(replicas));
    };
    run.sabotage = [&](World& world) {
      world_ = &world;
      world.cluster().work_of = [](const std::string&) {
        return Cluster::Work{.lasts = minutes(30)};
      };
      at(seconds(5), [this] { create_jobs(); });
      at(seconds(6), [this] { watch(); });
      play();
    };
    EXPECT_EQ(run_seed(run).violation, "");
  }
  void at(Duration when, std::function<void()> then) {
    world_->scheduler().at(when, std::move(then));
  }
  void outage() {
    at(kAway, [this] { world_->gateway().go_down(); });
    at(kBack, [this] { world_->gateway().come_up(); });
  }
  // How many next attempts were recorded in [from, to).
  long started(Duration from, Duration to) const {
    return std::count_if(next_.begin(), next_.end(),
                         [&](Duration when) { return when >= from && when < to; });
  }
  long most_in_a_second() const {
    long most = 0;
    for (const Duration when : next_) {
      most = std::max(most, started(when, when + seconds(1)));
    }
    return most;
  }

  int replicas = 1;
  World* world_ = nullptr;
  std::vector<Duration> next_ = std::vector<Duration>(kJobs, Duration::max());

 private:
  void create_jobs() {
    for (int job = 0; job < kJobs; ++job) {
      Json spec = drawn_spec(7);
      for (const char* field : {"suspend", "attemptDeadlineSeconds", "activeDeadlineSeconds",
                                "podReplacementPolicy", "ttlSecondsAfterFinished"}) {
        spec.erase(field);
      }
      spec["heartbeat"] = {{"leaseDurationSeconds", kDuration.count()}};
      spec["lostAfterSeconds"] = 40;
      spec["disruptionLimit"] = 50;
      ASSERT_TRUE(world_->users().create("team-a", "job-" + std::to_string(job), spec));
    }
  }
  void watch() {
    for (int job = 0; job < kJobs; ++job) {
      const Json* const found =
          world_->server().find("durablejobs", "team-a", "job-" + std::to_string(job));
      if (!found) continue;
      const auto status = codecs::decode_status({}, document(holdfast::at(*found, "status")));
      Duration& next = next_[static_cast<std::size_t>(job)];
      if (status.attempt >= 2) next = std::min(next, world_->scheduler().now());
    }
    at(world_->scheduler().now() + milliseconds(100), [this] { watch(); });
  }
};

TEST_F(AgentsAway, AfterAnOutageOfTheServerTheNextAttemptsAreSpread) {
  run([&] { outage(); });
  EXPECT_EQ(started(Duration(0), kBack), 0);
  EXPECT_EQ(started(kBack, kBack + kFound + kSpread), kJobs);
  EXPECT_LE(most_in_a_second(), 40);
}

// What the other replica counts it reads from the jobs and their Leases.
TEST_F(AgentsAway, AReplicaThatTakesOverInTheMiddleSpreadsTheRest) {
  replicas = 2;
  run([&] {
    outage();
    at(kBack + seconds(3), [this] { world_->stop_replica(0, seconds(20)); });
  });
  EXPECT_EQ(started(kBack, kBack + kFound + kSpread), kJobs);
  EXPECT_LE(most_in_a_second(), 40);
}

TEST_F(AgentsAway, ALoneNodeThatDiesKeepsItsBoundAlsoUnderAReplicaThatIsNew) {
  long on_node = 0;
  run([&] {
    at(kAway - seconds(15), [this] { world_->stop_replica(0, seconds(5)); });
    at(kAway, [&] {
      world_->server().for_each("pods", [&](const Json& pod) {
        if (string_at(holdfast::at(pod, "spec"), "nodeName") == "node-0") ++on_node;
      });
      world_->cluster().cordon(0);
      world_->cluster().silence(0, /*power_off=*/true);
    });
  });
  EXPECT_GT(on_node, 20);
  EXPECT_EQ(started(kAway, kAway + kDuration + seconds(1)), on_node);
  EXPECT_EQ(started(Duration(0), kLength), on_node);
}

}  // namespace
}  // namespace holdfast::simulation
