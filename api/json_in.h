// Reads a struct from the JSON of the API server:
//
//   const auto run = read<Run>(json);
//
// A field that is absent, or of another type, leaves the member at its default. Pure.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/fields.h"
#include "api/index_set.h"
#include "api/limits.h"
#include "api/reason.h"
#include "core/json_time.h"
#include "core/json_view.h"
#include "core/utf8.h"

namespace holdfast::api {

class JsonIn {
 public:
  explicit JsonIn(const JsonView& object) : object_(object) {}

  template <class Member>
  void operator()(std::string_view name, Member& member, const Rule& rule = {}) {
    get(at(object_, name), rule, member);
  }
  template <class Member, class F>
  void operator()(std::string_view name, Member& member, const Rule& rule, const When<F>&) {
    get(at(object_, name), rule, member);
  }
  template <class Member, class F>
  void operator()(std::string_view, Member& member, const Rule&, const Read<F>& read) {
    member = read.from(object_);
  }
  void operator()(std::string_view name, bool& flag, const Rule&, const Words& words) {
    const JsonView word = at(object_, name);
    flag = flag ? word != words.no : word == words.yes;
  }
  void truth(std::string_view name, bool& holds, bool& unknown, const Rule& = {}) {
    const JsonView word = at(object_, name);
    holds = word == "True";
    unknown = word == "Unknown";
  }
  template <class Member>
  void by_codec(std::string_view, Member&, const Rule& = {}) {}
  void other(const char*) {}
  template <class Member>
  void own(Member&, const Rule& = {}) {}
  template <class Member, class F>
  void own(Member& member, const Rule&, const Read<F>& read) {
    member = read.from(object_);
  }
  template <class Member>
  void all_of(Member& member) {
    fields(*this, member);
  }

 private:
  static void get(const JsonView& json, const Rule& rule, std::string& text) {
    if (!json.is_string()) return;
    text = json.string_or("");
    if (text.size() > rule.bytes) text = utf8_prefix(std::move(text), rule.bytes);
  }
  static void get(const JsonView& json, const Rule&, bool& flag) { flag = json.bool_or(flag); }
  static void get(const JsonView& json, const Rule&, double& number) {
    number = json.number_or(number);
  }
  static void get(const JsonView& json, const Rule& rule, std::chrono::seconds& time) {
    time = std::chrono::seconds(
        std::clamp(seconds_of(json).value_or(time).count(), rule.least, rule.most));
  }
  static void get(const JsonView& json, const Rule&, std::optional<std::chrono::seconds>& time) {
    time = seconds_of(json);
  }
  static void get(const JsonView& json, const Rule&, std::optional<Time>& time) {
    time = time_of(json);
  }
  static void get(const JsonView& json, const Rule&, Time& time) {
    time = time_of(json).value_or(time);
  }
  static void get(const JsonView& json, const Rule&, AnyReason& reason) {
    reason = AnyReason(std::string(json.string_or("")));
  }
  // A list that cannot be read has no index.
  static void get(const JsonView& json, const Rule&, std::optional<IndexSet>& indexes) {
    if (!json.is_string()) return;
    indexes = IndexSet::parse(std::string(json.string_or("")), kCompletionsLimit - 1)
                  .value_or(IndexSet());
  }
  template <class Item>
  static void get(const JsonView& json, const Rule& rule, std::vector<Item>& items) {
    for (const JsonView one : rule.inside ? at(json, rule.inside) : json) {
      if (items.size() >= rule.entries) return;
      get(one, {}, items.emplace_back());
    }
  }
  template <class Value>
  static void get(const JsonView& json, const Rule& rule, std::optional<Value>& value) {
    const bool is_there = std::is_arithmetic_v<Value> ? json.is_number_integer() : json.is_object();
    if (is_there) get(json, rule, value.emplace());
  }
  template <class Value>
  static void get(const JsonView& json, const Rule& rule, Value& value) {
    if constexpr (std::is_integral_v<Value>) {
      value = static_cast<Value>(
          std::clamp(json.int_or(static_cast<std::int64_t>(value)), rule.least, rule.most));
    } else if constexpr (std::is_enum_v<Value>) {
      read_word(std::string(json.string_or("")), value);
    } else {
      JsonIn in(json);
      fields(in, value);
    }
  }

  JsonView object_;
};

template <class Struct>
Struct read(const JsonView& json) {
  Struct value;
  JsonIn in(json);
  fields(in, value);
  return value;
}

}  // namespace holdfast::api
