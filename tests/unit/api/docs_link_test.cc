#include "api/docs_link.h"

#include <gtest/gtest.h>

namespace holdfast::api {
namespace {

TEST(DocsLink, IsTheHeadingOfTheReasonInLowerCase) {
  EXPECT_EQ(reason_link("NodeSilent"), std::string(kDocs) + "/reasons.html#nodesilent");
}

TEST(DocsLink, IsOfThisVersion) {
  EXPECT_TRUE(kDocs.ends_with("/docs/v" HOLDFAST_VERSION)) << kDocs;
}

TEST(DocsLink, IsTakenOffWhicheverVersionItIsOf) {
  EXPECT_EQ(without_reason_link(with_reason_link("no input", "Error", 1024)), "no input");
  EXPECT_EQ(without_reason_link("no More: https://x/docs/v9/reasons.html#error"), "no");
}

TEST(DocsLink, WordsThatLookLikeOneStay) {
  EXPECT_EQ(without_reason_link("no input"), "no input");
  EXPECT_EQ(without_reason_link("no More: input"), "no More: input");
  EXPECT_EQ(without_reason_link("x More: https://x/reasons.html#a and more"),
            "x More: https://x/reasons.html#a and more");
}

}  // namespace
}  // namespace holdfast::api
