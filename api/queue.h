// The spec and the status of a JobQueue. Plain values; field names and meanings are as in
// docs/api.md, rules as in docs/queues.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fields.h"
#include "api/limits.h"
#include "api/status.h"

namespace holdfast::api {

// So many jobs are admitted in a period on average, and at most so many at once.
struct Rate {
  std::int64_t jobs = 1;
  seconds period{60};
  bool operator==(const Rate&) const = default;
};
template <class Io, Is<Rate> X>
constexpr void fields(Io& io, X& rate) {
  io("jobs", rate.jobs, {.least = 1, .most = kCountLimit});
  io("periodSeconds", rate.period, {.least = 1, .most = 86'400});
}
static_assert(names_all<Rate>());

struct QueueSpec {
  std::optional<std::int64_t> concurrency;          // none: no limit
  std::optional<std::int64_t> concurrency_per_key;  // none: no limit
  std::optional<Rate> rate;
  bool hold = false;
  std::string unknown = {};  // as Job::unknown: such a queue admits no job

  bool admits() const { return !hold && unknown.empty(); }
};
template <class Io, Is<QueueSpec> X>
constexpr void fields(Io& io, X& spec) {
  io("concurrency", spec.concurrency, {.least = 1, .most = kCountLimit});
  io("concurrencyPerKey", spec.concurrency_per_key, {.least = 1, .most = kCountLimit});
  io("rate", spec.rate);
  io("hold", spec.hold);
  io.own(spec.unknown);
}
static_assert(names_all<QueueSpec>());

// The token bucket of the rate: so many tokens at that time, by the API server's clock.
struct Tokens {
  std::int64_t count = 0;
  Time time{};
  bool operator==(const Tokens&) const = default;
};
template <class Io, Is<Tokens> X>
constexpr void fields(Io& io, X& tokens) {
  io("tokens", tokens.count, {.required = true, .least = 0, .most = kCountLimit});
  io.by_codec("time", tokens.time);  // in microseconds
}
static_assert(names_all<Tokens>());

// A job that may start its next attempt, and the attempt that it had when it was admitted.
struct Admission {
  std::string uid;
  std::int64_t attempt = 0;
  bool operator==(const Admission&) const = default;
};
template <class Io, Is<Admission> X>
constexpr void fields(Io& io, X& admission) {
  io("uid", admission.uid, {.required = true});
  io("attempt", admission.attempt, {.required = true});
}
static_assert(names_all<Admission>());
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
template <class Io, Is<QueueStatus> X>
constexpr void fields(Io& io, X& status) {
  io("holderIdentity", status.holder, {.required = true});
  io("running", status.running, {.required = true});
  io("waiting", status.waiting, {.required = true});
  io("oldestWaitingSince", status.oldest_since);
  io("head", status.head);
  io("admitting", status.admitting);
  io.by_codec("rate", status.tokens);
  io("observedGeneration", status.observed_generation, {.required = true});
  io("conditions", status.conditions);
}
static_assert(names_all<QueueStatus>());

}  // namespace holdfast::api
