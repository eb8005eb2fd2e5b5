// When what a command reported is worth a renewal.
#include "agent/base/command_reports.h"

#include <gtest/gtest.h>

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

constexpr seconds kD{60};

SteadyTime at(Duration since_start) { return SteadyTime(seconds(1000)) + since_start; }

TEST(CommandReports, ProgressIsWorthARenewalATenthOfTheDurationAfterTheLastOne) {
  CommandReports reports;
  reports.begins(at(seconds(0)), std::nullopt);
  EXPECT_EQ(reports.due(at(seconds(0)), kD), SteadyTime::max());
  reports.progressed(at(seconds(1)), "half");
  EXPECT_EQ(reports.due(at(seconds(0)), kD), at(seconds(6)));
  reports.sent();
  reports.has(reports.sent_mark(), reports.age(at(seconds(6))));
  EXPECT_EQ(reports.due(at(seconds(6)), kD), SteadyTime::max());
}

TEST(CommandReports, ACheckpointIsWorthARenewalASecondAfterTheLastOne) {
  CommandReports reports;
  reports.begins(at(seconds(0)), std::nullopt);
  reports.checkpointed(1, "at 1");
  EXPECT_FALSE(reports.is_kept());
  EXPECT_EQ(reports.due(at(seconds(0)), kD), at(seconds(1)));
  reports.sent();
  EXPECT_EQ(reports.keep(), 1);
  EXPECT_TRUE(reports.is_kept());
  EXPECT_EQ(reports.keep(), std::nullopt) << "it is reported as kept once";
}

TEST(CommandReports, OnlyWhatTheRenewalCarriedIsKept) {
  CommandReports reports;
  reports.checkpointed(1, "at 1");
  reports.sent();
  reports.checkpointed(2, "at 2");
  EXPECT_EQ(reports.sent_checkpoint(), "at 1");
  EXPECT_EQ(reports.keep(), 1);
  EXPECT_FALSE(reports.is_kept());
}

TEST(CommandReports, TheEndOfTheProgressDeadlineIsReportedOnce) {
  CommandReports reports;
  reports.begins(at(seconds(0)), seconds(90));
  EXPECT_EQ(reports.due(at(seconds(80)), kD), at(seconds(90)));
  reports.sent();
  reports.has(reports.sent_mark(), seconds(89));
  EXPECT_EQ(reports.due(at(seconds(89)), kD), at(seconds(90))) << "it had not passed yet";
  reports.has(reports.sent_mark(), seconds(90));
  EXPECT_EQ(reports.due(at(seconds(90)), kD), SteadyTime::max());
  reports.progressed(at(seconds(91)), "");
  reports.sent();
  reports.has(reports.sent_mark(), seconds(0));
  EXPECT_EQ(reports.due(at(seconds(97)), kD), at(seconds(181))) << "and again after progress";
}

TEST(CommandReports, AnOldMarkSaysNothingAboutTheProgressDeadline) {
  CommandReports reports;
  reports.begins(at(seconds(0)), seconds(90));
  reports.sent();
  reports.progressed(at(seconds(89)), "");
  reports.has(0, seconds(90));
  EXPECT_EQ(reports.due(at(seconds(200)), kD), at(seconds(179)));
}

}  // namespace
}  // namespace holdfast::agent
