#include "core/json_view.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/json.h"
#include "core/json_time.h"

namespace holdfast {
namespace {

JsonDocument parsed(const std::string& text) {
  const Result<JsonDocument> result = JsonDocument::parse(text);
  EXPECT_TRUE(result.ok()) << text;
  return result.ok() ? *result : JsonDocument();
}

TEST(JsonDocument, RefusesWhatIsMalformed) {
  for (const char* const text : {"", " ", "{", "{\"a\":}", "[1,]", "nul", "{} x", "\"\xff\"", "01",
                                 "\"\\ud800\"", "18446744073709551616", "-9223372036854775809"}) {
    const Result<JsonDocument> result = JsonDocument::parse(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kTransient);
  }
}

TEST(JsonDocument, RefusesEveryPieceOfADocument) {
  const std::string text =
      R"({"metadata":{"managedFields":[{"manager":"a\"]}","x":{"y":[1,null]}}]}})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(JsonDocument::parse(text.substr(0, size)).ok()) << text.substr(0, size);
  }
  EXPECT_TRUE(JsonDocument::parse(text).ok());
}

TEST(JsonDocument, RefusesDeepNestingAndSurvivesVeryDeep) {
  const auto nested = [](std::size_t depth, const std::string& value) {
    return std::string(depth, '[') + value + std::string(depth, ']');
  };
  for (const char* const value : {"1", "{}", "[]"}) {
    EXPECT_TRUE(JsonDocument::parse(nested(kMaxJsonDepth, value)).ok()) << value;
    for (const std::size_t depth : {std::size_t{kMaxJsonDepth + 1}, std::size_t{300'000}}) {
      const Result<JsonDocument> result = JsonDocument::parse(nested(depth, value));
      ASSERT_FALSE(result.ok()) << depth << value;
      EXPECT_EQ(result.error().code, ErrorCode::kTerminal);
    }
  }
}

TEST(JsonDocument, CopiesShareWhatTheyLookAt) {
  JsonDocument copy;
  {
    const JsonDocument first = parsed(R"({"a": "b"})");
    copy = first;
  }
  EXPECT_EQ(string_at(copy, "a"), "b");
}

TEST(JsonView, NeverFailsWhateverTheShape) {
  const JsonDocument object =
      parsed(R"({"a": {"b": [1]}, "n": 7, "s": "x", "t": true, "f": 1.5, "z": null})");
  EXPECT_TRUE(at(at(at(object, "a"), "b"), "c").is_null());
  EXPECT_TRUE(at(at(object, "missing"), "b").is_null());
  EXPECT_TRUE(at(object, "z").is_null());
  EXPECT_TRUE(at(JsonView(), "a").is_null());
  EXPECT_EQ(string_at(object, "s"), "x");
  EXPECT_EQ(string_at(object, "n", "fallback"), "fallback");
  EXPECT_EQ(int_at(object, "n"), 7);
  EXPECT_EQ(int_at(object, "s", -1), -1);
  EXPECT_EQ(int_at(object, "f", -1), -1);
  EXPECT_TRUE(bool_at(object, "t"));
  EXPECT_FALSE(bool_at(object, "n"));
  EXPECT_EQ(at(object, "f").number_or(0), 1.5);
  EXPECT_EQ(at(object, "n").number_or(0), 7);
  EXPECT_EQ(at(object, "s").number_or(2), 2);
  EXPECT_EQ(at(object, "s"), "x");
  EXPECT_FALSE(at(object, "n") == "7");
}

TEST(JsonView, NumbersBeyondItsRangeAreTheMost) {
  const JsonDocument object = parsed(
      R"({"most": 9223372036854775807, "more": 18446744073709551615, "least": -9223372036854775808})");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(int_at(object, "most"), kMost);
  EXPECT_EQ(int_at(object, "more"), kMost);
  EXPECT_EQ(int_at(object, "least"), std::numeric_limits<std::int64_t>::min());
}

TEST(JsonView, OnlyArraysHaveElements) {
  const JsonDocument object =
      parsed(R"({"list": [1, [2, 3], {"a": 4}, "x"], "none": [], "map": {"a": 1}})");
  const JsonView list = at(object, "list");
  EXPECT_EQ(list.size(), 4u);
  std::vector<std::string> seen;
  for (const JsonView item : list) seen.push_back(item.text());
  EXPECT_EQ(seen, (std::vector<std::string>{"1", "[2,3]", R"({"a":4})", R"("x")"}));
  EXPECT_EQ(list[3], "x");
  EXPECT_TRUE(list[4].is_null());
  for (const char* const key : {"none", "map", "missing"}) {
    EXPECT_TRUE(at(object, key).empty()) << key;
    for (const JsonView item : at(object, key)) ADD_FAILURE() << key << ": " << item.text();
  }
}

TEST(JsonView, TextIsTheValueAsItStood) {
  const std::string text = R"({"b":{"x":"é\"\n","y":[true,null,-1,2.5]},"a":18446744073709551615})";
  EXPECT_EQ(parsed(text).text(), text);
  EXPECT_EQ(at(parsed(text), "missing").text(), "null");
}

TEST(JsonTime, ReadsTimesAndWholeSecondsAndNothingElse) {
  const JsonDocument object =
      parsed(R"({"t": "2026-01-02T03:04:05Z", "s": 7, "f": 7.5, "x": "y"})");
  EXPECT_EQ(time_at(object, "t"), parse_time("2026-01-02T03:04:05Z"));
  EXPECT_EQ(time_at(object, "s"), std::nullopt);
  EXPECT_EQ(time_at(object, "x"), std::nullopt);
  EXPECT_EQ(seconds_at(object, "s"), std::chrono::seconds(7));
  EXPECT_EQ(seconds_at(object, "f"), std::nullopt);
  EXPECT_EQ(seconds_at(object, "t"), std::nullopt);
  EXPECT_EQ(seconds_at(object, "missing"), std::nullopt);
}

TEST(JsonTime, SecondsAreBounded) {
  const std::chrono::seconds most(2'147'483'647);
  for (const char* const number : {"2147483648", "9223372036854775807", "18446744073709551615"}) {
    EXPECT_EQ(seconds_at(parsed(std::string(R"({"s": )") + number + "}"), "s"), most) << number;
  }
  EXPECT_EQ(seconds_at(parsed(R"({"s": -9223372036854775808})"), "s"), -most);
}

}  // namespace
}  // namespace holdfast
