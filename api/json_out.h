// Writes a struct as JSON for the API server: write(json["waiting"], waiting). It leaves out a
// member that says nothing, see Rule. Pure.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "api/fields.h"
#include "api/reason.h"
#include "core/json.h"
#include "core/json_time.h"
#include "core/utf8.h"

namespace holdfast::api {

class JsonOut {
 public:
  explicit JsonOut(Json& object) : object_(object) {}

  template <class Member>
  void operator()(const char* name, const Member& member, const Rule& rule = {}) {
    put(name, rule, member);
  }
  template <class Member, class F>
  void operator()(const char* name, const Member& member, const Rule& rule, const When<F>& when) {
    if (when.is_written()) put(name, rule, member);
  }
  template <class Member, class F>
  void operator()(const char* name, const Member& member, const Rule& rule, const Read<F>&) {
    put(name, rule, member);
  }
  void truth(const char* name, bool holds, bool unknown, const Rule& = {}) {
    const char* const known = holds ? "True" : "False";
    object_[name] = unknown ? "Unknown" : known;
  }
  template <class Member>
  void by_codec(const char*, const Member&, const Rule& = {}) {}
  void other(const char*) {}
  template <class Member, class... More>
  void own(const Member&, const Rule& = {}, const More&...) {}
  template <class Member>
  void all_of(const Member& member) {
    fields(*this, member);
  }

 private:
  void put(const char* name, const Rule& rule, const std::string& text) {
    if (text.size() > rule.bytes) return put(name, rule, utf8_prefix(text, rule.bytes));
    if (rule.required || !text.empty()) object_[name] = text;
  }
  void put(const char* name, const Rule& rule, bool flag) {
    if (rule.required || flag) object_[name] = flag;
  }
  void put(const char* name, const Rule& rule, const std::chrono::seconds& time) {
    put(name, rule, time.count());
  }
  void put(const char* name, const Rule& rule, const Time& time) {
    if (rule.fraction) {
      put_time(object_, name, time);
    } else {
      object_[name] = format_time(time);
    }
  }
  void put(const char* name, const Rule& rule, const AnyReason& reason) {
    put(name, rule, reason.text());
  }
  // A number that is there says something.
  template <class Value>
  void put(const char* name, Rule rule, const std::optional<Value>& value) {
    rule.required = true;
    if (value) put(name, rule, *value);
  }
  template <class Item>
  void put(const char* name, const Rule& rule, const std::vector<Item>& items) {
    if (!rule.required && items.empty()) return;
    Json& list = object_[name] = Json::array();
    for (const Item& item : items) {
      if constexpr (std::is_convertible_v<Item, Json>) {
        list.push_back(item);
      } else {
        put_struct(list.emplace_back(Json::object()), item);
      }
    }
  }
  template <class Value>
  void put(const char* name, const Rule& rule, const Value& value) {
    if constexpr (std::is_integral_v<Value>) {
      const std::int64_t number = value;
      if (rule.required || number > std::max<std::int64_t>(rule.least, 0)) object_[name] = number;
    } else if constexpr (std::is_enum_v<Value>) {
      object_[name] = to_string(value);
    } else {
      put_struct(object_[name] = Json::object(), value);
    }
  }
  template <class Struct>
  static void put_struct(Json& json, const Struct& value) {
    JsonOut out(json);
    fields(out, value);
  }

  Json& object_;
};

template <class Struct>
Json write(const Struct& value) {
  Json json = Json::object();
  JsonOut out(json);
  fields(out, value);
  return json;
}

}  // namespace holdfast::api
