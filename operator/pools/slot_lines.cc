#include "operator/pools/slot_lines.h"

#include <algorithm>
#include <utility>

namespace holdfast::pools {
namespace {

// Of two times, either of which may be missing.
template <class When>
std::optional<When> earlier(std::optional<When> one, std::optional<When> other) {
  return one && other ? std::min(one, other) : one ? one : other;
}

}  // namespace

void SlotLines::ask(const codecs::CachedJob& job, std::int64_t runs, std::int64_t runs_alone,
                    SteadyTime now) {
  any.ask(job.uid, job.name, job.job.created, runs, now);
  alone.ask(job.uid, job.name, job.job.created, runs_alone, now);
}

void SlotLines::leave(const std::string& job_uid) {
  any.leave(job_uid);
  alone.leave(job_uid);
}

std::optional<SteadyTime> SlotLines::since(const std::string& job_uid) const {
  return earlier(any.since(job_uid), alone.since(job_uid));
}

reconciler::TurnWait SlotLines::wait_of(const std::string& job_uid, SteadyTime now) const {
  const auto waits_since = since(job_uid);
  if (!waits_since) return {};
  return {now - *waits_since, now - std::max(last_turn.value_or(*waits_since), *waits_since)};
}

std::optional<Time> SlotLines::oldest() const { return earlier(any.oldest(), alone.oldest()); }

std::vector<std::string> SlotLines::names() const {
  std::vector<std::string> names = any.names();
  for (std::string& name : alone.names()) names.push_back(std::move(name));
  return names;
}

}  // namespace holdfast::pools
