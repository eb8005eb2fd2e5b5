#include <gtest/gtest.h>

#include "client/kube/errors.h"
#include "core/json.h"

namespace holdfast::kube {
namespace {

Error error_of(int status, const std::string& body = "") {
  http::Response response;
  response.status = status;
  response.body = body;
  return error_from_response(response);
}

TEST(ErrorFromResponse, NamesWhatTheCallerDoesNext) {
  const std::vector<std::pair<int, ErrorCode>> expected = {
      {401, ErrorCode::kUnauthorized}, {403, ErrorCode::kForbidden}, {404, ErrorCode::kNotFound},
      {409, ErrorCode::kConflict},     {410, ErrorCode::kGone},      {429, ErrorCode::kThrottled},
      {400, ErrorCode::kInvalid},      {405, ErrorCode::kInvalid},   {406, ErrorCode::kInvalid},
      {413, ErrorCode::kInvalid},      {415, ErrorCode::kInvalid},   {422, ErrorCode::kInvalid},
      {408, ErrorCode::kTransient},    {500, ErrorCode::kTransient}, {502, ErrorCode::kTransient},
      {503, ErrorCode::kTransient},    {504, ErrorCode::kTransient}, {302, ErrorCode::kTerminal},
      {418, ErrorCode::kTerminal}};
  for (const auto& [status, code] : expected) {
    EXPECT_EQ(error_of(status).code, code) << status;
    EXPECT_EQ(error_of(status).http_status, status);
    EXPECT_FALSE(error_of(status).message.empty());
  }
}

TEST(ErrorFromResponse, DistinguishesTheTwoKindsOf409) {
  EXPECT_EQ(error_of(409, R"({"kind": "Status", "reason": "AlreadyExists"})").code,
            ErrorCode::kAlreadyExists);
  EXPECT_EQ(error_of(409, R"({"kind": "Status", "reason": "Conflict"})").code,
            ErrorCode::kConflict);
}

TEST(ErrorFromResponse, ExpiredIsGoneWhateverTheStatus) {
  EXPECT_EQ(error_of(400, R"({"reason": "Expired"})").code, ErrorCode::kGone);
}

TEST(ErrorFromResponse, KeepsTheServersMessageReasonCausesAndRetryAfter) {
  const Error error = error_of(422, R"({"kind": "Status", "reason": "Invalid", "message": "no",
      "details": {"retryAfterSeconds": 4, "causes": [
        {"field": "spec.a", "reason": "x"}, {"reason": "y"}, {"field": "spec.b"}]}})");
  EXPECT_EQ(error.message, "no");
  EXPECT_EQ(error.reason, "Invalid");
  EXPECT_EQ(error.cause_count, 3);
  EXPECT_EQ(error.cause_fields, (std::vector<std::string>{"spec.a", "spec.b"}));
  EXPECT_EQ(error.retry_after, Duration(std::chrono::seconds(4)));
}

TEST(ErrorFromResponse, AnExpiredTokenBringsTheOneThatGoesOn) {
  EXPECT_EQ(error_of(410, R"({"reason":"Expired","metadata":{"continue":"abc"}})").continue_token,
            "abc");
}

TEST(ErrorFromResponse, AnAnswerThatAServerLostMayHaveBeenApplied) {
  EXPECT_TRUE(error_of(504).maybe_applied);
  EXPECT_TRUE(error_of(502, "<html>bad gateway</html>").maybe_applied);
  EXPECT_FALSE(error_of(409).maybe_applied);
  EXPECT_FALSE(error_of(429).maybe_applied);
}

// A webhook's refusal may quote what a tenant wrote.
TEST(ErrorFromResponse, TheServersMessageIsOneBoundedLine) {
  const Error error =
      error_of(422, R"({"message": "denied:\nno\u001b[1m )" + std::string(10000, 'x') + R"("})");
  EXPECT_EQ(error.message.substr(0, 16), "denied: no [1m x");
  EXPECT_EQ(error.message.size(), 4096u);
}

TEST(ErrorFromResponse, QuotesLittleOfABodyThatIsNoStatus) {
  const Error error = error_of(502, "<html>" + std::string(100'000, 'x'));
  EXPECT_NE(error.message.find("502"), std::string::npos);
  EXPECT_LT(error.message.size(), 400u);
}

TEST(ErrorFromResponse, QuotesABodyInAnotherEncodingAsUtf8) {
  const Error error = error_of(503, "Dienst nicht verf\xfcgbar");
  EXPECT_NE(error.message.find("verf\uFFFDgbar"), std::string::npos) << error.message;
  EXPECT_NO_THROW(Json(error.message).dump());
}

TEST(ErrorFromResponse, CutsABodyBetweenCharacters) {
  std::string page(255, 'x');
  for (int i = 0; i < 10; ++i) page += "\u00fc";
  EXPECT_NO_THROW(Json(error_of(503, page).message).dump());
}

}  // namespace
}  // namespace holdfast::kube
