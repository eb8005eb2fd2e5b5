// How long a job waits before its next attempt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// The delay before the next attempt, after n ends in a row (n >= 1) that spent one budget. It is
// min(initial * factor^(n-1), max), shortened by up to jitterPercent. The jitter depends only on
// the job's UID and the ended attempt, so that every replica computes the same.
Duration backoff_delay(const RetryBackoff& backoff, int n, const std::string& job_uid,
                       std::int64_t attempt);

// Between zero and nearly the whole duration. Depends only on `text`.
Duration part_of(Duration duration, const std::string& text);

// How many of the newest attempts of this run in a row spent this budget. History has only the last
// attempts of all runs. If it is full and shows no end of the row, `spent` counts: how many
// attempts of the run spent the budget at all.
std::int64_t ends_in_a_row(const std::vector<HistoryEntry>& history, std::int64_t index,
                           Budget budget, std::int64_t spent);

}  // namespace holdfast::reconciler
