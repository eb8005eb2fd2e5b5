#include "tests/unit/kube/client_fixture.h"

namespace holdfast::kube {
namespace {

using namespace std::chrono_literals;
using test::header;

class CallTest : public ClientTest {
 protected:
  void answer(int status, std::string body = "", http::Headers headers = {}) {
    transport_.answer(status, std::move(body), std::move(headers));
    loop_.run_ready();
  }
};

TEST_F(CallTest, SendsCredentialsAndGivesTheObject) {
  auto result = start(client_.put("/api/v1/x", R"({"a": 1})"));
  ASSERT_EQ(transport_.pending(), 1u);
  const http::Request request = transport_.request();
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/api/v1/x");
  EXPECT_EQ(request.body, R"({"a": 1})");
  EXPECT_EQ(header(request.headers, "Authorization"), "Bearer token-1");
  EXPECT_EQ(header(request.headers, "Content-Type"), "application/json");
  EXPECT_EQ(header(request.headers, "Accept"), "application/json;drop=metadata.managedFields");
  EXPECT_EQ(header(request.headers, "User-Agent"), "holdfast-test");
  answer(200, R"({"metadata": {"name": "x"}})");
  ASSERT_TRUE(*result && (*result)->ok());
  EXPECT_EQ(string_at(at(**(*result), "metadata"), "name"), "x");
  EXPECT_EQ(observed_, (std::vector<std::pair<std::string, int>>{{"PUT", 200}}));
}

TEST_F(CallTest, AWriteMayAskForTheMetadataAlone) {
  CallOptions options;
  options.answer_with_metadata = true;
  auto result = start(client_.post("/x", "{}", options));
  EXPECT_EQ(
      header(transport_.request().headers, "Accept"),
      "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1;drop=metadata.managedFields,"
      "application/json;drop=metadata.managedFields");
  answer(201, R"({"metadata": {"name": "x"}})");
  EXPECT_TRUE(*result && (*result)->ok());
}

TEST_F(CallTest, APatchSaysWhichKindItIs) {
  CallOptions options;
  options.content_type = "application/json-patch+json";
  auto result = start(client_.patch("/x", "[]", options));
  EXPECT_EQ(header(transport_.request().headers, "Content-Type"), "application/json-patch+json");
  answer(200, "{}");
}

TEST_F(CallTest, ATextIsGivenAsItIsAndItsErrorsAreMapped) {
  auto result = start(client_.get_text("/api/v1/namespaces/a/pods/x/log"));
  // The API server refuses to give a log as JSON.
  EXPECT_EQ(header(transport_.request().headers, "Accept"), "*/*");
  answer(200, "{no JSON\n\xff");
  ASSERT_TRUE(*result && (*result)->ok());
  EXPECT_EQ(***result, "{no JSON\n\xff");
  auto refused = start(client_.get_text("/x"));
  answer(404, R"({"kind": "Status", "reason": "NotFound", "message": "gone"})");
  ASSERT_TRUE(*refused && !(*refused)->ok());
  EXPECT_EQ((*refused)->error().code, ErrorCode::kNotFound);
}

TEST_F(CallTest, AnEmptySuccessIsNull) {
  auto result = start(client_.del("/x", "{}"));
  answer(200);
  ASSERT_TRUE(*result && (*result)->ok());
  EXPECT_TRUE((**result)->is_null());
}

TEST_F(CallTest, ASuccessThatCannotBeReadMayHaveBeenApplied) {
  auto result = start(client_.post("/x", "{}"));
  answer(201, "{");
  ASSERT_TRUE(*result);
  ASSERT_FALSE((*result)->ok());
  EXPECT_EQ((*result)->error().code, ErrorCode::kTransient);
  EXPECT_TRUE((*result)->error().maybe_applied);
}

TEST_F(CallTest, ErrorsAreNotRetriedUnlessTheServerSaysWhen) {
  for (const int status : {400, 403, 404, 409, 422, 429, 500, 503}) {
    auto result = start(client_.get("/x"));
    answer(status, "{}");
    ASSERT_TRUE(*result) << status;
    EXPECT_EQ((*result)->error().http_status, status);
  }
}

TEST_F(CallTest, A429Or5xxWithRetryAfterIsSentAgainThen) {
  for (const int status : {429, 503}) {
    auto result = start(client_.post("/x", "{}"));
    answer(status, "{}", {{"Retry-After", "1"}});
    EXPECT_EQ(transport_.pending(), 0u);
    loop_.advance(999ms);
    EXPECT_EQ(transport_.pending(), 0u);
    loop_.advance(1ms);
    ASSERT_EQ(transport_.pending(), 1u);
    answer(201, "{}");
    EXPECT_TRUE((*result)->ok());
  }
}

TEST_F(CallTest, AWriteThatIsRightOnlyNowIsSentOnce) {
  CallOptions options;
  options.once = true;
  for (const int status : {401, 429, 503}) {
    auto result = start(client_.patch("/x", "{}", options));
    answer(status, "{}", {{"Retry-After", "1"}});
    ASSERT_TRUE(*result) << status;
    EXPECT_EQ((*result)->error().http_status, status);
  }
  auto result = start(client_.patch("/x", "{}", options));
  transport_.refuse();
  loop_.run_ready();
  EXPECT_TRUE(*result);
}

TEST_F(CallTest, ALongRetryAfterIsTheCallersToWait) {
  auto result = start(client_.get("/x"));
  answer(429, "{}", {{"Retry-After", "30"}});
  ASSERT_TRUE(*result);
  EXPECT_EQ((*result)->error().code, ErrorCode::kThrottled);
  EXPECT_EQ((*result)->error().retry_after, Duration(30s));
}

TEST_F(CallTest, NoRetryGoesPastTheDeadline) {
  CallOptions options;
  options.timeout = 900ms;
  auto result = start(client_.get("/x", options));
  answer(503, "{}", {{"Retry-After", "1"}});
  ASSERT_TRUE(*result);
  EXPECT_EQ((*result)->error().http_status, 503);
}

TEST_F(CallTest, EachAttemptGetsWhatIsLeftOfTheDeadline) {
  CallOptions options;
  options.timeout = 5s;
  auto result = start(client_.get("/x", options));
  EXPECT_EQ(transport_.request().timeout, Duration(5s));
  loop_.advance(1s);
  answer(503, "{}", {{"Retry-After", "1"}});
  loop_.advance(1s);
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_EQ(transport_.request().timeout, Duration(3s));
  answer(200, "{}");
}

TEST_F(CallTest, AReadThatLostItsConnectionIsSentAgain) {
  auto result = start(client_.get("/x"));
  transport_.lose();
  loop_.run_ready();
  loop_.advance(1s);
  ASSERT_EQ(transport_.pending(), 1u);
  answer(200, "{}");
  EXPECT_TRUE((*result)->ok());
}

TEST_F(CallTest, AWriteIsSentAgainOnlyIfItCertainlyNeverLeft) {
  auto lost = start(client_.put("/x", "{}"));
  transport_.lose();
  loop_.run_ready();
  ASSERT_TRUE(*lost);
  EXPECT_TRUE((*lost)->error().maybe_applied);

  auto refused = start(client_.put("/x", "{}"));
  transport_.refuse();
  loop_.run_ready();
  loop_.advance(1s);
  ASSERT_EQ(transport_.pending(), 1u);
  answer(200, "{}");
  EXPECT_TRUE((*refused)->ok());
}

TEST_F(CallTest, AServerThatIsAwayIsTriedAFewTimesAndThenTheCallerIsNotified) {
  auto result = start(client_.get("/x"));
  int attempts = 0;
  while (!*result) {
    ASSERT_EQ(transport_.pending(), 1u);
    ASSERT_LE(++attempts, kMaxRetries + 1);
    transport_.refuse();
    ASSERT_TRUE(loop_.run_until([&] { return *result || transport_.pending() == 1; }, 10s));
  }
  EXPECT_EQ((*result)->error().code, ErrorCode::kTransient);
  EXPECT_GE(attempts, 3);
}

TEST_F(CallTest, A401RenewsTheCredentialsAndIsSentAgainAtOnceOnce) {
  auto result = start(client_.get("/x"));
  answer(401, "{}");
  ASSERT_EQ(transport_.pending(), 1u);
  EXPECT_EQ(header(transport_.request().headers, "Authorization"), "Bearer token-2");
  answer(401, "{}");
  ASSERT_TRUE(*result);
  EXPECT_EQ((*result)->error().code, ErrorCode::kUnauthorized);
  EXPECT_EQ(credentials_.invalidated, 2);
}

TEST_F(CallTest, WithoutCredentialsNothingIsSent) {
  credentials_.error = make_error(ErrorCode::kUnauthorized, "no token");
  auto result = start(client_.get("/x"));
  ASSERT_TRUE(*result);
  EXPECT_EQ((*result)->error().message, "no token");
  EXPECT_TRUE(transport_.history.empty());
}

TEST_F(CallTest, TheDeadlineHoldsWhileCredentialsAreFetched) {
  credentials_.held = true;
  CallOptions options;
  options.timeout = 2s;
  auto result = start(client_.get("/x", options));
  loop_.advance(2s);
  ASSERT_TRUE(*result);
  EXPECT_EQ((*result)->error().code, ErrorCode::kTransient);
  EXPECT_FALSE((*result)->error().maybe_applied);
  credentials_.waiting.at(0)(std::string("late"));  // without effect
  loop_.run_ready();
  EXPECT_TRUE(transport_.history.empty());
}

// Whoever waits for the call must still be there when it is answered.
TEST_F(CallTest, TheClientIsNotIdleWhileACallWaitsForCredentials) {
  credentials_.held = true;
  auto result = start(client_.get("/x"));
  EXPECT_FALSE(client_.idle());
  client_.shut_down();
  EXPECT_FALSE(client_.idle());
  credentials_.waiting.at(0)(make_error(ErrorCode::kCancelled, "not needed any more"));
  loop_.run_ready();
  EXPECT_TRUE(*result);
  EXPECT_TRUE(client_.idle());
}

// As after a pause of the process: the time that a claim had left has passed.
TEST_F(CallTest, WithoutTimeLeftNothingIsSent) {
  for (const Duration left : {Duration::zero(), Duration(-1s)}) {
    CallOptions options;
    options.timeout = left;
    const auto result = start(client_.put("/x", "{}", options));
    ASSERT_TRUE(result->has_value());
    EXPECT_FALSE((*result)->ok());
    EXPECT_FALSE((*result)->error().maybe_applied);
  }
  EXPECT_TRUE(transport_.history.empty());
}

TEST_F(CallTest, LearnsTheServersTimeFromItsAnswers) {
  EXPECT_FALSE(client_.server_clock().known());
  transport_.date = parse_time("2026-01-02T03:04:05Z");
  auto result = start(client_.get("/x"));
  answer(404, "{}");
  ASSERT_TRUE(client_.server_clock().known());
  EXPECT_EQ(client_.server_clock().now(loop_.now()), *transport_.date);
}

TEST_F(CallTest, ShutDownCancelsWhatIsInFlightWaitingOrNew) {
  auto in_flight = start(client_.get("/a"));
  auto retrying = start(client_.get("/b"));
  transport_.fail(test::FakeTransport::lost("gone", true));  // "/a" waits to be sent again
  loop_.run_ready();
  credentials_.held = true;
  auto unauthorized = start(client_.get("/c"));
  client_.shut_down();
  credentials_.waiting.at(0)(std::string("Bearer x"));
  loop_.run_ready();
  auto fresh = start(client_.get("/d"));
  for (const auto& result : {in_flight, retrying, unauthorized, fresh}) {
    ASSERT_TRUE(*result);
    EXPECT_EQ((*result)->error().code, ErrorCode::kCancelled);
  }
  EXPECT_EQ(transport_.history.size(), 2u);
}

TEST_F(CallTest, CancelEndsTheCallsThatWereMadeWithItAndNoOther) {
  CallOptions options;
  options.cancellation = std::make_shared<Cancellation>();
  auto retrying = start(client_.get("/b", options));
  transport_.fail(test::FakeTransport::lost("gone", true));  // it waits to be sent again
  loop_.run_ready();
  auto other = start(client_.get("/x"));
  auto in_flight = start(client_.get("/a", options));
  client_.cancel(options.cancellation);
  loop_.run_ready();
  auto fresh = start(client_.get("/c", options));
  for (const auto& result : {in_flight, retrying, fresh}) {
    ASSERT_TRUE(*result);
    EXPECT_EQ((*result)->error().code, ErrorCode::kCancelled);
  }
  EXPECT_FALSE(*other);
  transport_.answer(200, "{}");
  loop_.run_ready();
  EXPECT_TRUE(*other && (*other)->ok());
}

TEST_F(CallTest, WithoutALimitNothingIsDelayed) {
  std::vector<std::shared_ptr<std::optional<Result<JsonDocument>>>> results;
  for (int i = 0; i < 100; ++i) results.push_back(start(client_.get("/x")));
  EXPECT_EQ(transport_.pending(), 100u);
}

class LimitedCallTest : public ClientTest {
 protected:
  LimitedCallTest() : ClientTest(10) {}
};

TEST_F(LimitedCallTest, QpsAllowsABurstOfTwiceAsManyAndThenTheRate) {
  std::vector<std::shared_ptr<std::optional<Result<JsonDocument>>>> results;
  for (int i = 0; i < 40; ++i) results.push_back(start(client_.get("/x")));
  EXPECT_EQ(transport_.pending(), 20u);
  loop_.advance(1s);
  EXPECT_EQ(transport_.pending(), 30u);
  loop_.advance(10s);
  EXPECT_EQ(transport_.pending(), 40u);
}

TEST_F(LimitedCallTest, WhatIsNotSentInTimeDoesNotDelayWhatComesAfterIt) {
  std::vector<std::shared_ptr<std::optional<Result<JsonDocument>>>> results;
  CallOptions hurried;
  hurried.timeout = 100ms;
  for (int i = 0; i < 1000; ++i) results.push_back(start(client_.get("/x", hurried)));
  EXPECT_LE(transport_.pending(), 22u);
  loop_.advance(1s);
  const std::size_t before = transport_.pending();
  results.push_back(start(client_.get("/x")));
  loop_.advance(1s);
  EXPECT_EQ(transport_.pending(), before + 1);
}

TEST_F(LimitedCallTest, WhatIsUrgentIsNotHeldUp) {
  std::vector<std::shared_ptr<std::optional<Result<JsonDocument>>>> results;
  for (int i = 0; i < 40; ++i) results.push_back(start(client_.get("/x")));
  CallOptions urgent;
  urgent.urgency = http::Urgency::kUrgent;
  results.push_back(start(client_.get("/y", urgent)));
  EXPECT_EQ(transport_.pending(), 21u);
}

}  // namespace
}  // namespace holdfast::kube
