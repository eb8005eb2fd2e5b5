// The defaults of the spec: each one that the CRD's descriptions name, tried alone. docs/api.md is
// generated from the same descriptions.
#include "plugin/verbs/spec_defaults.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "client/kube/yaml.h"
#include "plugin/verbs/difference.h"
#include "plugin/verbs/submit_key.h"

namespace holdfast::plugin {
namespace {

struct Documented {
  std::string path;  // "stages[].heartbeat.leaseDurationSeconds"
  Json schema;
  std::string text;  // "1", "6, or no limit with backoffLimitPerIndex"
};

// What stands behind "Default: ", without the words on changes.
std::string default_of(const Json& schema) {
  const std::string text = string_at(schema, "description");
  const std::size_t at = text.find("Default:");
  if (at == std::string::npos) return "";
  const std::size_t begin = text.find_first_not_of(" \n", at + 8);
  return text.substr(begin, text.find('.', begin) - begin);
}

void collect(const Json& schema, const std::string& path, std::vector<Documented>& all) {
  for (const auto& [name, field] : at(schema, "properties").items()) {
    const std::string here = path.empty() ? name : path + "." + name;
    const std::string text = default_of(field);
    if (!text.empty()) all.push_back({here, field, text});
    if (name == "template") continue;
    collect(field, here, all);
    collect(at(field, "items"), here + "[]", all);
  }
}

std::vector<Documented> documented() {
  std::ifstream file(CRD_FOLDER "/holdfast.dev_durablejobs.yaml");
  std::stringstream text;
  text << file.rdbuf();
  const auto documents = kube::parse_manifest(text.str());
  EXPECT_TRUE(documents.ok()) << documents.error().message;
  const Json& version = (*documents)[0]["spec"]["versions"][0];
  std::vector<Documented> all;
  collect(version["schema"]["openAPIV3Schema"]["properties"]["spec"], "", all);
  return all;
}

// The object that has the field, made with all that leads there.
Json& parent_of(Json& spec, const std::string& path) {
  Json* here = &spec;
  std::size_t begin = 0;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
    std::string name = path.substr(begin, dot - begin);
    begin = dot + 1;
    const bool is_list = name.ends_with("[]");
    if (is_list) name.resize(name.size() - 2);
    Json& next = (*here)[name];
    if (next.is_null()) next = is_list ? Json::array({Json::object()}) : Json::object();
    here = is_list ? &next[0] : &next;
  }
  return *here;
}

struct Trial {
  Json plain, spelled;
};

Trial trial_of(const std::string& path, const Json& value,
               const std::function<void(Json&)>& prepare = nullptr) {
  Trial trial;
  Json& parent = parent_of(trial.plain, path);
  if (prepare) prepare(parent);
  trial.spelled = trial.plain;
  parent_of(trial.spelled, path)[path.substr(path.rfind('.') + 1)] = value;
  if (trial.plain.is_null()) trial.plain = Json::object();
  return trial;
}

void expect_same(const Trial& trial) {
  EXPECT_EQ(spec_hash(without_defaults(trial.plain)), spec_hash(without_defaults(trial.spelled)))
      << trial.spelled;
  EXPECT_EQ(differences("spec", with_defaults(trial.plain), with_defaults(trial.spelled)),
            std::vector<std::string>())
      << trial.spelled;
}

void expect_other(const Trial& trial) {
  EXPECT_NE(spec_hash(without_defaults(trial.plain)), spec_hash(without_defaults(trial.spelled)))
      << trial.spelled;
  EXPECT_NE(with_defaults(trial.plain), with_defaults(trial.spelled)) << trial.spelled;
}

Json value_of(const std::string& type, const std::string& text) {
  if (type == "integer") return std::stoll(text);
  if (type == "boolean") return text == "true";
  return text;
}

Json other_than(const Json& value) {
  if (value.is_number()) return value.get<std::int64_t>() + 1;
  if (value.is_boolean()) return !value.get<bool>();
  return "other";
}

TEST(PluginSpecDefaults, EachDocumentedValueMeansTheSameSpelledOutOrNot) {
  int tried = 0;
  for (const auto& [path, schema, text] : documented()) {
    if (text.starts_with("none") || text == "those of its fields") continue;
    SCOPED_TRACE(path + ": " + text);
    const Json value = value_of(string_at(schema, "type"), text.substr(0, text.find(',')));
    expect_same(trial_of(path, value));
    expect_other(trial_of(path, other_than(value)));
    // What the API server fills in is the same as what is filled in here.
    if (!at(schema, "default").is_null()) {
      EXPECT_EQ(at(schema, "default"), value);
    }
    ++tried;
  }
  EXPECT_GE(tried, 35);
}

TEST(PluginSpecDefaults, AnEmptyTextOrListThatIsAllowedMeansNone) {
  int tried = 0;
  for (const auto& [path, schema, text] : documented()) {
    const std::string type = string_at(schema, "type");
    if (!text.starts_with("none") || (type != "string" && type != "array")) continue;
    if (int_at(schema, "minLength") > 0 || int_at(schema, "minItems") > 0) continue;
    SCOPED_TRACE(path + ": " + text);
    expect_same(trial_of(path, type == "string" ? Json("") : Json::array()));
    ++tried;
  }
  EXPECT_GE(tried, 6);
}

TEST(PluginSpecDefaults, ADefaultThatDependsOnAnotherFieldFollowsIt) {
  std::vector<std::string> depending;
  for (const auto& [path, schema, text] : documented()) {
    const bool has_two = !text.starts_with("none, ") && text.find(',') != std::string::npos;
    if (has_two || text.find_first_of(";0123456789") != std::string::npos) {
      if (text.find_first_of(" ;,") != std::string::npos) depending.push_back(path);
    }
  }
  EXPECT_EQ(depending,
            (std::vector<std::string>{"backoffLimit", "indexes", "stages[].activeDeadlineSeconds",
                                      "stages[].backoffLimit", "stages[].indexes"}));
  for (const std::string& path : {std::string(), std::string("stages[].")}) {
    const auto per_index = [](Json& stage) { stage["backoffLimitPerIndex"] = 1; };
    expect_same(trial_of(path + "backoffLimit", 2147483647, per_index));
    expect_other(trial_of(path + "backoffLimit", 6, per_index));
    const auto indexed = [](Json& stage) {
      stage.update({{"completionMode", "Indexed"}, {"completions", 4}});
    };
    expect_same(trial_of(path + "indexes", "0-3", indexed));
    expect_other(trial_of(path + "indexes", "0-2", indexed));
    expect_same(
        trial_of(path + "indexes", "0", [](Json& stage) { stage["completionMode"] = "Indexed"; }));
    const auto met = [&](Json& stage) {
      indexed(stage);
      stage["successPolicy"]["rules"] = Json::array({Json{{"succeededCount", 2}}});
    };
    Trial trial = trial_of(path + "message", "x", met);
    Json& rule = parent_of(trial.spelled, path + "successPolicy.rules[].x");
    trial.plain = trial.spelled;
    rule["succeededIndexes"] = "0-3";
    expect_same(trial);
    rule["succeededIndexes"] = "1-3";
    expect_other(trial);
  }
  const auto always = [](Json& stage) { stage["when"] = "Always"; };
  expect_same(trial_of("stages[].activeDeadlineSeconds", 600, always));
  expect_other(trial_of("stages[].activeDeadlineSeconds", 601, always));
  expect_other(trial_of("stages[].activeDeadlineSeconds", 600));
}

TEST(PluginSpecDefaults, AWholeRetryBackoffOfDefaultsIsNoDifference) {
  expect_same(trial_of("retryBackoff", Json::object()));
  expect_same(trial_of(
      "retryBackoff",
      {{"initialSeconds", 10}, {"factor", 2.0}, {"maxSeconds", 360}, {"jitterPercent", 20}}));
  expect_same(trial_of("stages[].retryBackoff", {{"factor", 2}}));
  expect_other(trial_of("retryBackoff", {{"factor", 3}}));
}

TEST(PluginSpecDefaults, WhatIsNoSpecStaysAsItIs) {
  for (const Json& odd : {Json(), Json("x"), Json::array({1}), Json{{"stages", 3}, {"queue", "q"}},
                          Json{{"stages", Json::array({1})}, {"retryBackoff", "x"}}}) {
    EXPECT_NO_THROW(with_defaults(odd));
    EXPECT_EQ(without_defaults(odd), odd);
  }
}

}  // namespace
}  // namespace holdfast::plugin
