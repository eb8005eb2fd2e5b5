// For how long a replica has seen workers silent, behind, or missing.
#include "operator/pools/worker_times.h"

#include <gtest/gtest.h>

namespace holdfast::controller {
namespace {

using std::chrono::seconds;

class WorkerTimesTest : public ::testing::Test {
 protected:
  WorkerTimesTest() { pass(seconds(0)); }
  // The watch is open and a write of ours succeeds each second.
  void pass(Duration time) {
    for (const SteadyTime end = now_ + time; true; now_ += seconds(1)) {
      times_.watch([this](const std::string&) { return live_; }, now_);
      if (writes_) times_.proof(now_);
      if (now_ >= end) return;
    }
  }
  void see(std::uint64_t version, const std::string& holder = "pod/w") {
    CachedWorkerLease lease;
    lease.version = version;
    lease.holder = holder;
    lease.renewed = Time(seconds(1));
    lease.report.work_uid = work_.uid = "work";
    lease.report.seq = echoed_;
    times_.seen("media/w", lease, &work_, now_);
  }
  Duration silent() { return times_.silent_for("media/w", now_); }
  Duration lags() { return times_.lags_for("media/w", now_); }

  WorkerTimes times_;
  CachedWorkerLease work_;
  std::int64_t echoed_ = 0;
  SteadyTime now_{seconds(1000)};
  bool live_ = true;
  bool writes_ = true;
};

TEST_F(WorkerTimesTest, AWorkerIsSilentSinceItsLastNewVersion) {
  see(1);
  pass(seconds(7));
  EXPECT_EQ(silent(), seconds(7));
  see(1);
  EXPECT_EQ(silent(), seconds(7)) << "the same version is no sign of life";
  see(2);
  EXPECT_EQ(silent(), seconds(0));
}

TEST_F(WorkerTimesTest, TimeInWhichNobodyCouldRenewDoesNotCount) {
  see(1);
  pass(seconds(2));
  writes_ = false;
  pass(seconds(60));
  EXPECT_LE(silent(), seconds(7));
  writes_ = true;
  pass(seconds(3));
  EXPECT_LE(silent(), seconds(3)) << "after a gap the window starts again";
}

TEST_F(WorkerTimesTest, ARevokedWorkerIsSilentSinceItsRevocationAndACutOffOneNever) {
  see(1);
  pass(seconds(7));
  see(2, kRevokedHolder);
  EXPECT_EQ(silent(), seconds(0));
  pass(seconds(4));
  EXPECT_EQ(silent(), seconds(4));
  see(3, "");
  pass(seconds(4));
  EXPECT_EQ(silent(), seconds(0));
}

TEST_F(WorkerTimesTest, AnEchoLagsUntilItIsThere) {
  work_.work.seq = 1;
  see(1);
  pass(seconds(5));
  see(2);
  EXPECT_EQ(lags(), seconds(5)) << "a renewal that echoes an older version is none";
  echoed_ = 1;
  see(3);
  EXPECT_EQ(lags(), seconds(0));
}

TEST_F(WorkerTimesTest, AWorkerIsMissingSinceTheFirstLook) {
  EXPECT_EQ(times_.missing_for("media/uid", now_), seconds(0));
  pass(seconds(9));
  EXPECT_EQ(times_.missing_for("media/uid", now_), seconds(9));
  times_.found("media/uid");
  EXPECT_EQ(times_.missing_for("media/uid", now_), seconds(0));
}

}  // namespace
}  // namespace holdfast::controller
