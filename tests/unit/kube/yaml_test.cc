#include "client/kube/yaml.h"

#include <gtest/gtest.h>

namespace holdfast::kube {
namespace {

TEST(Yaml, MappingsListsAndScalarsBecomeJsonWithTexts) {
  const Result<Json> json = parse_yaml("a: 1\nb: [x, 'true']\nc:\nd: {e: null}\n");
  ASSERT_TRUE(json.ok());
  const Json expected = {{"a", "1"}, {"b", {"x", "true"}}, {"c", nullptr}, {"d", {{"e", nullptr}}}};
  EXPECT_EQ(*json, expected);
}

TEST(Yaml, JsonIsYaml) {
  const Result<Json> json = parse_yaml(R"({"kind": "Config", "users": []})");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(string_at(*json, "kind"), "Config");
}

TEST(Yaml, AliasesAreFollowed) {
  const Result<Json> json = parse_yaml("a: &x {b: c}\nd: *x\n");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(string_at(at(*json, "d"), "b"), "c");
}

TEST(Yaml, AnAliasBombIsRefusedInsteadOfUnfolded) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string alias = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + alias;
    for (int j = 0; j < 8; ++j) text += ", " + alias;
    text += "]\n";
  }
  const Result<Json> json = parse_yaml(text);
  ASSERT_FALSE(json.ok());
  EXPECT_NE(json.error().message.find("more than 100000 values"), std::string::npos)
      << json.error().message;
}

TEST(Yaml, ANestThatIsTooDeepIsRefused) {
  for (const int depth : {60, 400, 100'000}) {
    const Result<Json> json = parse_yaml(std::string(depth, '[') + std::string(depth, ']'));
    EXPECT_FALSE(json.ok()) << depth;
  }
}

TEST(Yaml, AnAliasToItselfIsRefused) {
  const Result<Json> json = parse_yaml("a: &x [1, *x]\n");
  EXPECT_FALSE(json.ok());
}

TEST(Yaml, AKeyThatIsThereTwiceIsRefused) {
  const Result<Json> json = parse_yaml("token: a\ntoken: b\n");
  ASSERT_FALSE(json.ok());
  EXPECT_EQ(json.error().message, "the key at line 2, column 1 occurs twice");
}

TEST(Yaml, AnErrorNamesThePlaceAndNotTheText) {
  for (const char* const text : {"token: [hunter2\n", "token: *hunter2\n", "\ttoken: hunter2",
                                 "{token: hunter2: x}", "? [hunter2]\n: x\n"}) {
    const Result<Json> json = parse_yaml(text);
    ASSERT_FALSE(json.ok()) << text;
    EXPECT_EQ(json.error().code, ErrorCode::kInvalid);
    EXPECT_EQ(json.error().message.find("hunter2"), std::string::npos) << json.error().message;
    EXPECT_NE(json.error().message.find("line"), std::string::npos) << json.error().message;
  }
}

Json manifest(const std::string& text) {
  const Result<std::vector<Json>> documents = parse_manifest(text);
  EXPECT_TRUE(documents.ok()) << text;
  return documents.ok() ? Json(*documents) : Json();
}

TEST(Manifest, PlainScalarsHaveTheTypesThatKubectlReads) {
  const Json expected = {{{"i", 3},
                          {"n", -3},
                          {"x", 31},
                          {"o", 8},
                          {"f", 1.5},
                          {"e", 1000.0},
                          {"t", true},
                          {"y", true},
                          {"off", false},
                          {"z", nullptr},
                          {"none", nullptr},
                          {"s", "1.2.3"},
                          {"q", "3"},
                          {"b", "yes"},
                          {"m", "500m"},
                          {"ip", "10.0.0.1"},
                          {"big", 18446744073709551615U}}};
  EXPECT_EQ(manifest("i: 3\nn: -3\nx: 0x1F\no: 010\nf: 1.5\ne: 1e3\nt: true\ny: yes\n'off': off\n"
                     "z: ~\nnone:\ns: 1.2.3\nq: '3'\nb: \"yes\"\nm: 500m\nip: 10.0.0.1\n"
                     "big: 18446744073709551615\n"),
            expected);
}

TEST(Manifest, DocumentsAreApartAndEmptyOnesLeftOut) {
  EXPECT_EQ(manifest("---\n# nothing\n---\na: 1\n---\n---\nb: 2\n...\n"),
            Json({{{"a", 1}}, {{"b", 2}}}));
  EXPECT_EQ(manifest(""), Json::array());
}

TEST(Manifest, ATextThatNeverEndsIsRefused) {
  std::string text = std::string(12, '\t') + ",\t\t" + std::string(7, '\t') + "\a";
  text += std::string(3, '\0') + "aVs\x04";
  const Result<std::vector<Json>> documents = parse_manifest(text);
  ASSERT_FALSE(documents.ok()) << "yaml-cpp finds empty documents in it for ever";
  EXPECT_EQ(documents.error().message, "it has more than 1000 documents");
}

TEST(Manifest, MergeKeysAddWhatIsNotThere) {
  EXPECT_EQ(manifest("[&a {x: 1, y: 2}, {<<: *a, y: 3}]\n"),
            Json({{{{"x", 1}, {"y", 2}}, {{"x", 1}, {"y", 3}}}}));
}

TEST(Manifest, WhatIsMalformedNamesItsPlaceAndNotItsText) {
  const Result<std::vector<Json>> broken = parse_manifest("a: 1\nb: [secret\n");
  ASSERT_FALSE(broken.ok());
  EXPECT_EQ(broken.error().message.find("secret"), std::string::npos);
  EXPECT_NE(broken.error().message.find("line"), std::string::npos);
  EXPECT_FALSE(parse_manifest("a: 1\na: 2\n").ok());
}

}  // namespace
}  // namespace holdfast::kube
