// For how long a replica has seen workers silent, behind, or missing.
#include "operator/pools/worker_times.h"

#include <gtest/gtest.h>

#include "tests/support/manual_loop.h"

namespace holdfast::pools {
namespace {

using std::chrono::seconds;

constexpr seconds kDuration{30};

class WorkerTimesTest : public ::testing::Test {
 protected:
  WorkerTimesTest() {
    const auto all = [](const std::string&, Duration) {
      return observe::WindowKeeper::Wanted{{0}, std::chrono::minutes(1)};
    };
    // ManualLoop's clock stands: pass() moves now_ alone.
    times_.keep_windows(windows_, [this] { return now_; }, {all, all, all, all});
    pass(seconds(0));
  }
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
    // A revocation keeps the renewal.
    if (holder == "pod/w") renewed_ = Time(seconds(version));
    lease.renewed = renewed_;
    lease.report.work_uid = work_.uid = "work";
    lease.report.seq = echoed_;
    times_.seen("media/w", lease, &work_, before_ ? &*before_ : nullptr, now_);
    before_ = lease;
  }
  // What this process has recorded is all that the next one has.
  void next_life() {
    const std::string text = record();
    times_ = WorkerTimes();
    before_.reset();
    pass(seconds(0));
    windows_.carry(text);
  }
  Duration silent() { return times_.silent_for("media/w", kDuration, now_); }
  Duration lags() { return times_.lags_for("media/w", kDuration, now_); }

  // All windows, as a process records them for the only shard.
  std::string record() {
    loop_.advance(seconds(1));
    return windows_.record(0);
  }

  test::ManualLoop loop_;
  observe::WindowKeeper windows_{loop_, Log()};
  WorkerTimes times_;
  CachedWorkerLease work_;
  std::optional<CachedWorkerLease> before_;
  std::optional<Time> renewed_;
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

// It may have died before: a revocation is no renewal.
TEST_F(WorkerTimesTest, ARevokedWorkerIsSilentSinceItsLastRenewalAndACutOffOneNever) {
  see(1);
  pass(seconds(7));
  see(2);
  pass(seconds(5));
  see(3, kRevokedHolder);
  EXPECT_EQ(silent(), seconds(5));
  pass(seconds(4));
  EXPECT_EQ(silent(), seconds(9));
  see(4, "");
  pass(seconds(4));
  EXPECT_EQ(silent(), seconds(0));
}

TEST_F(WorkerTimesTest, ARevocationAfterARenewalThatNobodySawBeginsTheSilence) {
  see(1);
  pass(seconds(7));
  renewed_ = Time(seconds(100));
  see(3, kRevokedHolder);
  EXPECT_EQ(silent(), seconds(0));
  pass(seconds(4));
  EXPECT_EQ(silent(), seconds(4));
}

TEST_F(WorkerTimesTest, ARevocationThatAnotherProcessWroteBeginsTheSilence) {
  see(1);
  pass(seconds(7));
  next_life();
  see(2, kRevokedHolder);
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

// ---- What the next process goes on from.

TEST_F(WorkerTimesTest, ASilenceIsOnRecordAndGoesOnAfterAFirstLook) {
  see(7);
  pass(seconds(20));
  EXPECT_EQ(record(), R"({"worker/media/w":["7",20]})");
  next_life();
  see(7);
  pass(seconds(10));
  EXPECT_EQ(silent(), seconds(25)) << "the worker may have renewed in vain between the lives";
  pass(seconds(5));
  EXPECT_EQ(silent(), seconds(35));
}

TEST_F(WorkerTimesTest, ARenewalBetweenTwoLivesEndsTheSilence) {
  see(7);
  pass(seconds(20));
  next_life();
  see(8);
  pass(seconds(15));
  EXPECT_EQ(silent(), seconds(15));
}

TEST_F(WorkerTimesTest, TheTimeSinceARevocationIsOnRecord) {
  see(2, kRevokedHolder);
  pass(seconds(20));
  EXPECT_EQ(record(), R"({"revoked/media/w":["2",20]})");
  next_life();
  see(2, kRevokedHolder);
  pass(seconds(3));
  EXPECT_EQ(silent(), seconds(23)) << "nobody can renew it";
}

TEST_F(WorkerTimesTest, ALagGoesOnWhileItsVersionIsNotEchoed) {
  work_.work.seq = 6;
  echoed_ = 5;
  see(1);
  pass(seconds(16));
  see(2);
  EXPECT_EQ(record(), R"({"echo/media/w":["6",16]})");
  next_life();
  work_.work.seq = 9;
  see(3);
  pass(seconds(15));
  EXPECT_EQ(lags(), seconds(31));
  echoed_ = 6;
  see(4);
  EXPECT_EQ(lags(), seconds(0)) << "it has read that version";
}

TEST_F(WorkerTimesTest, ALagIsTakenOverByOneWhoHasSeenTheWorkerAlready) {
  work_.work.seq = 9;
  echoed_ = 5;
  see(3);
  pass(seconds(15));
  windows_.carry(R"({"echo/media/w":["6",40]})");
  EXPECT_EQ(lags(), seconds(40));
  echoed_ = 6;
  see(4);
  windows_.carry(R"({"echo/media/w":["6",50]})");
  EXPECT_EQ(lags(), seconds(0)) << "that version is echoed by now";
}

TEST_F(WorkerTimesTest, HowLongALeaseIsMissingIsOnRecord) {
  times_.missing_for("media/uid", now_);
  pass(seconds(4));
  EXPECT_EQ(record(), "") << "the watch may be late";
  pass(seconds(2));
  EXPECT_EQ(record(), R"({"lease/media/uid":["0",6]})") << "it does not come back";
  next_life();
  pass(seconds(3));
  EXPECT_EQ(times_.missing_for("media/uid", now_), seconds(9)) << "also until its job was listed";
  pass(seconds(2));
  EXPECT_EQ(times_.missing_for("media/uid", now_), seconds(11));
}

TEST_F(WorkerTimesTest, WhatANewerReplicaRecordsOfItsOwnKindsIsLeftAlone) {
  see(7);
  pass(seconds(15));
  windows_.carry(
      R"({"slot/media/w":["7",90],"worker/media/w":"7","worker/media/x":["7",90],"worker":["7",9]})");
  EXPECT_EQ(silent(), seconds(15));
}

TEST_F(WorkerTimesTest, AWorkerIsMissingSinceTheFirstLook) {
  EXPECT_EQ(times_.missing_for("media/uid", now_), seconds(0));
  pass(seconds(9));
  EXPECT_EQ(times_.missing_for("media/uid", now_), seconds(9));
  times_.found("media/uid");
  EXPECT_EQ(times_.missing_for("media/uid", now_), seconds(0));
}

}  // namespace
}  // namespace holdfast::pools
