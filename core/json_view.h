// Reads untrusted JSON in place. A document is parsed once, without an allocation for each value.
// Nothing is copied until a reader asks for it.
//
//   const Result<JsonDocument> pod = JsonDocument::parse(body);
//   const std::string node = string_at(at(*pod, "spec"), "nodeName");
//
// A view is as cheap to copy as a pointer. It must not outlive its document.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "core/result.h"

namespace holdfast {

// One value. Absent values are null.
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

  // The elements of an array. Other values have no elements.
  Iterator begin() const;
  Iterator end() const;
  std::size_t size() const;
  bool empty() const { return size() == 0; }
  JsonView operator[](std::size_t index) const;  // null after the last

  // The value, or the fallback if it has another type. An integer above 63 bits reads as the
  // largest.
  std::string_view string_or(std::string_view fallback) const;
  std::int64_t int_or(std::int64_t fallback) const;
  double number_or(double fallback) const;
  bool bool_or(bool fallback) const;

  // As text without blanks. Members keep their order.
  std::string text() const;

  bool operator==(std::string_view string) const { return is_string() && string_or("") == string; }

 protected:
  friend JsonView at(const JsonView& object, std::string_view key);
  friend void for_each_member(
      const JsonView& object,
      const std::function<void(std::string_view name, const JsonView& value)>& visit);
  struct Parsed;  // holds simdjson's types; only json_view.cc includes its header
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

// The view of a whole document, and its storage. Copies share the storage.
class JsonDocument : public JsonView {
 public:
  JsonDocument() = default;  // null

  // Malformed text is kTransient (a part may be missing). Text nested deeper than kMaxJsonDepth is
  // kTerminal. An integer of more than 64 bits is malformed: the API server never writes one.
  static Result<JsonDocument> parse(std::string_view text);

 private:
  std::shared_ptr<const Parsed> parsed_;
};

// The member, or null: chains of at() never fail. If a name occurs twice, the first counts.
JsonView at(const JsonView& object, std::string_view key);
// Each member of an object, in the order of the text. Other values have none.
void for_each_member(
    const JsonView& object,
    const std::function<void(std::string_view name, const JsonView& value)>& visit);
std::string string_at(const JsonView& object, std::string_view key, std::string_view fallback = "");
std::int64_t int_at(const JsonView& object, std::string_view key, std::int64_t fallback = 0);
bool bool_at(const JsonView& object, std::string_view key, bool fallback = false);

}  // namespace holdfast
