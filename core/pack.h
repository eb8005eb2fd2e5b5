// Values as few bytes, for what a process keeps very many of. Only the process that wrote the bytes
// reads them, so nothing is checked and there are no versions.
//
// One function names the fields, for both directions, so that none is forgotten in one of them:
//
//   template <class Io> void pass(Io& io, Point& point) { io(point.x); io(point.y); io(point.name);
//   }
//
//   Pack out; pass(out, point); out.bytes();          Unpack in(bytes); pass(in, point);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/time.h"

namespace holdfast {

class Pack {
 public:
  static constexpr bool kReads = false;

  // Small numbers take a byte, as do short negative ones.
  template <class Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number>
  void operator()(const Number& value) {
    const auto wide = static_cast<std::int64_t>(value);
    number((static_cast<std::uint64_t>(wide) << 1U) ^ static_cast<std::uint64_t>(wide >> 63U));
  }
  void operator()(const std::string& text) {
    number(text.size());
    bytes_ += text;
  }
  void operator()(const std::chrono::seconds& value) { (*this)(value.count()); }
  // A fraction of a second costs four bytes more.
  void operator()(const Time& time) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(time);
    (*this)(whole.time_since_epoch().count());
    (*this)((time - whole).count());
  }
  template <class Value>
  void operator()(const std::optional<Value>& value) {
    (*this)(value.has_value());
    if (value) (*this)(*value);
  }
  // `pass_one(io, item)` for each.
  template <class Value, class PassOne>
  void list(std::vector<Value>& values, PassOne pass_one) {
    number(values.size());
    for (Value& value : values) pass_one(*this, value);
  }

  const std::string& bytes() const { return bytes_; }

 private:
  void number(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

class Unpack {
 public:
  static constexpr bool kReads = true;

  explicit Unpack(std::string_view bytes) : rest_(bytes) {}

  template <class Number>
  requires std::is_integral_v<Number> || std::is_enum_v<Number>
  void operator()(Number& value) {
    const std::uint64_t zigzag = number();
    value = static_cast<Number>(static_cast<std::int64_t>(zigzag >> 1U) ^
                                -static_cast<std::int64_t>(zigzag & 1U));
  }
  void operator()(std::string& text) {
    const std::size_t size = number();
    text = rest_.substr(0, size);
    rest_.remove_prefix(text.size());
  }
  void operator()(std::chrono::seconds& value) {
    std::int64_t count = 0;
    (*this)(count);
    value = std::chrono::seconds(count);
  }
  void operator()(Time& time) {
    std::int64_t whole = 0;
    std::int64_t fraction = 0;
    (*this)(whole);
    (*this)(fraction);
    time = Time(std::chrono::seconds(whole)) + Duration(fraction);
  }
  template <class Value>
  void operator()(std::optional<Value>& value) {
    bool has = false;
    (*this)(has);
    value.reset();
    if (has) (*this)(value.emplace());
  }
  template <class Value, class PassOne>
  void list(std::vector<Value>& values, PassOne pass_one) {
    values.clear();
    values.resize(number());
    for (Value& value : values) pass_one(*this, value);
  }

 private:
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; !rest_.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) == 0) break;
    }
    return value;
  }

  std::string_view rest_;
};

}  // namespace holdfast
