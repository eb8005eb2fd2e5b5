// The start and stop of what the controllers share. What they do with jobs is the simulation's.
#include "operator/runtime/manager.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/time.h"
#include "tests/unit/kube/client_fixture.h"

namespace holdfast::runtime {
namespace {

class SilentTelemetry : public jobs::Telemetry {
 public:
  void attempt_ended(const std::string&, const std::string&) override {}
  void stage_ended(const std::string&, std::optional<Duration>) override {}
  void recovered(const std::string&, reconciler::OrphanClass, Duration) override {}
  void fenced_outcome(const std::string&) override {}
  void admitted(const std::string&, const std::string&, Duration) override {}
  void shard_moved(const std::string&) override {}
};

class SilentEvents : public events::EventSink {
 public:
  void record(const events::ObjectReference&, bool, const std::string&, const std::string&,
              const std::string&) override {}
};

class NoTargets : public notify::Poster {
 public:
  void post(const notify::Target&, notify::Message, Done) override { FAIL() << "nobody is told"; }
};

class ManagerTest : public kube::ClientTest {
 protected:
  void start(std::vector<std::string> namespaces = {},
             std::optional<Manager::Config::BatchJobs> batch_jobs = std::nullopt,
             std::optional<rescue::Config> rescue = std::nullopt) {
    Manager::Config config;
    config.rescue = std::move(rescue);
    config.batch_jobs = std::move(batch_jobs);
    config.namespaces = std::move(namespaces);
    manager_ =
        std::make_unique<Manager>(Manager::Dependencies{loop_, client_, random_, Log(), telemetry_,
                                                        events_, targets_, system_files()},
                                  std::move(config));
    manager_->start();
    loop_.run_ready();
  }
  // Every list that a watch asked for ends, without objects; not those of this namespace.
  void answer_all_but(const std::string& namespace_) {
    for (std::size_t i = 0; i < transport_.streams(); ++i) {
      const std::string target = transport_.stream(i).target;
      if (target.find("/namespaces/" + namespace_ + "/") != std::string::npos) continue;
      transport_.open_stream(i);
      transport_.stream_lines({bookmark()}, i);
    }
    loop_.run_ready();
  }
  static std::string bookmark() {
    return R"({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "7",)"
           R"( "annotations": {"k8s.io/initial-events-end": "true"}}}})";
  }
  void stop() {
    bool stopped = false;
    manager_->stop([&] { stopped = true; });
    client_.shut_down();
    loop_.run_ready();
    EXPECT_TRUE(stopped);
    manager_.reset();
  }

  SilentTelemetry telemetry_;
  SilentEvents events_;
  NoTargets targets_;
  std::unique_ptr<Manager> manager_;
};

TEST_F(ManagerTest, AStopBeforeTheCachesAreSyncedLeavesNothingThatWouldRunLater) {
  start();
  EXPECT_FALSE(manager_->synced());
  stop();
  EXPECT_EQ(loop_.timers(), 0u);
  loop_.advance(std::chrono::minutes(1));
}

TEST_F(ManagerTest, AStopWhileOneNamespaceIsStillWaitedForLeavesNothingThatWouldRunLater) {
  start({"a", "b"});
  answer_all_but("b");
  EXPECT_FALSE(manager_->synced()) << "patience with b is not over";
  stop();
  EXPECT_EQ(loop_.timers(), 0u);
  loop_.advance(std::chrono::minutes(5));
}

TEST_F(ManagerTest, AStopWhileItJoinsLeavesNothingThatWouldRunLater) {
  transport_.date = parse_time("2026-03-01T12:00:00Z");
  start({"a", "b"});
  answer_all_but("nowhere");
  EXPECT_TRUE(manager_->synced());
  loop_.advance(std::chrono::seconds(30));
  stop();
  EXPECT_EQ(loop_.timers(), 0u);
  loop_.advance(std::chrono::minutes(5));
}

// The limit of file descriptors rests on it (runtime/descriptors.h).
TEST_F(ManagerTest, EachNamespaceHasItsWatchesAndOthersAreThereOnce) {
  start({"a", "b", "c"});
  EXPECT_EQ(transport_.streams(), 3 * Manager::kWatchesPerNamespace + Manager::kOtherWatches);
  stop();
}

TEST_F(ManagerTest, BatchJobsCostWatchesOnlyIfTheyAreRun) {
  start({"a", "b"}, Manager::Config::BatchJobs{"team=video"});
  EXPECT_EQ(transport_.streams(),
            2 * (Manager::kWatchesPerNamespace + Manager::kLaneWatchesPerNamespace) +
                Manager::kOtherWatches + Manager::kLaneOtherWatches);
  stop();
  EXPECT_EQ(loop_.timers(), 0u);
}

TEST_F(ManagerTest, OtherControllersPodsCostWatchesOnlyIfTheyAreRescued) {
  start({"a", "b"}, std::nullopt, rescue::Config{.namespaces = {"x", "y", "z"}});
  EXPECT_EQ(transport_.streams(), 2 * Manager::kWatchesPerNamespace + Manager::kOtherWatches + 3);
  stop();
  EXPECT_EQ(loop_.timers(), 0u);
}

}  // namespace
}  // namespace holdfast::runtime
