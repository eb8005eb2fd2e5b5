#include "operator/codecs/index_codec.h"

#include <algorithm>
#include <cstddef>

#include "core/json_time.h"

namespace holdfast::codecs {

using reconciler::IndexSet;

std::optional<IndexSet> decode_indexes(const std::string& text, std::int64_t limit) {
  return IndexSet::parse(text, limit - 1);
}

namespace {

std::string unreadable(const JsonView& json, const std::string& path) {
  const JsonView indexes = at(json, "indexes");
  if (!indexes.is_string()) return "";
  const std::string text(indexes.string_or(""));
  const std::int64_t limit = std::max<std::int64_t>(int_at(json, "completions", 1), 1);
  if (decode_indexes(text, limit)) return "";
  constexpr std::size_t kShown = 40;
  return path + ".indexes: " + (text.size() <= kShown ? text : text.substr(0, kShown) + "...");
}

std::optional<std::int64_t> one_index(const std::string& text) {
  const auto index = IndexSet::parse(text, IndexSet::kMost);
  return index && index->size() == 1 ? index->next(0, {}) : std::nullopt;
}

}  // namespace

std::string unreadable_indexes(const JsonView& spec) {
  std::string found = unreadable(spec, "spec");
  for (const JsonView stage : at(spec, "stages")) {
    const std::string one = unreadable(stage, "stage " + string_at(stage, "name"));
    if (!one.empty()) found += (found.empty() ? "" : ", ") + one;
  }
  return found;
}

IndexSet decode_ended_indexes(const std::string& text, std::int64_t limit) {
  if (const auto whole = IndexSet::parse(text, limit - 1)) return *whole;
  IndexSet indexes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, comma - begin);
    begin = comma + 1;
    const std::size_t dash = std::min(part.find('-'), part.size());
    const auto first = one_index(part.substr(0, dash));
    const auto last = dash == part.size() ? first : one_index(part.substr(dash + 1));
    if (!first || !last) continue;
    const std::int64_t begin_at = std::min(*first, *last);
    const std::int64_t end = std::min(std::max(*first, *last), limit - 1);
    const std::string range = std::to_string(begin_at) + "-" + std::to_string(end);
    const auto in_order = begin_at == end ? std::to_string(end) : range;
    if (const auto one = IndexSet::parse(in_order, limit - 1)) indexes.add(*one);
  }
  return indexes;
}

}  // namespace holdfast::codecs
