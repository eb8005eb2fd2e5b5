// JSON that others wrote, read where it lies: a document is parsed once, without an allocation for
// each value, and nothing is copied but what a reader asks for.
//
//   const Result<JsonDocument> pod = JsonDocument::parse(body);
//   const std::string node = string_at(at(*pod, "spec"), "nodeName");
//
// A view is as cheap to copy as a pointer. It looks at its document and must not outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "core/json.h"
#include "core/result.h"

namespace holdfast {

// One value, or null where there is none.
class JsonView {
 public:
  class Iterator;

  JsonView() = default;

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  bool is_string() const;
  bool is_number_integer() const;
  bool is_number() const;
  bool is_boolean() const;

  // The elements of an array; of anything else, none.
  Iterator begin() const;
  Iterator end() const;
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  JsonView operator[](std::size_t index) const;  // null behind the last

  // The value, or the fallback where it is of another type. An integer beyond 63 bits is the most.
  std::string_view string_or(std::string_view fallback) const;
  std::int64_t int_or(std::int64_t fallback) const;
  double number_or(double fallback) const;
  bool bool_or(bool fallback) const;

  // As text without blanks, members in their order.
  std::string text() const;

  bool operator==(std::string_view string) const { return is_string() && string_or("") == string; }

 protected:
  friend JsonView at(const JsonView& object, std::string_view key);
  struct Parsed;  // of simdjson, whose header only json_view.cc pays for
  using Place = std::array<std::uint64_t, 2>;
  explicit JsonView(const Place& place) : place_(place) {}
  Place place_{};
};

class JsonView::Iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = JsonView;
  using difference_type = std::ptrdiff_t;
  using pointer = const JsonView*;
  using reference = JsonView;

  JsonView operator*() const { return JsonView(place_); }
  Iterator& operator++();
  bool operator==(const Iterator& other) const { return place_ == other.place_; }

 private:
  friend class JsonView;
  Place place_{};
};

// The view of the whole, and what it looks at; copies share it.
class JsonDocument : public JsonView {
 public:
  JsonDocument() = default;  // null

  // Malformed text is kTransient (a piece of it is missing), text nested deeper than kMaxJsonDepth
  // kTerminal. An integer of more than 64 bits is malformed: the API server writes none.
  static Result<JsonDocument> parse(std::string_view text);

 private:
  std::shared_ptr<const Parsed> parsed_;
};

// The member, or null: chains of at() never fail. Of members with one name, the first.
JsonView at(const JsonView& object, std::string_view key);
std::string string_at(const JsonView& object, std::string_view key, std::string_view fallback = "");
std::int64_t int_at(const JsonView& object, std::string_view key, std::int64_t fallback = 0);
bool bool_at(const JsonView& object, std::string_view key, bool fallback = false);

}  // namespace holdfast
