// When the runs that have succeeded are enough, as batch/v1's controller does.
#include "reconciler/job/success_policy.h"

#include <gtest/gtest.h>

namespace holdfast::reconciler {
namespace {

constexpr const char* kNotMet = "";

IndexSet set_of(const std::string& text) { return IndexSet::parse(text, 99'999).value(); }

SuccessRule indexes(const std::string& text) { return {set_of(text), std::nullopt}; }
SuccessRule count(std::int64_t count) { return {std::nullopt, count}; }
SuccessRule count_of(const std::string& text, std::int64_t count) { return {set_of(text), count}; }

std::string match(const std::vector<SuccessRule>& rules, const std::string& completed) {
  Spec spec;
  spec.completions = 100'000;
  spec.indexed = true;
  spec.success_policy = rules;
  return match_success_policy(spec, set_of(completed)).value_or(kNotMet);
}

struct Case {
  const char* rule;  // that the case shows
  SuccessRule policy;
  std::string completed;
  bool met;
};

void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    EXPECT_EQ(match({one.policy}, one.completed), one.met ? "Matched rules at index 0" : kNotMet)
        << one.rule;
  }
}

TEST(SuccessPolicy, IndexesAloneMustAllBeCompleted) {
  check({
      {"these and no others", indexes("2-4,6-9"), "2-4,6-9", true},
      {"these and others", indexes("2-4,6-8"), "1-9", true},
      {"intervals that begin and end elsewhere", indexes("2-4,8-12"), "2-5,7-15", true},
      {"not these, but others", indexes("3"), "0-2", false},
      {"far above", indexes("10-12,14-16"), "1-3,5-7", false},
      {"the first is missing", indexes("0-3,6-9"), "1-10", false},
      {"the last is missing", indexes("2-4,6-9"), "1-3,5-8", false},
      {"one in the middle is missing", indexes("0-6"), "0-3,5-9", false},
      {"as many as wanted, but others", indexes("0-2"), "1-3", false},
      {"an empty list is never met", indexes(""), "1-3", false},
  });
}

TEST(SuccessPolicy, ACountAloneMayBeReachedByAnyRuns) {
  check({
      {"more than enough", count(2), "0-2", true},
      {"just enough", count(3), "0,5,9", true},
      {"one too few", count(4), "0-2", false},
  });
}

TEST(SuccessPolicy, WithBothSoManyOfTheseMustBeCompleted) {
  check({
      {"enough of them", count_of("3-6", 2), "0-2,4-5", true},
      {"more than enough of them", count_of("3-6", 2), "4-7", true},
      {"many runs, but one of these alone", count_of("3-6", 2), "0-2,6-9", false},
      {"their first indexes", count_of("1-3,5-7", 4), "2-4,6-8", true},
      {"their last indexes", count_of("2-4,6-9", 4), "1-3,5-7", true},
      {"one too few", count_of("2-4,6-9", 5), "1-3,5-7", false},
      {"inner intervals", count_of("0-4,6-9", 5), "1-3,7-8", true},
      {"one interval in two", count_of("0-6,8-9", 7), "1-3,5-9", true},
      {"a count above the number of indexes needs each of them", count_of("0,1", 9), "0-1", true},
      {"the same, and one is missing", count_of("0,1", 9), "1-20", false},
      {"an empty list is never met", count_of("", 1), "1-3", false},
  });
}

TEST(SuccessPolicy, TheFirstRuleThatIsMetIsNamed) {
  EXPECT_EQ(match({indexes("9"), indexes("4,6")}, "0-2,4-7"), "Matched rules at index 1");
  EXPECT_EQ(match({indexes("0,1"), indexes("5")}, "0-2,4-7"), "Matched rules at index 0");
  EXPECT_EQ(match({indexes("9"), count_of("1-3", 3), count(3)}, "1-2,7"),
            "Matched rules at index 2");
  EXPECT_EQ(match({indexes("9"), indexes("8")}, "0-2,4-7"), kNotMet);
}

TEST(SuccessPolicy, NothingIsMetWithoutRulesOrWithoutACompletedRun) {
  EXPECT_EQ(match({}, "0-9"), kNotMet);
  EXPECT_EQ(match({SuccessRule{}}, "0-9"), kNotMet) << "a rule without a criterion";
  for (const SuccessRule& rule :
       {indexes("0"), indexes(""), count(1), count(0), count_of("0", 1)}) {
    EXPECT_EQ(match({rule}, ""), kNotMet);
  }
}

// It would take hours if it looked at each pair of intervals.
TEST(SuccessPolicy, FiftyThousandIntervalsCostLittle) {
  Spec spec;
  IndexSet even;
  IndexSet odd;
  for (std::int64_t index = 0; index < 100'000; index += 2) {
    even.add(index);
    odd.add(index + 1);
  }
  spec.success_policy = {{odd, std::nullopt}, {odd, 1}, {IndexSet::first(100'000), 50'000}};
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(match_success_policy(spec, even), "Matched rules at index 2");
  }
}

}  // namespace
}  // namespace holdfast::reconciler
