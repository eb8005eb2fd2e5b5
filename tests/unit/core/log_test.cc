#include "core/log.h"

#include <gtest/gtest.h>

#include "core/json.h"

namespace holdfast {
namespace {

constexpr const char* kTime = "2026-01-02T03:04:05.678Z";

std::string text_line(const Log& log, const std::string& message, const Log::Fields& fields = {}) {
  return log.render(LogLevel::kInfo, kTime, message, fields);
}

TEST(TextLog, HasTimeLevelMessageAndFields) {
  const Log log = Log::create(LogLevel::kInfo, LogFormat::kText).with({{"job", "media/x"}});
  EXPECT_EQ(text_line(log, "attempt ended", {{"attempt", "3"}, {"outcome", "Lost"}}),
            "2026-01-02T03:04:05.678Z INFO attempt ended job=media/x attempt=3 outcome=Lost");
}

TEST(TextLog, QuotesValuesThatWouldReadAsSomethingElse) {
  EXPECT_EQ(text_line(Log(), "m", {{"a", "b c"}, {"d", ""}, {"e", "x=y"}, {"f", "\"q\""}}),
            std::string(kTime) + R"( INFO m a="b c" d="" e="x=y" f="\"q\"")");
}

TEST(TextLog, OneCallIsOneLineWhateverIsInIt) {
  const std::string line =
      text_line(Log(), "a\nb\x1b[31m", {{"c", "d\ne\x7f\xff"}, {"f", std::string(1, '\0')}});
  for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
  EXPECT_EQ(line.find('\x7f'), std::string::npos);
}

TEST(TextLog, AFieldOfTheCallTakesThePlaceOfTheLogs) {
  const Log log = Log().with({{"attempt", "1"}, {"job", "a/b"}});
  EXPECT_EQ(text_line(log, "m", {{"attempt", "2"}}),
            std::string(kTime) + " INFO m job=a/b attempt=2");
}

TEST(JsonLog, IsOneObjectALine) {
  const Log log = Log::create(LogLevel::kInfo, LogFormat::kJson).with({{"job", "media/x"}});
  const std::string line =
      log.render(LogLevel::kWarn, kTime, "two\nlines", {{"bad", "\xff"}, {"attempt", "3"}});
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto parsed = parse_json(line);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(string_at(*parsed, "time"), kTime);
  EXPECT_EQ(string_at(*parsed, "level"), "warn");
  EXPECT_EQ(string_at(*parsed, "message"), "two\nlines");
  EXPECT_EQ(string_at(*parsed, "job"), "media/x");
  EXPECT_EQ(string_at(*parsed, "attempt"), "3");
}

TEST(Log, WritesToStandardErrorFromItsLevelOn) {
  testing::internal::CaptureStderr();
  const Log log = Log::create(LogLevel::kInfo, LogFormat::kText);
  log.debug("hidden");
  log.info("shown", {{"a", "1"}});
  Log().error("nowhere");
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_EQ(written.substr(written.find(' ')), " INFO shown a=1\n");
  EXPECT_FALSE(log.debug_enabled());
}

}  // namespace
}  // namespace holdfast
