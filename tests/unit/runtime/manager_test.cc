// The start and stop of what the controllers share. What they do with jobs is the simulation's.
#include "operator/runtime/manager.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/kube/client_fixture.h"

namespace holdfast::runtime {
namespace {

class SilentTelemetry : public controller::Telemetry {
 public:
  void attempt_ended(const std::string&) override {}
  void recovered(reconciler::OrphanClass, Duration) override {}
  void fenced_outcome(const std::string&) override {}
  void shard_moved(const std::string&) override {}
};

class SilentEvents : public controller::EventSink {
 public:
  void record(const controller::ObjectReference&, bool, const std::string&, const std::string&,
              const std::string&) override {}
};

class ManagerTest : public kube::ClientTest {
 protected:
  void start(std::vector<std::string> namespaces = {}) {
    Manager::Config config;
    config.namespaces = std::move(namespaces);
    manager_ = std::make_unique<Manager>(
        Manager::Dependencies{loop_, client_, random_, Log(), telemetry_, events_},
        std::move(config));
    manager_->start();
    loop_.run_ready();
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
  std::unique_ptr<Manager> manager_;
};

TEST_F(ManagerTest, AStopBeforeTheCachesAreSyncedLeavesNothingThatWouldRunLater) {
  start();
  EXPECT_FALSE(manager_->synced());
  stop();
  EXPECT_EQ(loop_.timers(), 0u);
  loop_.advance(std::chrono::minutes(1));
}

// The limit of file descriptors rests on it (runtime/descriptors.h).
TEST_F(ManagerTest, EachNamespaceHasItsWatchesAndOthersAreThereOnce) {
  start({"a", "b", "c"});
  EXPECT_EQ(transport_.streams(), 3 * Manager::kWatchesPerNamespace + Manager::kOtherWatches);
  stop();
}

}  // namespace
}  // namespace holdfast::runtime
