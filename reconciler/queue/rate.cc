#include "reconciler/queue/rate.h"

#include <algorithm>

namespace holdfast::reconciler {
namespace {

using Micros = std::chrono::microseconds;

// Status has microseconds. Rounded up, so that the rate is never exceeded.
Micros per_token(const Rate& rate) {
  const Micros period = rate.period;
  return std::max(Micros(1), Micros((period.count() + rate.jobs - 1) / rate.jobs));
}

}  // namespace

Tokens refill(const std::optional<Tokens>& recorded, const Rate& rate, Time now) {
  const Time whole = std::chrono::floor<Micros>(now);
  if (!recorded) return {rate.jobs, whole};
  Tokens tokens = *recorded;
  tokens.count = std::clamp<std::int64_t>(tokens.count, 0, rate.jobs);
  tokens.time = std::min(tokens.time, whole);
  const std::int64_t fresh = (whole - tokens.time) / per_token(rate);
  if (fresh >= rate.jobs - tokens.count) return {rate.jobs, whole};
  tokens.count += fresh;
  tokens.time += fresh * per_token(rate);
  return tokens;
}

Time next_token(const Tokens& tokens, const Rate& rate) { return tokens.time + per_token(rate); }

}  // namespace holdfast::reconciler
