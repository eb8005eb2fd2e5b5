// What is printed as YAML reads back as the same, and is easy to read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/kube/yaml.h"
#include "plugin/terminal/print.h"
#include "plugin/terminal/yaml_text.h"
#include "plugin/verbs/difference.h"

namespace holdfast::plugin {
namespace {

Json read_back(const Json& json) {
  const auto documents = kube::parse_manifest(to_yaml(json));
  EXPECT_TRUE(documents.ok()) << to_yaml(json);
  return documents.ok() && !documents->empty() ? (*documents)[0] : Json();
}

TEST(PluginYaml, LooksAsKubectlPrintsIt) {
  const Json job = {{"kind", "DurableJob"},
                    {"spec",
                     {{"backoffLimit", 3},
                      {"suspend", false},
                      {"containers", {{{"name", "main"}, {"command", {"sh", "-c", "a\nb\n"}}}}},
                      {"empty", Json::object()},
                      {"none", Json::array()}}}};
  EXPECT_EQ(to_yaml(job),
            "kind: DurableJob\n"
            "spec:\n"
            "  backoffLimit: 3\n"
            "  containers:\n"
            "  - command:\n"
            "    - sh\n"
            "    - -c\n"
            "    - |\n"
            "      a\n"
            "      b\n"
            "    name: main\n"
            "  empty: {}\n"
            "  none: []\n"
            "  suspend: false\n");
}

TEST(PluginYaml, TextsThatWouldReadAsSomethingElseAreQuoted) {
  for (const char* text :
       {"yes",    "no",    "on",    "n",          "true", "null",  "~",    "",     "1",
        "1.5",    "1e3",   "0x1F",  "010",        "-",    "- a",   "a: b", "a #b", "#",
        "'",      "\"",    "*a",    "&a",         "!a",   "%a",    "@a",   "`a",   "|",
        ">",      "{a}",   "[a]",   "2026-01-02", "a\tb", "a\\nb", " a",   "a ",   "a\n",
        "a\n\nb", " a\nb", "a \nb", "a\n\n",      "\n",   "ü",     "=",    "<<",   "12:30",
        "1_000",  ".5",    "+1",    "key:",       "a,b",  "?"}) {
    const Json json = {{"k", text}, {"l", {text}}, {text, 1}};
    EXPECT_EQ(read_back(json), json) << to_yaml(json);
  }
}

// ESC, CSI as one character, DEL, a line separator, and what turns the direction of text.
constexpr const char* kControls[] = {"\x1b[2J",
                                     "\xC2\x9B"
                                     "2J",
                                     "\x7F",
                                     "\xE2\x80\xA8",
                                     "\xE2\x80\xAE",
                                     "\xE2\x81\xA6",
                                     "\xE2\x80\x8F",
                                     "\xD8\x9C"};

TEST(PluginYaml, NoControlCharacterReachesTheTerminalAndNoneIsLost) {
  for (const char* const control : kControls) {
    const Json json = {{"k", std::string("a") + control + "b\nü"}, {std::string(control) + "k", 1}};
    for (const char* form : {"yaml", "json"}) {
      const std::string text = rendered(json, form);
      EXPECT_EQ(text.find(control), std::string::npos) << text;
      EXPECT_THAT(text, testing::HasSubstr("\\u"));
      EXPECT_THAT(text, testing::HasSubstr("ü")) << "it is no control character";
      const auto read = kube::parse_manifest(text);
      ASSERT_TRUE(read.ok()) << text;
      EXPECT_EQ(read->at(0), json) << text;
      if (form == std::string("json")) {
        EXPECT_EQ(*parse_json(text), json);
      }
    }
  }
}

TEST(PluginYaml, NestedListsAndNumbersReadBack) {
  const Json json = {{"a", {{1, {2, 3}}, {{{"b", {{{"c", nullptr}}}}}}}},
                     {"n", {-1, 0, 1.5, 9007199254740993, true, nullptr}}};
  EXPECT_EQ(read_back(json), json) << to_yaml(json);
}

TEST(PluginDifference, NamesEachFieldOnce) {
  const Json there = {{"a", 1}, {"b", {{"c", "x"}, {"d", {1, 2}}}}, {"e", nullptr}};
  const Json here = {{"a", 1}, {"b", {{"c", "y"}, {"d", {1}}, {"x.y/z", true}}}};
  const std::vector<std::string> expected = {"spec.b.c: \"x\" there, \"y\" here",
                                             "spec.b.d[1]: 2 there, absent here",
                                             "spec.b['x.y/z']: absent there, true here"};
  EXPECT_EQ(differences("spec", there, here), expected);
}

}  // namespace
}  // namespace holdfast::plugin
