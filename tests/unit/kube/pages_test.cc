#include "client/kube/pages.h"

#include <gtest/gtest.h>

namespace holdfast::kube {
namespace {

ListPage page(const std::string& token) {
  ListPage page;
  page.continue_token = token;
  return page;
}

Error expired(const std::string& token) {
  Error error;
  error.code = ErrorCode::kGone;
  error.http_status = 410;
  error.continue_token = token;
  return error;
}

TEST(Pages, EachPageBeginsWhereTheLastOneEnded) {
  Pages pages(500);
  EXPECT_EQ(pages.query(), "limit=500");
  pages.took(page("a/b"));
  EXPECT_FALSE(pages.done());
  EXPECT_EQ(pages.query(), "limit=500&continue=a%2Fb");
  pages.took(page(""));
  EXPECT_TRUE(pages.done());
}

TEST(Pages, AListWhoseTokenHasExpiredGoesOnWithWhatIsThereThen) {
  Pages pages(500);
  pages.took(page("old"));
  EXPECT_TRUE(pages.goes_on_after(expired("now")));
  EXPECT_EQ(pages.query(), "limit=500&continue=now");
  EXPECT_FALSE(pages.goes_on_after(expired("now"))) << "that token has expired too";
  EXPECT_FALSE(pages.goes_on_after(expired(""))) << "the server names no other";
}

TEST(Pages, APageThatIsTooLargeIsAskedForInSmallerOnes) {
  Error too_large;
  too_large.code = ErrorCode::kTerminal;
  Pages pages(50);
  pages.took(page("a"));
  EXPECT_TRUE(pages.goes_on_after(too_large));
  EXPECT_EQ(pages.query(), "limit=5&continue=a");
  EXPECT_TRUE(pages.goes_on_after(too_large));
  EXPECT_EQ(pages.query(), "limit=1&continue=a");
  EXPECT_FALSE(pages.goes_on_after(too_large)) << "no page is smaller";
}

TEST(Pages, AnotherErrorLeavesThePageAsItIs) {
  Error error;
  error.code = ErrorCode::kTransient;
  error.http_status = 503;
  Pages pages(500);
  pages.took(page("a"));
  EXPECT_FALSE(pages.goes_on_after(error));
  EXPECT_EQ(pages.query(), "limit=500&continue=a");
}

}  // namespace
}  // namespace holdfast::kube
