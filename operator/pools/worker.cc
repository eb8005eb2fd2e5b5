#include "operator/pools/worker.h"

#include <algorithm>

namespace holdfast::pools {
namespace {

const Answer* answer_of(const reconciler::WorkerView& view, const AttemptId& id) {
  const auto& answers = view.report.answers;
  const auto found = std::find_if(answers.begin(), answers.end(),
                                  [&](const Answer& answer) { return answer.id == id; });
  return found == answers.end() ? nullptr : &*found;
}

bool has_entry(const reconciler::WorkerView& view, const AttemptId& id) {
  return view.work && std::any_of(view.work->entries.begin(), view.work->entries.end(),
                                  [&](const WorkEntry& entry) { return entry.id == id; });
}

bool is_returned(const reconciler::WorkerView& view, const AttemptId& id) {
  const auto& answers = view.report.answers;
  return std::any_of(answers.begin(), answers.end(), [&](const Answer& answer) {
    return answer.kind == AnswerKind::kReturned && answer.id == id;
  });
}

bool is_clean(const Newest<CachedWorkerLease>& lease) {
  return lease->refused.empty() && lease->error.empty();
}

}  // namespace

bool Worker::is_readable() const { return lease && is_clean(lease) && work && is_clean(work); }

std::chrono::seconds Worker::duration() const {
  if (pod_history.agent_duration.count() > 0) return pod_history.agent_duration;
  std::chrono::seconds longest{0};
  for (const auto* const one : {&lease, &work}) {
    if (*one) longest = std::max(longest, (*one)->duration);
  }
  return longest.count() > 0 ? longest : std::chrono::seconds(reconciler::kMaxLeaseSeconds);
}

bool Worker::is_draining() const {
  return (work && work->work.draining) || (lease && lease->report.draining);
}

reconciler::WorkerState Worker::state() const {
  using State = reconciler::WorkerState;
  if (!lease) return pod && pod->worker.ended ? State::kCutOff : State::kStarting;
  if (!lease->refused.empty()) return State::kDraining;
  if (lease->is() == reconciler::WorkerIs::kCutOff) return State::kCutOff;
  if (lease->is() == reconciler::WorkerIs::kRevoked || is_draining()) return State::kDraining;
  return lease->renewed ? State::kLive : State::kStarting;
}

Duration Worker::idle_for(SteadyTime steady, Time now) const {
  if (!rest.since) return Duration::zero();
  const Duration seen = steady - *rest.since;
  if (rest.seen_otherwise || !work || !work->renewed) return seen;
  return std::max<Duration>(seen, now - *work->renewed);
}

// What cannot be read proves nothing: neither that an attempt has left, nor that it never began.
void Worker::set_view() {
  view = {};
  if (!lease) return;
  if (!lease->refused.empty()) {
    view.is = reconciler::WorkerIs::kRevoked;
    return;
  }
  view.is = lease->is();
  view.report = lease->report;
  view.cut_off_why = lease->cut_off_why;
  view.out_of_memory = lease->out_of_memory;
  if (!is_readable()) return;
  view.work = work->work;
  view.work_uid = work->uid;
}

void Worker::PodHistory::see(const CachedWorkerPod& shown, const CachedWorkerPod* known, Time now) {
  if (!known || known->placement != shown.placement) {
    if (sightings.placed) sightings.elsewhere = last_seen;
    sightings.placed = now;
  }
  last_seen = now;
  was_there = true;
  agent_duration = shown.lease_duration;
}

PlaceNews place_news(const reconciler::WorkerView& before, const reconciler::WorkerView& after) {
  PlaceNews news;
  const bool is_another =
      before.is != after.is || before.work.has_value() != after.work.has_value();
  news.of_closed = is_another;
  news.of_open = is_another || (before.work && before.work->draining != after.work->draining);
  if (is_another) return news;
  if (before.work) {
    for (const WorkEntry& entry : before.work->entries) {
      if (!has_entry(after, entry.id)) news.ids.push_back(entry.id);
    }
  }
  for (const Answer& now : after.report.answers) {
    const Answer* const then = answer_of(before, now.id);
    const bool is_same = then && then->kind == now.kind && then->message == now.message &&
                         then->checkpoint == now.checkpoint;
    if (!is_same) news.ids.push_back(now.id);
  }
  return news;
}

std::int64_t handed_back(const reconciler::WorkerView& before,
                         const reconciler::WorkerView& after) {
  const auto& answers = after.report.answers;
  return std::count_if(answers.begin(), answers.end(), [&](const Answer& answer) {
    return is_returned(after, answer.id) && !is_returned(before, answer.id);
  });
}

}  // namespace holdfast::pools
