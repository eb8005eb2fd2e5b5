#include "operator/core/json.h"

#include <gtest/gtest.h>

#include "operator/core/json_time.h"

namespace holdfast {
namespace {

Json parsed(const std::string& text) {
  const Result<Json> result = parse_json(text);
  EXPECT_TRUE(result.ok()) << text;
  return result.ok() ? *result : Json();
}

TEST(ParseJson, DropsManagedFieldsAndTheLastAppliedAnnotation) {
  const Json object = parsed(R"({"metadata": {
      "name": "a", "managedFields": [{"manager": "kubectl", "fieldsV1": {"f:metadata": {}}}],
      "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "mine": "1"},
      "uid": "u"}, "spec": {"x": 1}})");
  EXPECT_EQ(object, parsed(R"({"metadata": {"name": "a", "annotations": {"mine": "1"}, "uid": "u"},
                               "spec": {"x": 1}})"));
}

TEST(ParseJson, DropsThemInEveryItemOfAListAndInATemplate) {
  const Json list = parsed(R"({"items": [{"metadata": {"managedFields": [1], "name": "a"}},
                                         {"metadata": {"name": "b", "managedFields": []}}]})");
  EXPECT_EQ(list,
            parsed(R"({"items": [{"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}]})"));
}

TEST(ParseJson, KeepsALabelThatHappensToBeCalledManagedFields) {
  const std::string text =
      R"({"managedFields":1,"metadata":{"labels":{"managedFields":"x"}},"spec":{"managedFields":[]}})";
  EXPECT_EQ(parsed(text).dump(), text);
}

TEST(ParseJson, DropsManagedFieldsAsTheServerWritesThem) {
  const std::string fields =
      R"([{"manager":"a]}\"\\","fieldsV1":{"f:metadata":{"k:{\"type\":\"Ready\"}":{".":{}}}}},{"x":"["}])";
  const std::string object = R"({"metadata":{"managedFields":)" + fields + R"(,"name":"a"}})";
  EXPECT_EQ(parsed(object).dump(), R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(parsed(R"({"items":[)" + object + "," + object + "]}").dump(),
            R"({"items":[{"metadata":{"name":"a"}},{"metadata":{"name":"a"}}]})");
}

TEST(ParseJson, KeepsWhatLooksLikeManagedFieldsWithinAString) {
  const std::string text =
      R"({"metadata":{"name":"a"},"spec":{"args":[",\"managedFields\":[{\"a\":1}]"]}})";
  EXPECT_EQ(parsed(text).dump(), text);
}

TEST(ParseJson, RefusesManagedFieldsThatDoNotEnd) {
  const std::string text = R"({"metadata":{"managedFields":[{"manager":"a","x":{"y":"z\"}}]}})";
  for (std::size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(parse_json(text.substr(0, size)).ok()) << text.substr(0, size);
  }
  EXPECT_FALSE(parse_json(text).ok());  // its last string does not end
}

TEST(ParseJson, KeepsTheLastAppliedKeyOutsideOfAnnotations) {
  const std::string text =
      R"({"metadata":{"labels":{"kubectl.kubernetes.io/last-applied-configuration":"x"}}})";
  EXPECT_EQ(parsed(text).dump(), text);
}

TEST(ParseJson, RefusesWhatIsMalformed) {
  for (const char* const text : {"", "{", "{\"a\":}", "[1,]", "nul", "{} x", "\"\xff\""}) {
    const Result<Json> result = parse_json(text);
    ASSERT_FALSE(result.ok()) << text;
    EXPECT_EQ(result.error().code, ErrorCode::kTransient);
  }
}

TEST(ParseJson, RefusesDeepNestingAndSurvivesVeryDeep) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth)).ok());
  for (const std::size_t depth : {std::size_t{kMaxJsonDepth + 1}, std::size_t{300'000}}) {
    const Result<Json> result = parse_json(nested(depth));
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, ErrorCode::kTerminal);
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

TEST(JsonTime, ReadsTimesAndWholeSecondsAndNothingElse) {
  const Json object = parsed(R"({"t": "2026-01-02T03:04:05Z", "s": 7, "f": 7.5, "x": "y"})");
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
