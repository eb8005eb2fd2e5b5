// Shell completion: what may stand where.
#include <gtest/gtest.h>

#include "plugin/verbs/completion.h"
#include "tests/unit/plugin/memory_api.h"

namespace holdfast::plugin {
namespace {

using Words = std::vector<std::string>;

Words completed(const Words& words) {
  test::MemoryApi api;
  for (const char* name : {"encode-7", "encode-8", "sweep"}) {
    api.objects[test::MemoryApi::key(kJobs, "default", name)] = {{"metadata", {{"name", name}}}};
  }
  api.objects[test::MemoryApi::key(kJobs, "media", "video")] = {{"metadata", {{"name", "video"}}}};
  return candidates(words, api);
}

TEST(PluginCompletion, TheFirstWordIsAVerb) {
  EXPECT_EQ(completed({"re"}), (Words{"report", "resume", "retry"}));
  EXPECT_EQ(completed({"-n", "media", "re"}), (Words{"report", "resume", "retry"}));
  EXPECT_EQ(completed({"help", "top"}), Words{"top"});
}

TEST(PluginCompletion, AJobIsOneOfItsNamespace) {
  EXPECT_EQ(completed({"logs", "enc"}), (Words{"encode-7", "encode-8"}));
  EXPECT_EQ(completed({"-n", "media", "logs", ""}), Words{"video"});
  EXPECT_EQ(completed({"logs", "--tail", "3", "sw"}), Words{"sweep"});
}

TEST(PluginCompletion, FlagsAreThoseOfTheVerb) {
  EXPECT_EQ(completed({"retry", "--fail"}), Words{"--failed-indexes"});
  EXPECT_EQ(completed({"logs", "--fail"}), Words{});
  EXPECT_EQ(completed({"logs", "--names"}), Words{"--namespace"});
}

TEST(PluginCompletion, AValueIsOneOfItsFlags) {
  EXPECT_EQ(completed({"submit", "-o", "y"}), Words{"yaml"});
  EXPECT_EQ(completed({"submit", "-f", "jo"}), Words{":files"});
  EXPECT_EQ(completed({"submit", "--key", ""}), Words{});
}

TEST(PluginCompletion, OnlyTwoShellsHaveAScript) {
  EXPECT_FALSE(completion_script("bash").empty());
  EXPECT_FALSE(completion_script("zsh").empty());
  EXPECT_TRUE(completion_script("fish").empty());
}

}  // namespace
}  // namespace holdfast::plugin
