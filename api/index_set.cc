#include "api/index_set.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

namespace holdfast::api {
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
    set.add({static_cast<std::uint32_t>(*first), static_cast<std::uint32_t>(*last)});
    least = *last + 1;
    if (comma == rest.npos) return set;
    rest.remove_prefix(comma + 1);
    if (rest.empty()) return std::nullopt;
  }
  return set;
}

IndexSet IndexSet::first(std::int64_t count) {
  IndexSet set;
  if (count > 0) set.add({0, static_cast<std::uint32_t>(count - 1)});
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

void IndexSet::keep_below(std::int64_t limit) {
  while (!intervals_.empty() && intervals_.back().last >= limit) {
    Interval& last = intervals_.back();
    if (last.first < limit) {
      size_ -= last.last - (limit - 1);
      last.last = static_cast<std::uint32_t>(limit - 1);
      return;
    }
    size_ -= std::int64_t{last.last} - last.first + 1;
    intervals_.pop_back();
  }
}

void IndexSet::add(std::int64_t index) {
  add({static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index)});
}

void IndexSet::add(const IndexSet& other) {
  if (other.intervals_.size() < 2) {
    for (const Interval& interval : other.intervals_) add(interval);
    return;
  }
  // One pass over both: in the order of their starts, each is added at the end.
  Intervals both;
  both.reserve(intervals_.size() + other.intervals_.size());
  std::merge(intervals_.begin(), intervals_.end(), other.intervals_.begin(), other.intervals_.end(),
             std::back_inserter(both),
             [](const Interval& a, const Interval& b) { return a.first < b.first; });
  intervals_.clear();
  size_ = 0;
  for (const Interval& interval : both) add(interval);
}

// All intervals that the new one touches become one with it.
void IndexSet::add(Interval added) {
  const std::int64_t touched = std::int64_t{added.first} - 1;
  auto begin = intervals_.begin() + (ending_from(touched) - intervals_.cbegin());
  auto end = begin;
  for (; end != intervals_.end() && end->first <= std::int64_t{added.last} + 1; ++end) {
    added.first = std::min(added.first, end->first);
    added.last = std::max(added.last, end->last);
    size_ -= std::int64_t{end->last} - end->first + 1;
  }
  size_ += std::int64_t{added.last} - added.first + 1;
  if (begin == end) {
    intervals_.insert(begin, added);
  } else {
    *begin = added;
    intervals_.erase(begin + 1, end);
  }
}

IndexSet::Intervals::const_iterator IndexSet::ending_from(std::int64_t index) const {
  const auto ends_before = [](const Interval& interval, std::int64_t i) {
    return interval.last < i;
  };
  // Most are added at the end.
  if (intervals_.empty() || ends_before(intervals_.back(), index)) return intervals_.end();
  return std::lower_bound(intervals_.begin(), intervals_.end(), index, ends_before);
}

std::optional<std::int64_t> IndexSet::end_of(std::int64_t index) const {
  const auto found = ending_from(index);
  if (found == intervals_.end() || found->first > index) return std::nullopt;
  return found->last;
}

bool IndexSet::contains(std::int64_t index) const { return end_of(index).has_value(); }

bool IndexSet::includes(const IndexSet& other) const {
  if (other.size_ > size_) return false;
  return std::all_of(other.intervals_.begin(), other.intervals_.end(), [&](const auto& interval) {
    return end_of(interval.first).value_or(-1) >= interval.last;
  });
}

std::int64_t IndexSet::common(const IndexSet& other) const {
  const bool fewer = intervals_.size() <= other.intervals_.size();
  const Intervals& few = fewer ? intervals_ : other.intervals_;
  std::int64_t count = 0;
  const IndexSet& many = fewer ? other : *this;
  for (const auto& [first, last] : few) {
    for (auto at = many.ending_from(first); at != many.intervals_.end() && at->first <= last;
         ++at) {
      count += std::int64_t{std::min(last, at->last)} - std::max(first, at->first) + 1;
    }
  }
  return count;
}

std::optional<std::int64_t> IndexSet::next(std::int64_t from, const IndexSet& without) const {
  std::int64_t index = from;
  while (true) {
    const auto here = ending_from(index);
    if (here == intervals_.end()) return std::nullopt;
    index = std::max<std::int64_t>(index, here->first);
    const auto taken = without.end_of(index);
    if (!taken) return index;
    index = *taken + 1;
  }
}

}  // namespace holdfast::api
