// A worker that comes back, or whose Leases somebody has changed: its attempt is lost within the
// bound, goes to another worker, and nothing begins on the old one again. The same with an operator
// that never lives as long as its windows.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/worker_protocol.h"
#include "tests/simulation/run.h"

namespace holdfast::simulation {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

constexpr seconds kLease{10};
constexpr seconds kThen{40};
constexpr seconds kLength{150};
// An operator that is killed again and again: no life is as long as this Lease's duration. A new
// life waits for the last one's shards for 17 s.
constexpr seconds kLife{25};
constexpr seconds kLongLease{30};
constexpr seconds kTakeOver{18};
constexpr seconds kLongLength{300};
// A reconcile, and a look.
constexpr seconds kSoon{2};

class WorkerReturns : public testing::Test {
 protected:
  // `then`: what happens to the worker of the job, at kThen.
  void run(const std::function<void()>& then) {
    RunRequest run;
    run.profile = "calm";
    run.length = minutes(60);
    run.stop_at = is_killed_ ? kLongLength : kLength;
    run.rewrite = [this](Script& script) {
      script.events.clear();
      script.nodes = 3;
      script.replicas = 1;
      script.clocks.resize(1);
      if (is_killed_) script.kills_every = kLife;
    };
    run.sabotage = [&](World& world) {
      world_ = &world;
      world.workers().plan_of = [](const AttemptId&) {
        return WarmWorker::Plan{.lasts = minutes(30)};
      };
      at(seconds(5), [this] { create(); });
      at(kThen, [this, then] {
        ASSERT_EQ(attempt(), 1);
        pod_ = string_at(run_of_job(), "workerName");
        const Json* const pod = world_->server().find("pods", "team-a", pod_);
        ASSERT_TRUE(pod);
        uid_ = uid_of(*pod);
        node_ = string_at(holdfast::at(*pod, "spec"), "nodeName").back() - '0';
        then();
      });
      watch();
    };
    EXPECT_EQ(run_seed(run).violation, "");
  }
  void at(Duration when, std::function<void()> then) {
    world_->scheduler().at(when, std::move(then));
  }
  Json run_of_job() const {
    const Json* const job = world_->server().find("durablejobs", "team-a", "job");
    const Json& runs = holdfast::at(holdfast::at(*job, "status"), "runs");
    return runs.empty() ? Json::object() : runs[0];
  }
  std::int64_t attempt() const { return int_at(run_of_job(), "attempt"); }
  Json lease(const std::string& prefix) const {
    return *world_->server().find("leases", "team-a", prefix + uid_);
  }
  void patch(const std::string& prefix, const Json& body) {
    const auto answer = world_->gateway().ask(
        "admin", "PATCH", "/apis/coordination.k8s.io/v1/namespaces/team-a/leases/" + prefix + uid_,
        body, "application/merge-patch+json");
    ASSERT_EQ(answer->status, 200) << answer->body;
  }
  void delete_lease(const std::string& prefix) {
    const auto answer = world_->gateway().ask(
        "admin", "DELETE",
        "/apis/coordination.k8s.io/v1/namespaces/team-a/leases/" + prefix + uid_);
    ASSERT_EQ(answer->status, 200) << answer->body;
  }
  void break_work() {
    patch("holdfast-work-", {{"metadata", {{"annotations", {{kWorkAnnotation, "{"}}}}}});
  }
  void go_silent() { world_->cluster().silence(node_, /*power_off=*/false); }
  void kill_often() {
    is_killed_ = true;
    lease_ = kLongLease;
  }
  // Attempt 2 began on another worker within this time, and the old one is gone at the end.
  void expect_moved_within(Duration time) const {
    EXPECT_GT(moved_, kThen);
    EXPECT_LE(moved_, kThen + time);
    EXPECT_TRUE(is_gone_);
    EXPECT_EQ(lost_, 1);
  }

  World* world_ = nullptr;
  bool is_killed_ = false;
  seconds lease_ = kLease;
  std::string pod_, uid_;
  int node_ = 0;
  Duration moved_{0};
  bool is_gone_ = false;
  std::int64_t lost_ = 0;

