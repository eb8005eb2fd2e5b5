#include "reconciler/index_set.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

namespace holdfast::reconciler {
namespace {

// Digits alone.
std::optional<std::int64_t> number(std::string_view text, std::int64_t most) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || text.front() == '-' || value > most) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::optional<IndexSet> IndexSet::parse(const std::string& text, std::int64_t most) {
  IndexSet set;
  std::int64_t least = 0;  // the next interval begins here or later
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = number(part.substr(0, dash), most);
    const auto last = dash == part.npos ? first : number(part.substr(dash + 1), most);
    if (!first || !last || *first < least || *last < *first) return std::nullopt;
    set.add(*first, *last);
    least = *last + 1;
    if (comma == rest.npos) return set;
    rest.remove_prefix(comma + 1);
    if (rest.empty()) return std::nullopt;
  }
  return set;
}

IndexSet IndexSet::first(std::int64_t count) {
  IndexSet set;
  if (count > 0) set.add(0, count - 1);
  return set;
}

std::string IndexSet::text() const {
  std::string text;
  for (const auto& [first, last] : intervals_) {
    if (!text.empty()) text += ',';
    text += std::to_string(first);
    if (last > first) text += (last == first + 1 ? ',' : '-') + std::to_string(last);
  }
  return text;
}

void IndexSet::add(std::int64_t index) { add(index, index); }

void IndexSet::add(const IndexSet& other) {
  for (const auto& [first, last] : other.intervals_) add(first, last);
}

void IndexSet::add(std::int64_t first, std::int64_t last) {
  // All intervals that the new one touches become one with it.
  auto at = intervals_.upper_bound(first);
  if (at != intervals_.begin() && std::prev(at)->second + 1 >= first) --at;
  while (at != intervals_.end() && at->first <= last + 1) {
    first = std::min(first, at->first);
    last = std::max(last, at->second);
    size_ -= at->second - at->first + 1;
    at = intervals_.erase(at);
  }
  intervals_.emplace_hint(at, first, last);
  size_ += last - first + 1;
}

std::optional<std::int64_t> IndexSet::end_of(std::int64_t index) const {
  const auto after = intervals_.upper_bound(index);
  if (after == intervals_.begin()) return std::nullopt;
  const std::int64_t last = std::prev(after)->second;
  return last >= index ? std::optional(last) : std::nullopt;
}

bool IndexSet::contains(std::int64_t index) const { return end_of(index).has_value(); }

bool IndexSet::includes(const IndexSet& other) const {
  if (other.size_ > size_) return false;
  return std::all_of(other.intervals_.begin(), other.intervals_.end(), [&](const auto& interval) {
    return end_of(interval.first).value_or(-1) >= interval.second;
  });
}

std::int64_t IndexSet::common(const IndexSet& other) const {
  const bool fewer = intervals_.size() <= other.intervals_.size();
  const auto& few = fewer ? intervals_ : other.intervals_;
  const auto& many = fewer ? other.intervals_ : intervals_;
  std::int64_t count = 0;
  for (const auto& [first, last] : few) {
    auto at = many.upper_bound(first);
    if (at != many.begin() && std::prev(at)->second >= first) --at;
    for (; at != many.end() && at->first <= last; ++at) {
      count += std::min(last, at->second) - std::max(first, at->first) + 1;
    }
  }
  return count;
}

std::optional<std::int64_t> IndexSet::next(std::int64_t from, const IndexSet& without) const {
  std::int64_t index = from;
  while (true) {
    if (!contains(index)) {
      const auto later = intervals_.upper_bound(index);
      if (later == intervals_.end()) return std::nullopt;
      index = later->first;
    }
    const auto taken = without.end_of(index);
    if (!taken) return index;
    index = *taken + 1;
  }
}

}  // namespace holdfast::reconciler
