// What the environment must say, and the words for what it does not.
#include "agent/run/settings.h"

#include "tests/unit/agent/settings_fixture.h"

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

class SettingsRule : public SettingsOf<read_settings> {
 protected:
  SettingsRule() {
    variables = {
        {"HOLDFAST_LEASE_NAMESPACE", "media"},
        {"HOLDFAST_LEASE_NAME", "holdfast-1b4e"},
        {"HOLDFAST_LEASE_DURATION_SECONDS", "30"},
        {"HOLDFAST_ATTEMPT", "3"},
        {"HOLDFAST_POD_NAME", "encode-3-abcde"},
        {"HOLDFAST_POD_UID", "77-88"},
        {"HOLDFAST_PROGRESS_FILE", "/holdfast/progress"},
        {"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
        {"KUBERNETES_SERVICE_PORT", "443"},
    };
  }
};

TEST_F(SettingsRule, WhatIsNotSetHasTheContractsDefaults) {
  const Result<Settings> settings = read();
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->guard.duration, seconds(30));
  EXPECT_EQ(settings->guard.progress_deadline, std::nullopt);
  EXPECT_EQ(settings->guard.attempt, 3);
  EXPECT_EQ(settings->guard.holder, "encode-3-abcde/77-88");
  EXPECT_EQ(settings->credentials, "/var/run/secrets/holdfast.dev");
  EXPECT_EQ(settings->termination_log, "/dev/termination-log");
}

TEST_F(SettingsRule, WhichExitCodesSayNotYetIsAList) {
  EXPECT_TRUE(read()->guard.deferrals.empty());
  variables["HOLDFAST_DEFER"] = "75:60:1000,76:1:5";
  variables["HOLDFAST_DEFERRALS"] = "4";
  const Result<Settings> settings = read();
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  ASSERT_EQ(settings->guard.deferrals.size(), 2u);
  EXPECT_EQ(settings->guard.deferrals[0].exit_code, 75);
  EXPECT_EQ(settings->guard.deferrals[0].pause, seconds(60));
  EXPECT_EQ(settings->guard.deferrals[1].limit, 5);
  EXPECT_EQ(settings->guard.deferred_before, 4);
  for (const char* wrong : {"75", "75:60", "75:60:", "75:60:1:2", "a:60:1"}) {
    refuses("HOLDFAST_DEFER", wrong, "not a list like 75:60:1000");
  }
  refuses("HOLDFAST_DEFERRALS", "-1", "whole number");
}

TEST_F(SettingsRule, EachThatIsMissingIsNamedWithWhoSetsIt) {
  for (const auto& [name, value] : variables) {
    refuses(name, "", "is not set; the Holdfast operator sets it");
  }
}

TEST_F(SettingsRule, NonsenseIsRefusedWithWhatIsWanted) {
  for (const char* const nonsense : {"0", "-1", "1.5", "30s", " 30", "99999999999999999999"}) {
    refuses("HOLDFAST_LEASE_DURATION_SECONDS", nonsense, "not a whole number from 1 to 3600");
    refuses("HOLDFAST_ATTEMPT", nonsense, "not a whole number");
    refuses("HOLDFAST_PROGRESS_DEADLINE_SECONDS", nonsense, "not a whole number");
  }
  refuses("KUBERNETES_SERVICE_PORT", "65536", "from 1 to 65535");
  for (const char* const nonsense : {"a/b", "../x", "A", "a b", "a%2f"}) {
    refuses("HOLDFAST_LEASE_NAME", nonsense, "not the name of an object");
  }
  refuses("HOLDFAST_PROGRESS_FILE", "progress", "not an absolute path");
}

TEST_F(SettingsRule, ANameInPlaceOfAnAddressIsRefused) {
  refuses("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc", "names are not resolved");
  variables["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  EXPECT_TRUE(read().ok());
}

}  // namespace
}  // namespace holdfast::agent
