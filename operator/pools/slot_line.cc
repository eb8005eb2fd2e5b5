#include "operator/pools/slot_line.h"

#include <algorithm>

namespace holdfast::controller {

void SlotLine::ask(const std::string& uid, const std::string& name, Time created,
                   std::int64_t wants, SteadyTime now) {
  if (wants <= 0) {
    leave(uid);
    return;
  }
  created_[uid] = created;
  const auto [found, added] = order_.try_emplace({created, uid});
  Asker& asker = found->second;
  wanted_ += wants - asker.wants;
  asker.wants = wants;
  if (!added) return;
  asker.name = name;
  asker.since = now;
}

void SlotLine::leave(const std::string& uid) {
  const auto created = created_.find(uid);
  if (created == created_.end()) return;
  const auto found = order_.find({created->second, uid});
  wanted_ -= found->second.wants;
  order_.erase(found);
  created_.erase(created);
}

std::int64_t SlotLine::wanted_before(const std::string& uid, Time created, std::int64_t limit,
                                     SteadyTime now) const {
  const Place place(created, uid);
  std::int64_t sum = 0;
  for (const auto& [before, asker] : order_) {
    if (sum >= limit || !(before < place)) break;
    if (!asker.is_late(now)) sum += asker.takes_at_once();
  }
  return std::min(sum, limit);
}

std::optional<std::int64_t> SlotLine::wants(const std::string& uid) const {
  const auto created = created_.find(uid);
  if (created == created_.end()) return std::nullopt;
  return order_.at({created->second, uid}).wants;
}

std::optional<SteadyTime> SlotLine::since(const std::string& uid) const {
  const auto created = created_.find(uid);
  if (created == created_.end()) return std::nullopt;
  return order_.at({created->second, uid}).since;
}

void SlotLine::looks(const std::string& uid) {
  const auto created = created_.find(uid);
  if (created != created_.end()) order_.at({created->second, uid}).woken.reset();
}

std::vector<std::string> SlotLine::wake(std::int64_t free, SteadyTime now) {
  std::vector<std::string> names;
  for (auto& [place, asker] : order_) {
    if (free <= 0) break;
    if (asker.is_late(now)) continue;
    free -= asker.takes_at_once();
    if (asker.woken) continue;
    asker.woken = now;
    names.push_back(asker.name);
  }
  return names;
}

std::vector<std::string> SlotLine::names() const {
  std::vector<std::string> names;
  for (const auto& [place, asker] : order_) names.push_back(asker.name);
  return names;
}

}  // namespace holdfast::controller
