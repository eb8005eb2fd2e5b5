// Who may ask the page's server. Each line of docs/security.md about it is a case here.
#include "plugin/ui/guard.h"

#include <gtest/gtest.h>

namespace holdfast::plugin {
namespace {

constexpr const char* kToken = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

WebRequest request(std::map<std::string, std::string> changed = {}) {
  WebRequest request;
  request.headers = {{"host", "127.0.0.1:4711"},
                     {"origin", "http://127.0.0.1:4711"},
                     {"sec-fetch-site", "same-origin"},
                     {"authorization", std::string("Bearer ") + kToken}};
  for (const auto& [name, value] : changed) {
    if (value.empty()) {
      request.headers.erase(name);
    } else {
      request.headers[name] = value;
    }
  }
  return request;
}

int answer(const WebRequest& request) {
  const auto refusal = Guard(kToken, 4711).refuse_call(request);
  return refusal ? refusal->status : 200;
}

TEST(UiGuard, LetsItsOwnPageAsk) {
  EXPECT_EQ(answer(request()), 200);
  EXPECT_EQ(answer(request({{"host", "localhost:4711"}, {"origin", "http://localhost:4711"}})),
            200);
  // A program of the user, such as curl, has neither.
  EXPECT_EQ(answer(request({{"origin", ""}, {"sec-fetch-site", ""}})), 200);
}

TEST(UiGuard, AsksForTheToken) {
  EXPECT_EQ(answer(request({{"authorization", ""}})), 401);
  EXPECT_EQ(answer(request({{"authorization", "Bearer "}})), 401);
  EXPECT_EQ(answer(request({{"authorization", kToken}})), 401);
  EXPECT_EQ(answer(request({{"authorization", "Bearer " + std::string(64, 'b')}})), 401);
  EXPECT_EQ(answer(request({{"authorization", "Bearer " + std::string(kToken) + "a"}})), 401);
}

// A name of somebody's own that leads to 127.0.0.1 is another site (DNS rebinding).
TEST(UiGuard, RefusesOtherHosts) {
  for (const char* const host :
       {"evil.example:4711", "127.0.0.1:4712", "127.0.0.1", "[::1]:4711"}) {
    EXPECT_EQ(answer(request({{"host", host}})), 421) << host;
    EXPECT_TRUE(Guard(kToken, 4711).refuse_file(request({{"host", host}}))) << host;
  }
  EXPECT_EQ(answer(request({{"host", ""}})), 421);
}

TEST(UiGuard, KnowsThatBrowsersLeaveOutPort80) {
  const WebRequest bare = request({{"host", "127.0.0.1"}, {"origin", "http://127.0.0.1"}});
  EXPECT_FALSE(Guard(kToken, 80).refuse_call(bare));
  EXPECT_TRUE(Guard(kToken, 81).refuse_call(bare));
}

TEST(UiGuard, RefusesOtherPages) {
  EXPECT_EQ(answer(request({{"origin", "http://evil.example"}})), 403);
  EXPECT_EQ(answer(request({{"origin", "null"}})), 403);
  EXPECT_EQ(answer(request({{"origin", "http://127.0.0.1:8080"}})), 403);
  EXPECT_EQ(answer(request({{"sec-fetch-site", "cross-site"}})), 403);
  EXPECT_EQ(answer(request({{"origin", ""}, {"sec-fetch-site", "same-site"}})), 403);
}

TEST(UiGuard, WithoutATokenNobodyMayAsk) {
  EXPECT_TRUE(Guard("", 4711).refuse_call(request({{"authorization", "Bearer "}})));
}

TEST(UiGuard, TokensAreLongAndDiffer) {
  const std::string token = random_token();
  EXPECT_EQ(token.size(), 64U);
  EXPECT_NE(token, random_token());
}

}  // namespace
}  // namespace holdfast::plugin
