#include "operator/notify/message.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace holdfast::notify {
namespace {

using reconciler::NotifyEvent;
using reconciler::OutboxEntry;

const JobName kJob{"encode", "movie", "uid-1"};

OutboxEntry failed() {
  OutboxEntry entry;
  entry.number = 7;
  entry.event = NotifyEvent::kFailed;
  entry.time = Time(std::chrono::seconds(1'767'225'600));
  entry.reason = "BackoffLimitExceeded";
  entry.message = "1 attempt failed \"\xff\"";
  return entry;
}

// The example of the specification's reference implementations.
TEST(Message, TheSignatureIsThatOfTheSpecification) {
  const Result<std::string> key = parse_secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n");
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(sign(*key, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1'614'265'330, R"({"test": 2432232314})"),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

TEST(Message, WhatIsNoSecretIsRefused) {
  for (const char* const text :
       {"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!!!", "whsec_c2hvcnQ="}) {
    const Result<std::string> key = parse_secret(text);
    ASSERT_FALSE(key.ok()) << text;
    EXPECT_EQ(key.error().message.find("c2hvcnQ"), std::string::npos) << "it shows the secret";
  }
}

TEST(Message, TheBodyIsACloudEvent) {
  const Result<Json> body = parse_json(message_body("https://c1.example.com", kJob, failed()));
  ASSERT_TRUE(body.ok());
  EXPECT_EQ(string_at(*body, "specversion"), "1.0");
  EXPECT_EQ(string_at(*body, "id"), "uid-1/7");
  EXPECT_EQ(string_at(*body, "type"), "dev.holdfast.job.failed");
  EXPECT_EQ(
      string_at(*body, "source"),
      "https://c1.example.com/apis/holdfast.dev/v1alpha1/namespaces/encode/durablejobs/movie");
  EXPECT_EQ(string_at(*body, "subject"), "encode/movie");
  EXPECT_EQ(string_at(*body, "time"), "2026-01-01T00:00:00Z");
  EXPECT_EQ(string_at(at(*body, "data"), "reason"), "BackoffLimitExceeded");
  EXPECT_FALSE(at(*body, "data").contains("stage"));
}

TEST(Message, TheSameEventIsTheSameMessage) {
  EXPECT_EQ(message_body("", kJob, failed()), message_body("", kJob, failed()));
  EXPECT_EQ(message_id(kJob, failed()), "uid-1/7");
}

}  // namespace
}  // namespace holdfast::notify
