#include "core/json.h"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

Json parsed(const std::string& text) {
  const Result<Json> result = parse_json(text);
  EXPECT_TRUE(result.ok()) << text;
  return result.ok() ? *result : Json();
}

TEST(ParseJson, RefusesWhatIsMalformed) {
  for (const char* const text : {"", "{", "{\"a\":}", "[1,]", "nul", "{} x", "\"\xff\""}) {
    const Result<Json> result = parse_json(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kTransient);
  }
}

TEST(ParseJson, RefusesDeepNestingAndSurvivesVeryDeep) {
  const auto nested = [](std::size_t depth, const std::string& value) {
    return std::string(depth, '[') + value + std::string(depth, ']');
  };
  for (const char* const value : {"1", "{}", "[]"}) {
    EXPECT_TRUE(parse_json(nested(kMaxJsonDepth, value)).ok()) << value;
    for (const std::size_t depth : {std::size_t{kMaxJsonDepth + 1}, std::size_t{300'000}}) {
      const Result<Json> result = parse_json(nested(depth, value));
      ASSERT_FALSE(result.ok()) << depth << value;
      EXPECT_EQ(result.error().code, ErrorCode::kTerminal);
    }
  }
  std::string objects;
  for (int i = 0; i < 1000; ++i) objects += R"({"metadata":)";
  EXPECT_FALSE(parse_json(objects + "1" + std::string(1000, '}')).ok());
}

TEST(At, NeverThrowsWhateverTheShape) {
  const Json object = parsed(R"({"a": {"b": [1]}, "n": 7, "s": "x", "t": true})");
  EXPECT_TRUE(at(at(at(object, "a"), "b"), "c").is_null());
  EXPECT_TRUE(at(at(object, "missing"), "b").is_null());
  EXPECT_EQ(string_at(object, "s"), "x");
  EXPECT_EQ(string_at(object, "n", "fallback"), "fallback");
  EXPECT_EQ(int_at(object, "n"), 7);
  EXPECT_EQ(int_at(object, "s", -1), -1);
  EXPECT_TRUE(bool_at(object, "t"));
  EXPECT_FALSE(bool_at(object, "n"));
}

}  // namespace
}  // namespace holdfast
