#include "reconciler/pool/start_failures.h"

#include <algorithm>

namespace holdfast::reconciler {
namespace {

bool contains(const std::vector<const PoolWorker*>& workers, const PoolWorker& worker) {
  return std::find(workers.begin(), workers.end(), &worker) != workers.end();
}

}  // namespace

bool has_older_template(const PoolState& state, const PoolWorker& worker) {
  return worker.pod.hash != state.hash && state.spec.unknown.empty();
}

Duration start_delay(std::int64_t failures) {
  Duration delay = kFirstStartDelay;
  for (; failures > 1 && delay < kLongestStartDelay; --failures) delay *= 2;
  return std::min(delay, kLongestStartDelay);
}

StartFailures::StartFailures(const PoolState& state) : state_(state), record_(state.status.starts) {
  const bool is_new_spec = state.status.observed_generation != state.generation;
  if (is_new_spec) record_ = {};
  // A clock that was wrong, or another writer.
  const Time latest = std::chrono::floor<seconds>(state.now + kLongestStartDelay);
  if (record_.next) record_.next = std::min(*record_.next, latest);
  recorded_ = record_.next;
  find();
  bool fails = state.refusal && !is_new_spec && !is_recorded(state.refusal->at);
  for (const PoolWorker* const worker : failing_) {
    fails = fails || !is_recorded(worker->pod.created);
  }
  if (!fails) return;
  record_.failed = std::clamp<std::int64_t>(record_.failed + 1, 1, kCountLimit);
  record_.next = std::chrono::floor<seconds>(state.now + start_delay(record_.failed));
}

void StartFailures::find() {
  const bool one_lasts = std::any_of(state_.workers.begin(), state_.workers.end(),
                                     [&](const PoolWorker& worker) { return lasts(worker); });
  const bool in_a_row = newest_ended() >= 2;
  for (const PoolWorker& worker : state_.workers) {
    if (has_older_template(state_, worker) || !has_failed(worker)) continue;
    const bool is_excused =
        worker.pod.ended && worker.served && one_lasts && !(in_a_row && is_newest(worker));
    (is_excused ? excused_ : failing_).push_back(&worker);
  }
}

bool StartFailures::has_failed(const PoolWorker& worker) const {
  const WorkerPod& pod = worker.pod;
  if (pod.deleting) return false;
  if (pod.ended) {
    if (worker.served && pod.out_of_memory && worker.attempts > 0) return false;
    return !worker.served || (pod.failed && worker.began() + kShortLife > state_.now);
  }
  return worker.state == WorkerState::kStarting &&
         (pod.cannot_start || worker.is_late(state_.spec.start_deadline, state_.now));
}

bool StartFailures::serves(const PoolWorker& worker) const {
  return !has_older_template(state_, worker) && !worker.pod.ended && !worker.pod.deleting &&
         worker.state == WorkerState::kLive;
}

bool StartFailures::lasts(const PoolWorker& worker) const {
  return serves(worker) && worker.began() + kShortLife <= state_.now;
}

// It was created after all that serve now.
bool StartFailures::is_newest(const PoolWorker& worker) const {
  return std::none_of(state_.workers.begin(), state_.workers.end(), [&](const PoolWorker& other) {
    return serves(other) && other.pod.created >= worker.pod.created;
  });
}

// How many of those served and ended soon after.
std::int64_t StartFailures::newest_ended() const {
  return std::count_if(state_.workers.begin(), state_.workers.end(), [&](const PoolWorker& worker) {
    const bool ended_soon = worker.served && has_failed(worker);
    return !has_older_template(state_, worker) && ended_soon && is_newest(worker);
  });
}

bool StartFailures::is_failing(const PoolWorker& worker) const {
  return contains(failing_, worker);
}

bool StartFailures::is_excused(const PoolWorker& worker) const {
  return contains(excused_, worker);
}

bool StartFailures::may_replace(const PoolWorker& worker) const {
  return recorded_ && worker.pod.created < *recorded_ && *recorded_ <= state_.now;
}

std::optional<Duration> StartFailures::pause() const {
  if (!record_.next || *record_.next <= state_.now) return std::nullopt;
  return *record_.next - state_.now;
}

StartRecord StartFailures::record(const std::vector<const PoolWorker*>& live, bool at_rest) const {
  if (!failing_.empty() || pause()) return record_;
  // A worker that was made after the last failure is live.
  const bool works = std::any_of(live.begin(), live.end(), [&](const PoolWorker* worker) {
    return !has_older_template(state_, *worker) && !is_recorded(worker->pod.created);
  });
  if (!at_rest && !works) return record_;
  // Without the next start an old refusal would count again.
  return {0, state_.refusal ? record_.next : std::nullopt};
}

}  // namespace holdfast::reconciler
