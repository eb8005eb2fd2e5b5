#include "operator/notify/targets.h"

#include <gtest/gtest.h>

namespace holdfast::notify {
namespace {

std::string with(const std::string& fields) {
  return R"({"targets": [{"name": "chat", "secretFile": "/s", )" + fields + "}]}";
}

TEST(Targets, ATargetHasDefaults) {
  const Result<Targets> targets = parse_targets(with(R"("url": "https://hooks.example.com")"));
  ASSERT_TRUE(targets.ok()) << targets.error().message;
  const Target* const chat = targets->find("chat");
  ASSERT_NE(chat, nullptr);
  EXPECT_EQ(chat->host, "hooks.example.com");
  EXPECT_EQ(chat->port, 443);
  EXPECT_EQ(chat->path, "/");
  EXPECT_EQ(chat->events.size(), 5U);
  EXPECT_TRUE(chat->allows("any"));
  EXPECT_EQ(targets->find("other"), nullptr);
}

TEST(Targets, AUrlKeepsItsPathAndQuery) {
  const Result<Targets> targets =
      parse_targets(with(R"("url": "https://h.example.com:8443/a/b/?k=v/x")"));
  ASSERT_TRUE(targets.ok()) << targets.error().message;
  EXPECT_EQ(targets->find("chat")->port, 8443);
  EXPECT_EQ(targets->find("chat")->path, "/a/b/?k=v/x");
  EXPECT_EQ(parse_targets(with(R"("url": "https://h?k=v")"))->find("chat")->path, "/?k=v");
}

TEST(Targets, FieldsLimitWhoIsNotifiedOfWhat) {
  const Result<Targets> targets =
      parse_targets(with(R"("url": "https://h", "namespaces": ["a"], "events": ["Failed"],
              "allowedCIDRs": ["10.0.0.0/8"])"));
  ASSERT_TRUE(targets.ok()) << targets.error().message;
  EXPECT_TRUE(targets->find("chat")->allows("a"));
  EXPECT_FALSE(targets->find("chat")->allows("b"));
  EXPECT_EQ(targets->find("chat")->events,
            std::vector<reconciler::NotifyEvent>{reconciler::NotifyEvent::kFailed});
  EXPECT_EQ(targets->find("chat")->allowed.size(), 1U);
}

TEST(Targets, WhatIsWrongIsNamed) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"", "JSON"},
      {"[]", "object"},
      {R"({"targets": {}})", "list"},
      {R"({"target": []})", "target"},
      {with(R"("url": "http://h")"), "https://"},
      {with(R"("url": "https://")"), "url"},
      {with(R"("url": "https://u:p@h/")"), "password"},
      {with(R"("url": "https://h/#x")"), "#"},
      {with(R"("url": "https://h/ x")"), "spaces"},
      {with(R"("url": "https://h:0/")"), "url"},
      {with(R"("url": "https://h", "evnts": [])"), "evnts"},
      {with(R"("url": "https://h", "events": ["Started"])"), "Started"},
      {with(R"("url": "https://h", "allowedCIDRs": ["10.0.0.0"])"), "allowedCIDRs"},
      {R"({"targets": [{"name": "chat", "url": "https://h"}]})", "secretFile"},
      {R"({"targets": [{"name": "Chat", "url": "https://h", "secretFile": "/s"}]})", "name"},
      {R"({"targets": [{"name": "a", "url": "https://h", "secretFile": "/s"},
                       {"name": "a", "url": "https://h", "secretFile": "/s"}]})",
       "two targets"}};
  for (const auto& [text, word] : wrong) {
    const Result<Targets> targets = parse_targets(text);
    ASSERT_FALSE(targets.ok()) << text;
    EXPECT_NE(targets.error().message.find(word), std::string::npos) << targets.error().message;
  }
}

}  // namespace
}  // namespace holdfast::notify
