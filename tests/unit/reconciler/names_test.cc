// The names of attempts' pods.
#include <gtest/gtest.h>

#include "tests/unit/reconciler/scenario.h"

namespace holdfast::reconciler::testing {
namespace {

TEST(Names, APodsNameHangsOnJobUidAndAttempt) {
  EXPECT_EQ(pod_name("train", kUid, 3), pod_name("train", kUid, 3));
  EXPECT_NE(pod_name("train", kUid, 3), pod_name("train", "another-uid", 3));
  EXPECT_EQ(pod_name("train", kUid, 3).rfind("train-3-", 0), 0u);
  EXPECT_EQ(pod_name("train", kUid, 3).size(), std::string("train-3-").size() + 5);
}

TEST(Names, TheAttemptIsReadBackFromANameOfOurs) {
  for (const std::int64_t attempt : {1, 10, 2147483647}) {
    EXPECT_EQ(attempt_in_name("train", kUid, pod_name("train", kUid, attempt)), attempt);
  }
  for (const std::string name : {"", "train", "train-", "train-1", "train-1-xxxxx", "train-0-bcdfg",
                                 "train-99999999999999999999-bcdfg", "train--1-bcdfg"}) {
    EXPECT_EQ(attempt_in_name("train", kUid, name), 0) << name;
  }
  EXPECT_EQ(attempt_in_name("train", "another-uid", pod_name("train", kUid, 3)), 0);
  EXPECT_EQ(attempt_in_name("train-2", kUid, pod_name("train", kUid, 2)), 0);
}

}  // namespace
}  // namespace holdfast::reconciler::testing
