// A JobQueue as the reconciler reads and writes it. Plain values; field names and meanings are as
// in docs/api.md, rules as in docs/queues.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler {

// So many jobs are admitted in a period on average, and at most so many at once.
struct Rate {
  std::int64_t jobs = 1;
  seconds period{60};
  bool operator==(const Rate&) const = default;
};

struct QueueSpec {
  std::optional<std::int64_t> concurrency;          // none: no limit
  std::optional<std::int64_t> concurrency_per_key;  // none: no limit
  std::optional<Rate> rate;
  bool hold = false;
  std::string unknown = {};  // as Job::unknown: such a queue admits no job

  bool admits() const { return !hold && unknown.empty(); }
};

// The token bucket of the rate: so many tokens at that time, by the API server's clock.
struct Tokens {
  std::int64_t count = 0;
  Time time{};
  bool operator==(const Tokens&) const = default;
};

// A job that may start its next attempt, and the attempt that it had when it was admitted.
struct Admission {
  std::string uid;
  std::int64_t attempt = 0;
  bool operator==(const Admission&) const = default;
};
// The limits of the CRD's schema.
inline constexpr std::size_t kAdmissionLimit = 500;
inline constexpr std::size_t kHeadLimit = 100;

struct QueueStatus {
  std::string holder;  // who counts: a replica and its tenure; empty: nobody has yet
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  std::optional<Time> oldest_since;
  std::vector<std::string> head;  // the names of the first waiting jobs
  std::vector<Admission> admitting;
  std::optional<Tokens> tokens;
  std::int64_t observed_generation = 0;
  std::vector<Condition> conditions;
  bool operator==(const QueueStatus&) const = default;
};

}  // namespace holdfast::reconciler
