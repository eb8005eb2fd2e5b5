// An action goes to the UIDs that were chosen, and to no other job.
#include "plugin/ui/actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/plugin/memory_api.h"

namespace holdfast::plugin {
namespace {

using ::testing::HasSubstr;

class UiActions : public ::testing::Test {
 protected:
  void add(const std::string& name, const std::string& uid, const std::string& phase) {
    api_.objects[test::MemoryApi::key(kJobs, "media", name)] = {
        {"apiVersion", "holdfast.dev/v1alpha1"},
        {"kind", "DurableJob"},
        {"metadata", {{"name", name}, {"namespace", "media"}, {"uid", uid}}},
        {"spec", {{"template", Json::object()}}},
        {"status", {{"phase", phase}}}};
  }
  Json& job(const std::string& name) {
    return api_.objects[test::MemoryApi::key(kJobs, "media", name)];
  }
  Json act_on(const std::string& verb,
              const std::vector<std::pair<std::string, std::string>>& jobs) {
    Json body = {{"verb", verb}, {"priority", 7}, {"jobs", Json::array()}};
    for (const auto& [name, uid] : jobs) {
      body["jobs"].push_back({{"ns", "media"}, {"name", name}, {"uid", uid}});
    }
    const Result<Action> action = parse_action(body.dump());
    EXPECT_TRUE(action.ok()) << action.error().message;
    return act(*action, api_);
  }

  test::MemoryApi api_;
};

TEST_F(UiActions, GoToTheChosenJobs) {
  add("a", "uid-a", "Running");
  add("b", "uid-b", "Running");
  const Json results = act_on("cancel", {{"a", "uid-a"}});
  EXPECT_EQ(results[0]["ok"], true) << results;
  EXPECT_EQ(job("a")["spec"]["cancel"], true);
  EXPECT_FALSE(job("b")["spec"].contains("cancel"));
}

// One of the set was deleted, and made anew, while the person read the confirmation.
TEST_F(UiActions, LeaveAnotherJobOfTheNameAlone) {
  add("a", "uid-new", "Running");
  add("b", "uid-b", "Running");
  const Json results = act_on("suspend", {{"a", "uid-old"}, {"b", "uid-b"}, {"c", "uid-c"}});
  EXPECT_EQ(results[0]["ok"], false);
  EXPECT_THAT(std::string(results[0]["text"]), HasSubstr("another one has its name"));
  EXPECT_FALSE(job("a")["spec"].contains("suspend"));
  EXPECT_EQ(results[1]["ok"], true);
  EXPECT_EQ(job("b")["spec"]["suspend"], true);
  EXPECT_EQ(results[2]["ok"], false);
}

TEST_F(UiActions, RetryMakesANewJobOfTheChosenOne) {
  add("a", "uid-a", "Failed");
  EXPECT_EQ(act_on("retry", {{"a", "uid-old"}})[0]["ok"], false);
  EXPECT_EQ(api_.objects.size(), 1U);
  EXPECT_EQ(act_on("retry", {{"a", "uid-a"}})[0]["ok"], true);
  EXPECT_EQ(api_.objects.size(), 2U);
}

TEST_F(UiActions, SetAPriority) {
  add("a", "uid-a", "Pending");
  EXPECT_EQ(act_on("priority", {{"a", "uid-a"}})[0]["ok"], true);
  EXPECT_EQ(job("a")["spec"]["queue"]["priority"], 7);
}

TEST_F(UiActions, ShowTheCommandThatDoesTheSame) {
  const ChosenJob job{"media", "a", "uid-a"};
  EXPECT_EQ(command_of({"cancel", 0, {}}, job), "kubectl holdfast cancel a -n media");
  EXPECT_EQ(command_of({"retry-failed", 0, {}}, job),
            "kubectl holdfast retry a -n media --failed-indexes");
  EXPECT_THAT(command_of({"priority", 7, {}}, job), HasSubstr("\"priority\":7"));
}

TEST(UiCommands, GoToTheClusterOfThePage) {
  EXPECT_EQ(in_cluster("kubectl get nodes", ""), "kubectl get nodes");
  EXPECT_EQ(in_cluster("kubectl exec a -- ls", "--context prod"),
            "kubectl --context prod exec a -- ls");
  EXPECT_EQ(in_cluster("kubectl holdfast retry a -n m", "--context prod"),
            "kubectl holdfast retry a -n m --context prod");
}

TEST(UiActionBodies, AreCheckedBeforeAnythingIsDone) {
  const auto body = [](const std::string& verb, const std::string& name) {
    return Json{{"verb", verb}, {"jobs", {{{"ns", "m"}, {"name", name}, {"uid", "u"}}}}}.dump();
  };
  EXPECT_TRUE(parse_action(body("cancel", "a")).ok());
  for (const std::string& bad :
       {body("delete", "a"), body("submit", "a"), body("cancel", "--kubeconfig=/etc/x"),
        body("cancel", "a/b"), body("cancel", ""), std::string("{}"), std::string("nonsense"),
        std::string(R"({"verb":"cancel","jobs":[]})")}) {
    EXPECT_FALSE(parse_action(bad).ok()) << bad;
  }
  Json many = {{"verb", "cancel"}, {"jobs", Json::array()}};
  for (int i = 0; i < 501; ++i) many["jobs"].push_back({{"ns", "m"}, {"name", "a"}, {"uid", "u"}});
  EXPECT_FALSE(parse_action(many.dump()).ok());
}

}  // namespace
}  // namespace holdfast::plugin
