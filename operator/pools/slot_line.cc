#include "operator/pools/slot_line.h"

#include <algorithm>
#include <cassert>

#include "core/invariant.h"

namespace holdfast::pools {

SlotLine::Asker* SlotLine::find(const std::string& uid) {
  const auto created = created_.find(uid);
  return created == created_.end() ? nullptr : &order_.at({created->second, uid});
}

const SlotLine::Asker* SlotLine::find(const std::string& uid) const {
  const auto created = created_.find(uid);
  return created == created_.end() ? nullptr : &order_.at({created->second, uid});
}

void SlotLine::enter(const Place& place, Asker& asker) {
  if (asker.turn == Turn::kLate) return;
  Part& part = asker.turn == Turn::kWoken ? woken_ : waiting_;
  part.askers[place] = &asker;
  part.takes += asker.takes_at_once();
}

void SlotLine::leave_part(const Place& place, const Asker& asker) {
  if (asker.turn == Turn::kLate) return;
  Part& part = asker.turn == Turn::kWoken ? woken_ : waiting_;
  part.askers.erase(place);
  part.takes -= asker.takes_at_once();
}

void SlotLine::set_turn(const Place& place, Asker& asker, Turn turn) {
  leave_part(place, asker);
  asker.turn = turn;
  enter(place, asker);
}

void SlotLine::pass_turns(SteadyTime now) {
  while (!turns_.empty() && now - turns_.front().first >= kTurn) {
    const auto [woken, place] = std::move(turns_.front());
    turns_.pop_front();
    const auto found = order_.find(place);
    if (found == order_.end()) continue;
    Asker& asker = found->second;
    if (asker.turn == Turn::kWoken && asker.woken == woken) set_turn(place, asker, Turn::kLate);
  }
}

void SlotLine::ask(const std::string& uid, const std::string& name, Time created,
                   std::int64_t wants, SteadyTime now) {
  if (wants <= 0) {
    leave(uid);
    return;
  }
  created_[uid] = created;
  const Place place(created, uid);
  const auto [found, added] = order_.try_emplace(place);
  Asker& asker = found->second;
  if (!added) leave_part(place, asker);
  wanted_ += wants - asker.wants;
  asker.wants = wants;
  enter(place, asker);
  assert(is_sound());
  if (!added) return;
  asker.name = name;
  asker.since = now;
}

void SlotLine::leave(const std::string& uid) {
  const auto created = created_.find(uid);
  if (created == created_.end()) return;
  const auto found = order_.find({created->second, uid});
  leave_part(found->first, found->second);
  wanted_ -= found->second.wants;
  order_.erase(found);
  created_.erase(created);
  assert(is_sound());
}

std::int64_t SlotLine::wanted_before(const std::string& uid, Time created, std::int64_t limit,
                                     SteadyTime now) {
  pass_turns(now);
  const Place place(created, uid);
  std::int64_t sum = 0;
  for (const Part* const part : {&woken_, &waiting_}) {
    if (part->askers.empty() || sum >= limit) continue;
    // Mostly it is behind all of them, or one of the first.
    if (part->askers.rbegin()->first < place) {
      sum += part->takes;
      continue;
    }
    for (const auto& [before, asker] : part->askers) {
      if (sum >= limit || !(before < place)) break;
      sum += asker->takes_at_once();
    }
  }
  return std::min(sum, limit);
}

std::optional<std::int64_t> SlotLine::wants(const std::string& uid) const {
  const Asker* const asker = find(uid);
  return asker ? std::optional(asker->wants) : std::nullopt;
}

std::optional<SteadyTime> SlotLine::since(const std::string& uid) const {
  const Asker* const asker = find(uid);
  return asker ? std::optional(asker->since) : std::nullopt;
}

void SlotLine::looks(const std::string& uid) {
  Asker* const asker = find(uid);
  if (asker) set_turn({created_.at(uid), uid}, *asker, Turn::kNotYet);
  assert(is_sound());
}

std::vector<std::string> SlotLine::wake(std::int64_t free, SteadyTime now) {
  pass_turns(now);
  std::vector<std::string> names;
  auto woken = woken_.askers.begin();
  auto next = waiting_.askers.begin();
  // Nobody stands between those that were woken: what is left is for the others.
  const bool all_are_before = !woken_.askers.empty() && next != waiting_.askers.end() &&
                              woken_.askers.rbegin()->first < next->first;
  if (all_are_before) {
    free -= woken_.takes;
    woken = woken_.askers.end();
  }
  while (free > 0 && next != waiting_.askers.end()) {
    if (woken != woken_.askers.end() && woken->first < next->first) {
      free -= woken->second->takes_at_once();
      ++woken;
      continue;
    }
    const auto [place, asker] = *next;
    ++next;
    free -= asker->takes_at_once();
    set_turn(place, *asker, Turn::kWoken);
    asker->woken = now;
    turns_.emplace_back(now, place);
    names.push_back(asker->name);
  }
  assert(is_sound());
  return names;
}

void SlotLine::check() const {
  std::int64_t wanted = 0, takes = 0;
  std::size_t askers = 0;
  for (const auto& [place, asker] : order_) {
    const auto created = created_.find(place.second);
    invariant(created != created_.end() && created->second == place.first,
              "a job that waits is known by its UID");
    wanted += asker.wants;
    if (asker.turn == Turn::kLate) continue;
    const Part& part = asker.turn == Turn::kWoken ? woken_ : waiting_;
    const auto found = part.askers.find(place);
    invariant(found != part.askers.end() && found->second == &asker, "a job is in its part");
    takes += asker.takes_at_once();
    ++askers;
  }
  invariant(wanted == wanted_ && created_.size() == order_.size(), "the line is that of its jobs");
  invariant(takes == waiting_.takes + woken_.takes &&
                askers == waiting_.askers.size() + woken_.askers.size(),
            "the parts are those of their jobs");
}

bool SlotLine::is_sound() const {
  if (order_.size() <= kCheckedJobs) check();
  return true;
}

std::vector<std::string> SlotLine::names() const {
  std::vector<std::string> names;
  for (const auto& [place, asker] : order_) names.push_back(asker.name);
  return names;
}

}  // namespace holdfast::pools
