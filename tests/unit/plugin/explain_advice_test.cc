// Each reason has a text that says what it means, and what a person can do.
#include "plugin/explain/advice.h"

#include <gtest/gtest.h>

#include <set>

#include "plugin/explain/gaps.h"

namespace holdfast::plugin {
namespace {

using reconciler::AnyReason;
using reconciler::Reason;

std::vector<Reason> all_reasons() {
  std::vector<Reason> all;
  for (int i = 0; i <= static_cast<int>(Reason::kWorkerStopping); ++i) {
    all.push_back(static_cast<Reason>(i));
  }
  return all;
}

// Ends of attempts that need nobody. They are never the reason of a wait, nor of a failed job.
const std::set<Reason> kNeedsNobody = {Reason::kCompleted, Reason::kHandedBack,
                                       Reason::kParallelismReduced, Reason::kPodNeverCreated,
                                       Reason::kSuccessPolicy};

TEST(PluginAdvice, EachReasonSaysWhatItMeansAndWhatToDo) {
  for (const Reason reason : all_reasons()) {
    const Advice& advice = advice_on(reason);
    EXPECT_NE(std::string(advice.means), "") << to_string(reason);
    const bool acts = *advice.act != 0;
    EXPECT_EQ(acts, !kNeedsNobody.contains(reason)) << to_string(reason);
  }
}

TEST(PluginAdvice, WordsOfKubeletsHaveATextToo) {
  for (const char* const word : {"ErrImagePull", "ImagePullBackOff", "InvalidImageName",
                                 "CreateContainerConfigError", "OOMKilled", "NobodyKnowsThis"}) {
    const Advice& advice = advice_on(AnyReason(std::string(word)));
    EXPECT_NE(std::string(advice.act), "") << word;
  }
  EXPECT_EQ(&advice_on(AnyReason(std::string("Queued"))), &advice_on(Reason::kQueued));
}

// A gap of another name would stay in what people paste into a shell.
TEST(PluginAdvice, EachGapHasAKnownName) {
  Gaps gaps;
  for (const char* const name : {"job", "ns", "pod", "node", "attempt", "index", "queue", "pool",
                                 "worker", "uid", "higher"}) {
    gaps[name] = "x";
  }
  for (const Reason reason : all_reasons()) {
    const Advice& advice = advice_on(reason);
    EXPECT_TRUE(fill_gaps(advice.act, gaps)) << to_string(reason);
    for (const char* const command : advice.commands) {
      if (!command) continue;
      EXPECT_TRUE(fill_gaps(command, gaps)) << command;
    }
  }
}

TEST(PluginAdvice, AGapWithoutAValueHasNoText) {
  EXPECT_EQ(fill_gaps("get pod {pod}", {{"pod", "a-1"}}), "get pod a-1");
  EXPECT_EQ(fill_gaps("get pod {pod}", {{"pod", ""}}), std::nullopt);
  EXPECT_EQ(fill_gaps("get pod {pod}", {}), std::nullopt);
}

TEST(PluginAdvice, BracesOfJsonAreNoGaps) {
  EXPECT_EQ(fill_gaps("-p '{\"spec\":{\"suspend\":true}}'", {}),
            "-p '{\"spec\":{\"suspend\":true}}'");
}

}  // namespace
}  // namespace holdfast::plugin
