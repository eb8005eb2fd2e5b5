#include "client/kube/tls_rotation.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/manual_loop.h"
#include "tests/unit/kube/memory_files.h"

namespace holdfast::kube {
namespace {

constexpr Duration kPeriod = std::chrono::minutes(1);

class TlsRotationTest : public testing::Test {
 protected:
  TlsRotationTest() {
    config_.ca_file = "/ca";
    config_.certificate_file = "/cert";
    config_.key_file = "/key";
    files_.files = {{"/ca", "CA1"}, {"/cert", "CERT1"}, {"/key", "KEY1"}};
  }

  std::unique_ptr<TlsRotation> start() {
    return std::make_unique<TlsRotation>(
        loop_, Log(), files_, config_, *load_tls(config_, files_), kPeriod,
        [this](const http::TlsConfig& tls) {
          offered_.push_back(tls);
          return accept_ ? Result<>(Unit{})
                         : Result<>(make_error(ErrorCode::kInvalid, "does not fit"));
        });
  }

  test::ManualLoop loop_;
  test::MemoryFiles files_;
  ClusterConfig config_;
  bool accept_ = true;
  std::vector<http::TlsConfig> offered_;
};

TEST_F(TlsRotationTest, UnchangedFilesAreNotHandedOn) {
  const auto rotation = start();
  loop_.advance(kPeriod * 10);
  EXPECT_TRUE(offered_.empty());
}

TEST_F(TlsRotationTest, AChangedCaIsHandedOnOnceWithinAMinute) {
  const auto rotation = start();
  files_.files["/ca"] = "CA2";
  loop_.advance(kPeriod);
  ASSERT_EQ(offered_.size(), 1U);
  EXPECT_EQ(offered_[0].ca, "CA2");
  EXPECT_EQ(offered_[0].client_certificate, "CERT1");
  loop_.advance(kPeriod * 3);
  EXPECT_EQ(offered_.size(), 1U);
}

TEST_F(TlsRotationTest, AFileThatCannotBeReadChangesNothing) {
  const auto rotation = start();
  files_.broken["/cert"] = true;
  files_.files["/ca"] = "CA2";
  loop_.advance(kPeriod * 2);
  EXPECT_TRUE(offered_.empty());
  files_.broken.clear();
  loop_.advance(kPeriod);
  ASSERT_EQ(offered_.size(), 1U);
  EXPECT_EQ(offered_[0].ca, "CA2");
}

TEST_F(TlsRotationTest, WhatIsRefusedIsOfferedAgainUntilItIsTaken) {
  const auto rotation = start();
  accept_ = false;
  files_.files["/cert"] = "CERT2";
  loop_.advance(kPeriod * 2);
  EXPECT_EQ(offered_.size(), 2U);
  accept_ = true;
  files_.files["/key"] = "KEY2";
  loop_.advance(kPeriod * 2);
  ASSERT_EQ(offered_.size(), 3U);
  EXPECT_EQ(offered_[2].client_certificate, "CERT2");
  EXPECT_EQ(offered_[2].client_key, "KEY2");
}

TEST_F(TlsRotationTest, ItsEndTakesTheTimerAlong) {
  auto rotation = start();
  EXPECT_EQ(loop_.timers(), 1U);
  loop_.advance(kPeriod);
  rotation.reset();
  EXPECT_EQ(loop_.timers(), 0U);
}

TEST_F(TlsRotationTest, WithoutFilesThereIsNoTimer) {
  config_ = ClusterConfig();
  config_.ca_data = "CA";
  const auto rotation = start();
  EXPECT_EQ(loop_.timers(), 0U);
}

}  // namespace
}  // namespace holdfast::kube
