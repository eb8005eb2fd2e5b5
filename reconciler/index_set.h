// A set of run indexes, as intervals, and its text in batch/v1's form: "1,3-5,7".
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode
//
// Pure. Not thread-safe. Costs grow with the number of intervals, not of indexes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace holdfast::reconciler {

class IndexSet {
 public:
  // None: the text is not a list of indexes and intervals in rising order, from 0 to `most`.
  static std::optional<IndexSet> parse(const std::string& text, std::int64_t most);
  // The indexes 0 to count - 1.
  static IndexSet first(std::int64_t count);

  // Ascending and without gaps where possible; empty: "".
  std::string text() const;

  void add(std::int64_t index);
  void add(const IndexSet& other);
  bool contains(std::int64_t index) const;
  // True if each index of `other` is in this set.
  bool includes(const IndexSet& other) const;
  // How many indexes are in both sets.
  std::int64_t common(const IndexSet& other) const;
  std::int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  // The least index of the set that is `from` or more and not in `without`; none: there is none.
  std::optional<std::int64_t> next(std::int64_t from, const IndexSet& without) const;

  bool operator==(const IndexSet&) const = default;

 private:
  void add(std::int64_t first, std::int64_t last);
  // The last index of the interval that has `index`, or none.
  std::optional<std::int64_t> end_of(std::int64_t index) const;

  std::map<std::int64_t, std::int64_t> intervals_;  // first to last; neither touch nor overlap
  std::int64_t size_ = 0;
};

}  // namespace holdfast::reconciler
