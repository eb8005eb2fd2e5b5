#include "operator/pools/worker_slots.h"

#include <algorithm>

namespace holdfast::pools {
namespace {

bool has_id(const std::vector<AttemptId>& ids, const AttemptId& id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

}  // namespace

bool WorkerSlots::is_over(const AttemptId& id) const { return has_id(over, id); }
bool WorkerSlots::has_entry(const AttemptId& id) const { return has_id(entries, id); }

void WorkerSlots::set_leases(const reconciler::PoolView::Worker& its_offer, std::int64_t its_slots,
                             const Work& work, const WorkerReport& report) {
  there = true;
  offer = its_offer;
  slots = its_slots;
  entries.clear();
  for (const WorkEntry& entry : work.entries) entries.push_back(entry.id);
  over.clear();
  for (const Answer& answer : report.answers) {
    if (answer.kind != AnswerKind::kRunning) over.push_back(answer.id);
  }
}

// A slot is used until the worker has answered with an end, whatever is on record by then.
void WorkerSlots::recount() {
  used = attempts(/*all=*/false);
  alone = has_alone();
}

std::int64_t WorkerSlots::attempts(bool all) const {
  std::int64_t sum = 0;
  const auto add = [&](const AttemptId& id) { sum += all || !is_over(id) ? 1 : 0; };
  for (const AttemptId& id : entries) add(id);
  for (const auto& [id, place] : open) {
    if (!has_entry(id)) add(id);
  }
  for (const Promised& one : promised) {
    if (!has_entry(one.id) && open.count(one.id) == 0) add(one.id);
  }
  return sum;
}

// Also one whose end is on record, until the worker has answered.
bool WorkerSlots::has_alone() const {
  const auto is_alone = [&](const auto& place) {
    return place.second.alone && !is_over(place.first);
  };
  const auto still_there = [&](const auto& place) {
    return is_alone(place) && has_entry(place.first);
  };
  return std::any_of(open.begin(), open.end(), is_alone) ||
         std::any_of(closed.begin(), closed.end(), still_there) ||
         std::any_of(promised.begin(), promised.end(),
                     [](const Promised& one) { return one.alone; });
}

std::vector<reconciler::Placed> WorkerSlots::open_places() const {
  std::vector<reconciler::Placed> placed;
  for (const auto& [id, place] : open) placed.push_back({id, place.job_name, place.message});
  return placed;
}

std::string WorkerSlots::job_at(const AttemptId& id) const {
  for (const Places* const places : {&open, &closed}) {
    const auto found = places->find(id);
    if (found != places->end()) return found->second.job_name;
  }
  return "";
}

std::optional<Duration> WorkerSlots::waited(const AttemptId& id, SteadyTime now) const {
  const auto place = open.find(id);
  if (place == open.end()) return std::nullopt;
  return now - place->second.since;
}

std::chrono::seconds WorkerSlots::lease_duration() const {
  return recorded.count() > 0 ? recorded : kLongestDuration;
}

}  // namespace holdfast::pools
