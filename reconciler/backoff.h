// How long a job waits before its next attempt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// The delay before the next attempt after the n-th end in a row of one budget (n >= 1):
// initial * factor^(n-1), at most max, then shortened by up to jitterPercent. The jitter hangs on
// the job's UID and the ended attempt alone, so that every replica computes the same.
Duration backoff_delay(const RetryBackoff& backoff, int n, const std::string& job_uid,
                       std::int64_t attempt);

// A part of the duration, from none to nearly all of it, that hangs on this text alone.
Duration part_of(Duration duration, const std::string& text);

// How many of the newest entries spent this budget, counted until one that spent another or none.
// History is bounded, so growth ends after kHistoryLimit ends in a row.
int ends_in_a_row(const std::vector<HistoryEntry>& history, Budget budget);

}  // namespace holdfast::reconciler
