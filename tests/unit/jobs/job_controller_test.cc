// The controller's start and stop. What it does with jobs is the simulation's.
#include "operator/jobs/job_controller.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/unit/kube/client_fixture.h"

namespace holdfast::controller {
namespace {

class SilentTelemetry : public Telemetry {
 public:
  void attempt_ended(const std::string&) override {}
  void recovered(reconciler::OrphanClass, Duration) override {}
  void fenced_outcome(const std::string&) override {}
  void shard_moved(const std::string&) override {}
};

class SilentEvents : public EventSink {
 public:
  void record(const ObjectReference&, bool, const std::string&, const std::string&,
              const std::string&) override {}
};

class JobControllerTest : public kube::ClientTest {
 protected:
  void start(std::vector<std::string> namespaces = {}) {
    JobController::Config config;
    config.namespaces = std::move(namespaces);
    controller_ = std::make_unique<JobController>(
        JobController::Dependencies{loop_, client_, random_, Log(), telemetry_, events_},
        std::move(config));
    controller_->start();
    loop_.run_ready();
  }
  void stop() {
    bool stopped = false;
    controller_->stop([&] { stopped = true; });
    client_.shut_down();
    loop_.run_ready();
    EXPECT_TRUE(stopped);
    controller_.reset();
  }

  SilentTelemetry telemetry_;
  SilentEvents events_;
  std::unique_ptr<JobController> controller_;
};

TEST_F(JobControllerTest, AStopBeforeTheCachesAreSyncedLeavesNothingThatWouldRunLater) {
  start();
  EXPECT_FALSE(controller_->synced());
  stop();
  EXPECT_EQ(loop_.timers(), 0u);
  loop_.advance(std::chrono::minutes(1));
}

// The limit of file descriptors rests on it (runtime/descriptors.h).
TEST_F(JobControllerTest, EachNamespaceHasItsWatchesAndOthersAreThereOnce) {
  start({"a", "b", "c"});
  EXPECT_EQ(transport_.streams(),
            3 * JobController::kWatchesPerNamespace + JobController::kOtherWatches);
  stop();
}

}  // namespace
}  // namespace holdfast::controller
