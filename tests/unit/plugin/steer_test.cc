// cancel, suspend, resume and retry: what they write, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugin/verbs/retry_job.h"
#include "plugin/verbs/verbs.h"
#include "tests/unit/plugin/memory_api.h"
#include "tests/unit/plugin/text_terminal.h"

namespace holdfast::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

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

  // What retry names the retry of this job.
  std::string retry_of(const std::string& name) {
    return retry_name(name, string_at(at(job(name), "metadata"), "uid"));
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
  EXPECT_THAT(retry_of("sweep"), MatchesRegex("sweep-retry-1-[a-z0-9]{5}"));
  EXPECT_EQ(terminal_.output,
            "durablejob.holdfast.dev/" + retry_of("sweep") + " created, a retry of sweep\n");
  const Json& retry = job(retry_of("sweep"));
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
  EXPECT_EQ(string_at(at(job(retry_of("sweep")), "spec"), "indexes"), "3,5-6");
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
  const std::string first = retry_of("sweep");
  EXPECT_THAT(terminal_.output, HasSubstr(first + " retries sweep already"));
  job(first)["status"] = {{"phase", "Failed"}};
  EXPECT_EQ(run({"retry", "sweep"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("kubectl holdfast retry " + first));
  EXPECT_EQ(run({"retry", first}), kExitDone);
  EXPECT_THAT(retry_of(first), MatchesRegex("sweep-retry-2-[a-z0-9]{5}"));
  EXPECT_THAT(terminal_.output, HasSubstr(retry_of(first) + " created, a retry of " + first));
  EXPECT_EQ(run({"retry", "sweep", "--name", "once-more"}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("once-more created"));
}

TEST_F(PluginSteer, ARetryOfAllIndexesIsNoneOfTheFailedOnes) {
  job()["status"] = {{"phase", "Failed"}, {"failedIndexes", "3,5-6"}};
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  const std::string retry = retry_of("sweep");
  EXPECT_EQ(run({"retry", "sweep", "--failed-indexes"}), kExitRefused);
  EXPECT_THAT(terminal_.errors,
              HasSubstr(retry + " retries sweep already, but runs all indexes "
                                "and not only the indexes 3,5-6; wait for its end"));
  api_.objects.erase(test::MemoryApi::key(kJobs, "default", retry));
  EXPECT_EQ(run({"retry", "sweep", "--failed-indexes"}), kExitDone);
  EXPECT_EQ(run({"retry", "sweep", "--failed-indexes"}), kExitDone);
  EXPECT_EQ(run({"retry", "sweep"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("but runs only the indexes 3,5-6 and not all indexes"));
}

TEST_F(PluginSteer, ANewJobOfTheNameHasARetryOfItsOwn) {
  job()["status"] = {{"phase", "Failed"}};
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  const std::string of_the_old = retry_of("sweep");
  job()["metadata"]["uid"] = "u-again";
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  EXPECT_NE(retry_of("sweep"), of_the_old);
  EXPECT_THAT(terminal_.output, HasSubstr(retry_of("sweep") + " created"));
}

TEST_F(PluginSteer, ANameOfAnotherJobIsNotTaken) {
  job()["status"] = {{"phase", "Failed"}};
  job("other");
  EXPECT_EQ(run({"retry", "sweep", "--name", "other"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("other exists, and does not retry this sweep; give "
                                          "another name with --name"));
}

TEST_F(PluginSteer, ARetryThatGoesBetweenCreateAndReadIsCreatedAgain) {
  job()["status"] = {{"phase", "Failed"}};
  const Error exists = make_error(ErrorCode::kAlreadyExists, "exists");
  api_.create_errors = {exists};
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  EXPECT_THAT(terminal_.output, HasSubstr("created"));
  api_.objects.erase(test::MemoryApi::key(kJobs, "default", retry_of("sweep")));
  api_.create_errors = std::vector<Error>(100, exists);
  EXPECT_EQ(run({"retry", "sweep"}), kExitRefused);
  EXPECT_THAT(terminal_.errors, HasSubstr("creates and deletes"));
  EXPECT_GE(api_.create_errors.size(), 90U) << "it must not try for ever";
}

TEST_F(PluginSteer, ALostAnswerOfARetryIsAskedForAgain) {
  job()["status"] = {{"phase", "Failed"}};
  Error lost = make_error(ErrorCode::kTransient, "no complete answer in time");
  lost.maybe_applied = true;
  api_.create_errors = {lost};
  api_.applies_lost_creates = true;
  EXPECT_EQ(run({"retry", "sweep"}), kExitDone);
  EXPECT_EQ(api_.objects.size(), 2U);
}

TEST(PluginRetryName, CountsOnFromARetry) {
  const std::string first = retry_name("encode", "u");
  EXPECT_THAT(first, MatchesRegex("encode-retry-1-[a-z0-9]{5}"));
  EXPECT_THAT(retry_name(first, "v"), MatchesRegex("encode-retry-2-[a-z0-9]{5}"));
  EXPECT_EQ(retry_name("encode", "u"), first);
  EXPECT_NE(retry_name("encode", "v"), first);
  for (const char* other : {"encode-retry-1", "encode-retry-x-abcde", "-retry-1-abcde"}) {
    EXPECT_THAT(retry_name(other, "u"), StartsWith(std::string(other) + "-retry-1-"));
  }
  EXPECT_LE(retry_name(std::string(63, 'a'), "u").size(), 51U);
}

}  // namespace
}  // namespace holdfast::plugin
