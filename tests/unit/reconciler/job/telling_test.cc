// Rules of a success policy whose list of indexes cannot be read whole: such a rule is never met,
// and the job says so. Decoding makes the list an empty one.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

SuccessRule unreadable_rule() {
  SuccessRule rule;
  rule.indexes = IndexSet();
  return rule;
}

TEST(UnreadableLists, MakeARuleThatIsNeverMet) {
  for (const std::int64_t count : {0, 1, 3}) {
    JobView view = job_of_runs(6, 3, 3);
    view.job.spec.success_policy = {unreadable_rule()};
    if (count > 0) view.job.spec.success_policy[0].count = count;
    for (std::int64_t index = 0; index < 3; ++index) end_pod(view, index, 0);
    EXPECT_FALSE(after(view).condition("SuccessCriteriaMet")) << count;
  }
}

TEST(UnreadableLists, LeaveTheOtherRulesTheirPlaces) {
  JobView view = job_of_runs(6, 3, 3);
  SuccessRule first;
  first.indexes = IndexSet::parse("0", 5);
  view.job.spec.success_policy = {unreadable_rule(), first};
  end_pod(view, 0, 0);
  EXPECT_EQ(after(view).condition("SuccessCriteriaMet")->message, "Matched rules at index 1");
}

TEST(UnreadableLists, AreReportedOnceAndTheJobGoesOn) {
  JobView view = job_of_runs(6, 3, 0);
  SuccessRule readable;
  readable.count = 6;
  view.job.spec.success_policy = {readable, unreadable_rule()};
  const WriteStatus first = written(view);
  EXPECT_TRUE(has_condition(first.status, "Stalled", "IndexesUnreadable"));
  EXPECT_THAT(first.status.condition("Stalled")->message, HasSubstr("rules 1"));
  EXPECT_EQ(only(first.events).reason, "IndexesUnreadable");
  EXPECT_EQ(first.status.runs.size(), 3u);

  view = job_of_runs(6, 3, 3);
  view.job.spec.success_policy = {unreadable_rule()};
  view.job.status.conditions = first.status.conditions;
  end_pod(view, 0, 1);
  const WriteStatus next = written(view, now() + seconds(30));
  EXPECT_EQ(next.status.condition("Stalled")->last_transition_time, now());
  for (const Event& event : next.events) EXPECT_NE(event.reason, "IndexesUnreadable");
}

TEST(UnreadableLists, CostNoWriteAtRest) {
  JobView view = job_of_runs(6, 3, 3);
  view.job.spec.success_policy = {unreadable_rule()};
  view.job.status = after(view);
  view.job.status = after(view);
  EXPECT_TRUE(has_condition(view.job.status, "Stalled", "IndexesUnreadable"));
  EXPECT_TRUE(decide(view, now() + seconds(20)).writes.empty());
}

TEST(UnreadableLists, OfAJobThatHasSucceededAllTheSameDoNotMatter) {
  JobView view = job_of_runs(3, 3, 3);
  view.job.spec.success_policy = {unreadable_rule()};
  for (std::int64_t index = 0; index < 3; ++index) end_pod(view, index, 0);
  const Status status = after(view);
  EXPECT_TRUE(has_condition(status, "Complete", "CompletionsReached"));
  EXPECT_FALSE(status.holds("Stalled"));
}

}  // namespace
}  // namespace holdfast::reconciler::testing
