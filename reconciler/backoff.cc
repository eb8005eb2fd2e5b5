#include "reconciler/backoff.h"

#include <algorithm>
#include <cmath>

#include "reconciler/names.h"

namespace holdfast::reconciler {
namespace {

// In [0, 1).
double unit_of(const std::string& text) {
  return static_cast<double>(hash64(text) >> 11) * 0x1.0p-53;
}

}  // namespace

Duration backoff_delay(const RetryBackoff& backoff, int n, const std::string& job_uid,
                       std::int64_t attempt) {
  const double max = static_cast<double>(backoff.max.count());
  const double grown =
      static_cast<double>(backoff.initial.count()) * std::pow(backoff.factor, n - 1);
  const double delay = std::min(grown, max);
  const double unit = unit_of(job_uid + "/" + std::to_string(attempt));
  const double shortened = delay * (1.0 - unit * backoff.jitter_percent / 100.0);
  return Duration(static_cast<std::int64_t>(shortened * 1e9));
}

Duration part_of(Duration duration, const std::string& text) {
  return Duration(static_cast<std::int64_t>(static_cast<double>(duration.count()) * unit_of(text)));
}

std::int64_t ends_in_a_row(const std::vector<HistoryEntry>& history, std::int64_t index,
                           Budget budget, std::int64_t spent) {
  std::int64_t count = 0;
  for (auto entry = history.rbegin(); entry != history.rend(); ++entry) {
    if (entry->index != index) continue;
    if (budget_of(entry->outcome) != budget) return count;
    ++count;
  }
  return history.size() < kHistoryLimit ? count : std::max(count, spent);
}

}  // namespace holdfast::reconciler
