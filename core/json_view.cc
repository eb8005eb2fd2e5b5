#include "core/json_view.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>
#include <utility>

#include <simdjson.h>

#include "core/json.h"

namespace holdfast {
namespace {

namespace dom = simdjson::dom;

// A place is simdjson's own: the document and an index into it. All zero is null.
using Place = std::array<std::uint64_t, 2>;
static_assert(sizeof(dom::element) == sizeof(Place) &&
              sizeof(dom::array::iterator) == sizeof(Place));
static_assert(std::is_trivially_copyable_v<dom::element>);
static_assert(std::is_trivially_copyable_v<dom::array::iterator>);

bool is_nowhere(const Place& place) { return place[0] == 0; }
dom::element element_at(const Place& place) { return std::bit_cast<dom::element>(place); }

dom::element_type type_at(const Place& place) {
  return is_nowhere(place) ? dom::element_type::NULL_VALUE : element_at(place).type();
}

Error refusal(simdjson::error_code code) {
  if (code == simdjson::DEPTH_ERROR) {
    return make_error(ErrorCode::kTerminal, "JSON is nested too deeply");
  }
  return make_error(ErrorCode::kTransient, "malformed JSON");
}

}  // namespace

struct JsonView::Parsed {
  dom::parser parser;
};

bool JsonView::is_null() const { return type_at(place_) == dom::element_type::NULL_VALUE; }
bool JsonView::is_object() const { return type_at(place_) == dom::element_type::OBJECT; }
bool JsonView::is_array() const { return type_at(place_) == dom::element_type::ARRAY; }
bool JsonView::is_string() const { return type_at(place_) == dom::element_type::STRING; }
bool JsonView::is_boolean() const { return type_at(place_) == dom::element_type::BOOL; }
bool JsonView::is_number_integer() const {
  const dom::element_type type = type_at(place_);
  return type == dom::element_type::INT64 || type == dom::element_type::UINT64;
}
bool JsonView::is_number() const {
  return is_number_integer() || type_at(place_) == dom::element_type::DOUBLE;
}

JsonView::Iterator JsonView::begin() const {
  Iterator iterator;
  if (is_array()) {
    iterator.place_ = std::bit_cast<Place>(element_at(place_).get_array().value_unsafe().begin());
  }
  return iterator;
}

JsonView::Iterator JsonView::end() const {
  Iterator iterator;
  if (is_array()) {
    iterator.place_ = std::bit_cast<Place>(element_at(place_).get_array().value_unsafe().end());
  }
  return iterator;
}

JsonView::Iterator& JsonView::Iterator::operator++() {
  auto iterator = std::bit_cast<dom::array::iterator>(place_);
  place_ = std::bit_cast<Place>(++iterator);
  return *this;
}

std::size_t JsonView::size() const {
  return is_array() ? element_at(place_).get_array().value_unsafe().size() : 0;
}

JsonView JsonView::operator[](std::size_t index) const {
  if (!is_array()) return {};
  dom::element found;
  if (element_at(place_).get_array().value_unsafe().at(index).get(found) != simdjson::SUCCESS) {
    return {};
  }
  return JsonView(std::bit_cast<Place>(found));
}

std::string_view JsonView::string_or(std::string_view fallback) const {
  return is_string() ? element_at(place_).get_string().value_unsafe() : fallback;
}

std::int64_t JsonView::int_or(std::int64_t fallback) const {
  switch (type_at(place_)) {
    case dom::element_type::INT64:
      return element_at(place_).get_int64().value_unsafe();
    case dom::element_type::UINT64:  // only what is too large for the other
      return std::numeric_limits<std::int64_t>::max();
    default:
      return fallback;
  }
}

double JsonView::number_or(double fallback) const {
  return is_number() ? element_at(place_).get_double().value_unsafe() : fallback;
}

bool JsonView::bool_or(bool fallback) const {
  return is_boolean() ? element_at(place_).get_bool().value_unsafe() : fallback;
}

std::string JsonView::text() const {
  return is_nowhere(place_) ? "null" : simdjson::minify(element_at(place_));
}

JsonView at(const JsonView& object, std::string_view key) {
  if (!object.is_object()) return {};
  dom::element found;
  const dom::object members = element_at(object.place_).get_object().value_unsafe();
  if (members.at_key(key).get(found) != simdjson::SUCCESS) return {};
  return JsonView(std::bit_cast<Place>(found));
}

void for_each_member(
    const JsonView& object,
    const std::function<void(std::string_view name, const JsonView& value)>& visit) {
  if (!object.is_object()) return;
  const dom::object members = element_at(object.place_).get_object().value_unsafe();
  for (const auto& [name, value] : members) {
    visit(name, JsonView(std::bit_cast<Place>(dom::element(value))));
  }
}

std::string string_at(const JsonView& object, std::string_view key, std::string_view fallback) {
  return std::string(at(object, key).string_or(fallback));
}

std::int64_t int_at(const JsonView& object, std::string_view key, std::int64_t fallback) {
  return at(object, key).int_or(fallback);
}

bool bool_at(const JsonView& object, std::string_view key, bool fallback) {
  return at(object, key).bool_or(fallback);
}

Result<JsonDocument> JsonDocument::parse(std::string_view text) {
  const auto parsed = std::make_shared<Parsed>();
  // simdjson counts one level more than there are brackets.
  simdjson::error_code code = parsed->parser.allocate(text.size(), kMaxJsonDepth + 1);
  if (code != simdjson::SUCCESS) return refusal(code);
  dom::element root;
  code = parsed->parser.parse(text.data(), text.size()).get(root);
  if (code != simdjson::SUCCESS) return refusal(code);
  JsonDocument document;
  document.place_ = std::bit_cast<Place>(root);
  document.parsed_ = parsed;
  return document;
}

}  // namespace holdfast
