#include "plugin/ui/job_table.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

namespace holdfast::plugin {
namespace {

constexpr std::size_t kSome = 20;

constexpr std::array kSorts = {
    std::pair{JobSort::kWorst, "worst"}, std::pair{JobSort::kName, "name"},
    std::pair{JobSort::kPhase, "phase"}, std::pair{JobSort::kReason, "reason"},
    std::pair{JobSort::kQueue, "queue"}, std::pair{JobSort::kPlace, "node"},
    std::pair{JobSort::kAge, "age"},     std::pair{JobSort::kSince, "since"}};

// What a row is sorted by: texts, then times, then its name. The row outlives it.
struct SortKey {
  int rank = 0;
  std::string_view text;
  std::int64_t time = 0;
  const JobRowPtr* row = nullptr;

  bool operator<(const SortKey& other) const {
    const auto key = [](const SortKey& one) {
      return std::tie(one.rank, one.text, one.time, (*one.row)->namespace_, (*one.row)->name);
    };
    return key(*this) < key(other);
  }
};

constexpr std::int64_t kNoTime = INT64_MAX;

// Those without a time come last.
std::int64_t oldest_first(const std::optional<Time>& time) {
  return time ? time->time_since_epoch().count() : kNoTime;
}

SortKey key_of(const JobRowPtr& row, JobSort sort, Time now) {
  SortKey key;
  key.row = &row;
  switch (sort) {
    case JobSort::kWorst:
      key.rank = static_cast<int>(rank_of(*row, now));
      // Of ended jobs, what has ended last comes first.
      key.time = oldest_first(row->since);
      if (row->has_ended() && row->since) key.time = -key.time;
      break;
    case JobSort::kName:
      break;
    case JobSort::kPhase:
      key.text = row->phase.get();
      break;
    case JobSort::kReason:
      key.text = row->waiting.get();
      break;
    case JobSort::kQueue:
      key.text = row->queue.get();
      break;
    case JobSort::kPlace:
      key.text = row->place;
      break;
    case JobSort::kAge:
      key.time = oldest_first(row->created);
      break;
    case JobSort::kSince:
      key.time = oldest_first(row->since);
      break;
  }
  return key;
}

bool needs_person(Rank rank) {
  return rank == Rank::kStalled || rank == Rank::kLate || rank == Rank::kFailed;
}

void take_first(const std::optional<Time>& time, std::optional<Time>& first) {
  if (time && (!first || *time < *first)) first = time;
}

}  // namespace

std::optional<JobSort> parse_job_sort(std::string_view text) {
  for (const auto& [sort, name] : kSorts) {
    if (text == name) return sort;
  }
  return std::nullopt;
}

void JobTable::drop(const std::string& key) {
  const auto row = rows_.find(key);
  if (row == rows_.end()) return;
  const auto count = phases_.find(row->second->phase);
  if (count != phases_.end() && --count->second == 0) phases_.erase(count);
  rows_.erase(row);
}

void JobTable::begin(const std::vector<JobRowPtr>& rows) {
  for (const JobRowPtr& row : rows) put(nullptr, row);
  MutexLock lock(mutex_);
  for (const JobRowPtr& row : rows) early_.insert(row->key());
}

void JobTable::settle() {
  MutexLock lock(mutex_);
  for (const std::string& key : early_) drop(key);
  early_.clear();
  ++changes_;
}

void JobTable::put(const JobRowPtr& before, const JobRowPtr& after) {
  if (!before && !after) return;
  MutexLock lock(mutex_);
  ++changes_;
  const std::string key = after ? after->key() : before->key();
  early_.erase(key);
  drop(key);
  if (!after) return;
  ++phases_[after->phase];
  rows_[key] = after;
}

std::uint64_t JobTable::changes() const {
  MutexLock lock(mutex_);
  return changes_;
}

std::size_t JobTable::size() const {
  MutexLock lock(mutex_);
  return rows_.size();
}

std::map<std::string, std::size_t> JobTable::phases() const {
  MutexLock lock(mutex_);
  return phases_;
}

JobRowPtr JobTable::find(const std::string& namespace_, const std::string& name) const {
  MutexLock lock(mutex_);
  const auto found = rows_.find(namespace_ + "/" + name);
  return found == rows_.end() ? nullptr : found->second;
}

std::vector<JobRowPtr> JobTable::all() const {
  MutexLock lock(mutex_);
  std::vector<JobRowPtr> all;
  all.reserve(rows_.size());
  for (const auto& [key, row] : rows_) all.push_back(row);
  return all;
}

JobView JobTable::view(const JobQuery& query, Time now) const {
  const std::vector<JobRowPtr> rows = all();
  std::vector<SortKey> keys;
  for (const JobRowPtr& row : rows) {
    if (holds(query.filter, *row, now)) keys.push_back(key_of(row, query.sort, now));
  }
  JobView view;
  view.matching = keys.size();
  const std::size_t first = std::min(query.offset, keys.size());
  const std::size_t end = std::min(first + query.limit, keys.size());
  const auto before = [&](const SortKey& a, const SortKey& b) {
    // What has none comes last in either order.
    const bool a_misses = a.time == kNoTime;
    const bool b_misses = b.time == kNoTime;
    if (a_misses != b_misses) return b_misses;
    return query.reverse ? b < a : a < b;
  };
  std::partial_sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(end), keys.end(),
                    before);
  for (std::size_t i = first; i < end; ++i) view.rows.push_back(*keys[i].row);
  return view;
}

JobTable::Groups JobTable::grouped(const std::function<std::string(const JobRow&)>& group,
                                   Time now) const {
  constexpr std::size_t kMost = 100;
  const std::vector<JobRowPtr> everything = all();
  std::map<std::string, std::vector<SortKey>> keys;
  for (const JobRowPtr& row : everything) {
    const std::string name = group(*row);
    if (!name.empty()) keys[name].push_back(key_of(row, JobSort::kWorst, now));
  }
  Groups groups;
  for (auto& [name, some] : keys) {
    const auto end = some.begin() + static_cast<std::ptrdiff_t>(std::min(some.size(), kMost));
    std::partial_sort(some.begin(), end, some.end());
    for (auto key = some.begin(); key != end; ++key) groups[name].push_back(*key->row);
  }
  return groups;
}

std::vector<Cause> JobTable::causes(Time now) const {
  const std::vector<JobRowPtr> everything = all();
  std::map<std::pair<Rank, std::string_view>, std::vector<SortKey>> groups;
  for (const JobRowPtr& row : everything) {
    const Rank rank = rank_of(*row, now);
    if (!needs_person(rank)) continue;
    // What needs a person may be another thing than what it waits for.
    const bool is_other = rank == Rank::kStalled && !row->stalled_by.empty();
    const std::string& reason = is_other ? row->stalled_by.get() : row->waiting.get();
    groups[{rank, reason}].push_back(key_of(row, JobSort::kWorst, now));
  }
  std::vector<Cause> causes;
  for (auto& [group, keys] : groups) {
    Cause cause{std::string(group.second), group.first, keys.size(), {}, {}, {}};
    for (const SortKey& key : keys) {
      take_first((*key.row)->since, cause.oldest);
      take_first((*key.row)->deadline, cause.deadline);
    }
    const auto end = keys.begin() + static_cast<std::ptrdiff_t>(std::min(keys.size(), kSome));
    std::partial_sort(keys.begin(), end, keys.end());
    for (auto key = keys.begin(); key != end; ++key) cause.some.push_back(*key->row);
    causes.push_back(std::move(cause));
  }
  return causes;
}

}  // namespace holdfast::plugin
