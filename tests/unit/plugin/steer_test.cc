// cancel, suspend, resume and retry: what they write, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/retry_job.h"
#include "plugin/verbs.h"
#include "tests/unit/plugin/memory_api.h"
#include "tests/unit/plugin/text_terminal.h"

namespace holdfast::plugin {
namespace {

using ::testing::HasSubstr;

class PluginSteer : public ::testing::Test {
 protected:
  PluginSteer() { job(); }

  Json& job(const std::string& name = "sweep") {
    Json& job = api_.objects[test::MemoryApi::key(kJobs, "default", name)];
    if (job.is_null()) {
      job = {{"metadata", {{"name", name}, {"namespace", "default"}, {"uid", "u-" + name}}},
             {"spec", {{"completionMode", "Indexed"}, {"completions", 9}, {"suspend", false}}},
             {"status", {{"phase", "Running"}}}};
    }
    return job;
  }

  int run(const std::vector<std::string>& words) {
    const Result<Command> command = parse_command(words);
    EXPECT_TRUE(command.ok()) << command.error().message;
    terminal_.output.clear();
    terminal_.errors.clear();
    return function_of(command->verb)(*command, api_, terminal_);
  }

  test::MemoryApi api_;
  test::TextTerminal terminal_;
};

TEST_F(PluginSteer, EachVerbSetsItsField) {
  EXPECT_EQ(run({"suspend", "sweep"}), kExitDone);
  EXPECT_EQ(terminal_.output, "durablejob.holdfast.dev/sweep is being suspended\n");
  EXPECT_TRUE(bool_at(at(job(), "spec"), "suspend"));
  EXPECT_EQ(run({"resume", "dj/sweep"}), kExitDone);
  EXPECT_FALSE(bool_at(at(job(), "spec"), "suspend", true));
  EXPECT_EQ(run({"cancel", "sweep", "-o", "name"}), kExitDone);
  EXPECT_EQ(terminal_.output, "durablejob.holdfast.dev/sweep\n");
  EXPECT_TRUE(bool_at(at(job(), "spec"), "cancel"));
}

TEST_F(PluginSteer, TheSecondTimeChangesNothing) {
  run({"suspend", "sweep"});
  api_.calls.clear();
  EXPECT_EQ(run({"suspend", "sweep"}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("is suspended already"));
  EXPECT_EQ(api_.calls, std::vector<std::string>{"get durablejobs sweep"});
}

TEST_F(PluginSteer, AJobThatHasEndedIsNotSteered) {
  job()["status"] = {{"phase", "Failed"}};
  for (const char* verb : {"cancel", "suspend", "resume"}) {
    EXPECT_EQ(run({verb, "sweep"}), kExitRefused);
    EXPECT_THAT(terminal_.errors, HasSubstr("has ended, it is Failed"));
  }
  job()["status"] = {{"phase", "Cancelled"}};
  job()["spec"]["cancel"] = true;
  EXPECT_EQ(run({"cancel", "sweep"}), kExitDone);
}

TEST_F(PluginSteer, ACancelledJobIsNotSuspended) {
  job()["spec"]["cancel"] = true;
  EXPECT_EQ(run({"suspend", "sweep"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("is being cancelled, which nothing reverses"));
}

TEST_F(PluginSteer, AJobThatIsNotThereIsSaidWithWhatToDo) {
  EXPECT_EQ(run({"cancel", "swep"}), kExitRefused);
  EXPECT_EQ(
      terminal_.errors,
      "kubectl holdfast cancel: there is no DurableJob swep in namespace default; kubectl get "
      "durablejobs -A lists all\n");
  EXPECT_EQ(run({"cancel", "pod/sweep"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("pod/sweep is no DurableJob"));
}

TEST_F(PluginSteer, ARetryIsANewJobThatNamesItsSource) {
  job()["status"] = {{"phase", "Failed"}};
  job()["spec"]["cancel"] = true;
  job()["metadata"]["labels"] = {{"team", "video"}};
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  EXPECT_EQ(terminal_.output, "durablejob.holdfast.dev/sweep-retry-1 created, a retry of sweep\n");
  const Json& retry = job("sweep-retry-1");
  const Json& annotations = at(at(retry, "metadata"), "annotations");
  EXPECT_EQ(string_at(annotations, kRetryOfAnnotation), "sweep");
  EXPECT_EQ(string_at(annotations, kRetryOfUidAnnotation), "u-sweep");
  EXPECT_EQ(at(at(retry, "metadata"), "labels"), Json({{"team", "video"}}));
  EXPECT_EQ(at(retry, "spec"), Json({{"completionMode", "Indexed"}, {"completions", 9}}));
  EXPECT_TRUE(at(retry, "status").is_null());
}

TEST_F(PluginSteer, ARetryOfTheFailedIndexesRunsThoseAlone) {
  job()["status"] = {{"phase", "Failed"}, {"failedIndexes", "3,5-6"}};
  EXPECT_EQ(run({"retry", "sweep", "--failed-indexes"}), kExitDone);
  EXPECT_EQ(string_at(at(job("sweep-retry-1"), "spec"), "indexes"), "3,5-6");
}

TEST_F(PluginSteer, ARetryIsRefusedWithItsReason) {
  EXPECT_EQ(run({"retry", "sweep"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("has not ended, it is Running"));
  job()["status"] = {{"phase", "Failed"}};
  EXPECT_EQ(run({"retry", "sweep", "--failed-indexes"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("no index of durablejob.holdfast.dev/sweep failed"));
  job()["status"] = {{"phase", "Failed"}, {"failedIndexes", "3"}, {"stage", "verify"}};
  EXPECT_EQ(run({"retry", "sweep", "--failed-indexes"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("are those of stage verify"));
  job()["spec"].erase("completionMode");
  EXPECT_EQ(run({"retry", "sweep", "--failed-indexes"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("has no indexes"));
}

TEST_F(PluginSteer, TheSameSourceIsRetriedOnce) {
  job()["status"] = {{"phase", "Failed"}};
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  // Its answer was lost, say.
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("sweep-retry-1 retries sweep already"));
  job("sweep-retry-1")["status"] = {{"phase", "Failed"}};
  EXPECT_EQ(run({"retry", "sweep"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("kubectl holdfast retry sweep-retry-1"));
  EXPECT_EQ(run({"retry", "sweep-retry-1"}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("sweep-retry-2 created, a retry of sweep-retry-1"));
  EXPECT_EQ(run({"retry", "sweep", "--name", "once-more"}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("once-more created"));
}

TEST_F(PluginSteer, ANameOfAnotherJobIsPassedOver) {
  job()["status"] = {{"phase", "Failed"}};
  job("sweep-retry-1");
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("sweep-retry-2 created"));
  EXPECT_EQ(run({"retry", "sweep", "--name", "sweep-retry-1"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("give another one with --name"));
}

TEST(PluginRetryName, CountsOnFromARetry) {
  EXPECT_EQ(retry_name("encode", 1), "encode-retry-1");
  EXPECT_EQ(retry_name("encode-retry-1", 2), "encode-retry-2");
  EXPECT_EQ(retry_number("encode-retry-12"), 12);
  EXPECT_EQ(retry_number("encode"), 0);
  EXPECT_EQ(retry_number("encode-retry-x"), 0);
  EXPECT_LE(retry_name(std::string(63, 'a'), 9999).size(), 51U);
}

}  // namespace
}  // namespace holdfast::plugin