 private:
  void create() {
    const Json pool = drawn_pool(1, {{"minWorkers", 2},
                                     {"maxWorkers", 2},
                                     {"slotsPerWorker", 1},
                                     {"leaseDurationSeconds", lease_.count()}});
    ASSERT_TRUE(world_->users().create_pool("team-a", "pool", pool));
    ASSERT_TRUE(world_->users().create("team-a", "job",
                                       {{"workerPool", {{"name", "pool"}}},
                                        {"retryBackoff", {{"initialSeconds", 1}}},
                                        {"payload", "1"}}));
  }
  void watch() {
    at(world_->scheduler().now() + std::chrono::milliseconds(100), [this] {
      const Json* const job = world_->server().find("durablejobs", "team-a", "job");
      if (job && moved_ == Duration::zero() && attempt() == 2 &&
          world_->workers().truth({uid_of(*job), 0, 2})) {
        moved_ = world_->scheduler().now();
      }
      if (job) lost_ = int_at(holdfast::at(*job, "status"), "disruptions");
      const Json* const pod = world_->server().find("pods", "team-a", pod_);
      is_gone_ = !pod || uid_of(*pod) != uid_;
      watch();
    });
  }
};

TEST_F(WorkerReturns, AContainerThatBeginsAnewNeverServes) {
  run([this] { EXPECT_TRUE(world_->cluster().restart_container(uid_)); });
  expect_moved_within(kLease + seconds(12) + kSoon);
}

TEST_F(WorkerReturns, ANodeThatWasAwayFindsItsWorkersReplaced) {
  run([this] {
    world_->cluster().silence(node_, /*power_off=*/false);
    at(kThen + 3 * kLease, [this] { world_->cluster().bring_back(node_); });
  });
  expect_moved_within(kLease + kSoon);
}

// Its kubelet cannot say that all processes have ended. So the worker is revoked first.
TEST_F(WorkerReturns, ANodeThatLostItsPowerComesBackWithoutTheAttempt) {
  run([this] {
    world_->cluster().silence(node_, /*power_off=*/true);
    at(kThen + seconds(5), [this] { world_->cluster().bring_back(node_); });
  });
  expect_moved_within(seconds(5) + kLease + kSoon);
}

TEST_F(WorkerReturns, AHolderThatSomebodyEditsIsRevoked) {
  run([this] { patch("holdfast-worker-", {{"spec", {{"holderIdentity", "somebody/else"}}}}); });
  expect_moved_within(kLease + kSoon);
}

TEST_F(WorkerReturns, AnAgentEndsWhoseWorkSomebodyTookAway) {
  run([this] {
    patch("holdfast-work-", {{"metadata", {{"annotations", {{kWorkAnnotation, nullptr}}}}}});
  });
  expect_moved_within(2 * kLease + kSoon);
}

// The agent understands nothing, so it goes on. The operator revokes it.
TEST_F(WorkerReturns, AWorkerWhoseWorkNobodyUnderstandsIsRevoked) {
  run([this] { break_work(); });
  expect_moved_within(2 * kLease + kSoon);
}

// ---- Windows that outlive the process: twice the bound, and a take-over.

TEST_F(WorkerReturns, ASilentWorkerIsCutOffByAnOperatorThatIsKilledAgainAndAgain) {
  kill_often();
  run([this] {
    go_silent();
    at(kLongLength - seconds(60), [this] { world_->cluster().bring_back(node_); });
  });
  expect_moved_within(2 * kLongLease + kTakeOver + kSoon);
}

TEST_F(WorkerReturns, ARevokedWorkerIsCutOffByAnOperatorThatIsKilledAgainAndAgain) {
  kill_often();
  run([this] { patch("holdfast-worker-", {{"spec", {{"holderIdentity", "somebody/else"}}}}); });
  expect_moved_within(2 * kLongLease + kTakeOver + kSoon);
}

TEST_F(WorkerReturns, AWorkerThatReadsNoWorkIsRevokedByAnOperatorThatIsKilledAgainAndAgain) {
  kill_often();
  run([this] { break_work(); });
  expect_moved_within(4 * kLongLease + kTakeOver + kSoon);
}

TEST_F(WorkerReturns, AWorkerWithoutLeasesIsLostByAnOperatorThatIsKilledAgainAndAgain) {
  kill_often();
  run([this] {
    delete_lease("holdfast-worker-");
    delete_lease("holdfast-work-");
  });
  expect_moved_within(2 * kLongLease + kTakeOver + kSoon);
}

}  // namespace
}  // namespace holdfast::simulation
