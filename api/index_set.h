// A set of run indexes, as intervals, and its text in batch/v1's form: "1,3-5,7".
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
//
// Pure. Not thread-safe. Costs and memory (8 bytes each) grow with the number of intervals, not of
// indexes. To add at the end is cheap, to add in front of n intervals moves them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::api {

class IndexSet {
 public:
  // No index is larger. The schema allows 99,999.
  static constexpr std::int64_t kMost = 1'000'000'000;

  // `most` is at most kMost. None: the text is not a list of indexes and intervals in rising order,
  // from 0 to `most`.
  static std::optional<IndexSet> parse(const std::string& text, std::int64_t most);
  // The indexes 0 to count - 1.
  static IndexSet first(std::int64_t count);

  // Ascending and without gaps where possible; empty: "".
  std::string text() const;

  void add(std::int64_t index);
  void add(const IndexSet& other);
  // Without the indexes from `limit` on.
  void keep_below(std::int64_t limit);
  bool contains(std::int64_t index) const;
  // True if each index of `other` is in this set.
  bool includes(const IndexSet& other) const;
  // How many indexes are in both sets.
  std::int64_t common(const IndexSet& other) const;
  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The least index of the set that is `from` or more and not in `without`. No value: the set has
  // no such index.
  std::optional<std::int64_t> next(std::int64_t from, const IndexSet& without) const;

  bool operator==(const IndexSet&) const = default;

 private:
  struct Interval {
    std::uint32_t first;
    std::uint32_t last;
    bool operator==(const Interval&) const = default;
  };
  using Intervals = std::vector<Interval>;

  void add(Interval added);
  // The first interval that ends at `index` or later.
  Intervals::const_iterator ending_from(std::int64_t index) const;
  // The last index of the interval that has `index`, or none.
  std::optional<std::int64_t> end_of(std::int64_t index) const;

  Intervals intervals_;  // ascending; neither touch nor overlap
  std::int64_t size_ = 0;
};

}  // namespace holdfast::api
