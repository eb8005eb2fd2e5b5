// Packs and unpacks what the cache keeps of an object at rest (operator/codecs/at_rest.h): the
// members whose rule says at_rest. Pure.
//
//   Pack out; AtRest(out).all_of(status);     Unpack in(bytes); AtRest(in).all_of(status);
#pragma once

#include <bit>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "api/fields.h"
#include "api/index_set.h"
#include "api/reason.h"
#include "core/pack.h"

namespace holdfast::api {

template <class Io>
class AtRest {
 public:
  explicit AtRest(Io& io) : io_(io) {}

  template <class Member, class... More>
  void operator()(const char*, Member& member, const Rule& rule = {}, const More&...) {
    if (rule.at_rest) pass(member);
  }
  void truth(const char*, bool& holds, bool&, const Rule& rule = {}) {
    if (rule.at_rest) pass(holds);
  }
  template <class Member>
  void by_codec(const char*, Member& member, const Rule& rule = {}) {
    if (rule.at_rest) pass(member);
  }
  void other(const char*) {}
  template <class Member, class... More>
  void own(Member& member, const Rule& rule = {}, const More&...) {
    if (rule.at_rest) pass(member);
  }
  template <class Member>
  void all_of(Member& member) {
    fields(*this, member);
  }

  void pass(std::string& text) { io_(text); }
  void pass(Time& time) { io_(time); }
  void pass(std::chrono::seconds& time) { io_(time); }
  void pass(double& number) {
    auto bits = std::bit_cast<std::int64_t>(number);
    io_(bits);
    number = std::bit_cast<double>(bits);
  }
  void pass(AnyReason& reason) {
    std::string text = reason.text();
    io_(text);
    if (Io::kReads) reason = AnyReason(std::move(text));
  }
  void pass(IndexSet& indexes) {
    std::string text;
    if (!Io::kReads) text = indexes.text();
    io_(text);
    if (Io::kReads) indexes = IndexSet::parse(text, IndexSet::kMost).value_or(IndexSet());
  }
  template <class Item>
  void pass(std::vector<Item>& items) {
    io_.list(items, [this](Io&, Item& item) { pass(item); });
  }
  template <class Value>
  void pass(std::optional<Value>& value) {
    bool has = value.has_value();
    io_(has);
    if (!has) return value.reset();
    if (!value) value.emplace();
    pass(*value);
  }
  template <class Value>
  void pass(Value& value) {
    if constexpr (std::is_integral_v<Value> || std::is_enum_v<Value>) {
      io_(value);
    } else {
      fields(*this, value);
    }
  }

 private:
  Io& io_;
};

}  // namespace holdfast::api
