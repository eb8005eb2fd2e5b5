// What the environment of a warm worker must say, and what of it a command gets.
#include "agent/serve/serve_settings.h"

#include "tests/unit/agent/settings_fixture.h"

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

class ServeSettingsRule : public SettingsOf<read_serve_settings> {
 protected:
  ServeSettingsRule() {
    variables = {
        {"HOLDFAST_WORKER_POOL", "thumbnails"},    {"HOLDFAST_LEASE_NAMESPACE", "media"},
        {"HOLDFAST_POD_NAME", "thumbnails-abcde"}, {"HOLDFAST_POD_UID", "77-88"},
        {"HOLDFAST_LEASE_DURATION_SECONDS", "30"}, {"HOLDFAST_SLOTS", "4"},
        {"HOLDFAST_POD_GRACE_SECONDS", "45"},      {"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
        {"KUBERNETES_SERVICE_PORT", "443"},
    };
  }
};

TEST_F(ServeSettingsRule, TheLeasesAreThoseOfThePod) {
  const Result<ServeSettings> settings = read();
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->work_lease, "holdfast-work-77-88");
  EXPECT_EQ(settings->worker_lease, "holdfast-worker-77-88");
  EXPECT_EQ(settings->holder, "thumbnails-abcde/77-88");
  EXPECT_EQ(settings->duration, seconds(30));
  EXPECT_EQ(settings->slots, 4);
  EXPECT_EQ(settings->pod_grace, seconds(45));
  EXPECT_EQ(settings->stop_grace, seconds(30)) << "an older operator does not say it";
  EXPECT_EQ(settings->slots_folder, "/holdfast.dev/slots");
  EXPECT_EQ(settings->credentials, "/var/run/secrets/holdfast.dev");
  EXPECT_EQ(settings->termination_log, "/dev/termination-log");
}

TEST_F(ServeSettingsRule, TheGraceOfACommandIsThePoolsAndNotThePods) {
  variables["HOLDFAST_STOP_GRACE_SECONDS"] = "7";
  EXPECT_EQ(read()->stop_grace, seconds(7));
  refuses("HOLDFAST_STOP_GRACE_SECONDS", "0", "not a whole number from 1 to 3600");
}

TEST_F(ServeSettingsRule, WhatIsMissingOrWrongIsNamed) {
  refuses("HOLDFAST_WORKER_POOL", "", "is not set; the Holdfast operator sets it in the pods of a");
  refuses("HOLDFAST_POD_UID", "a/b", "not the name of an object");
  refuses("HOLDFAST_SLOTS", "0", "not a whole number from 1 to 16");
  refuses("HOLDFAST_SLOTS", "17", "not a whole number from 1 to 16");
  refuses("HOLDFAST_POD_GRACE_SECONDS", "", "is not set");
  refuses("HOLDFAST_LEASE_DURATION_SECONDS", "30s", "not a whole number");
  refuses("HOLDFAST_SLOTS_FOLDER", "slots", "not an absolute path");
  refuses("KUBERNETES_SERVICE_HOST", "kubernetes", "not an IP address");
}

TEST_F(ServeSettingsRule, ACommandGetsNoSettingOfTheAgent) {
  const char* const environment[] = {"PATH=/bin", "HOLDFAST_CREDENTIALS=/secret", "MINE=HOLDFAST_",
                                     "HOLDFAST_SLOTS=2", nullptr};
  EXPECT_EQ(without_settings(environment),
            (std::vector<std::string>{"PATH=/bin", "MINE=HOLDFAST_"}));
}

}  // namespace
}  // namespace holdfast::agent
