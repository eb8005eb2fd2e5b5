#include "tests/unit/reconciler/rules_outbox.h"

#include <algorithm>
#include <set>
#include <vector>

#include "tests/unit/reconciler/rules.h"

namespace holdfast::reconciler::testing {
namespace {

const OutboxEntry* entry_of(const Status& status, std::int64_t number) {
  const auto found = std::find_if(status.outbox.begin(), status.outbox.end(),
                                  [&](const OutboxEntry& one) { return one.number == number; });
  return found == status.outbox.end() ? nullptr : &*found;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Expected {
  NotifyEvent event;
  std::string stage;
};

std::vector<Expected> expected_events(const Status& old, const Status& next) {
  std::vector<Expected> events;
  for (std::size_t position = 0; position < next.stages.size(); ++position) {
    const StagePhase phase = next.stages[position].phase;
    const bool ran = phase == StagePhase::kSucceeded || phase == StagePhase::kFailed;
    if (ran && !has_ended(old.stages[position].phase)) {
      events.push_back({NotifyEvent::kStageEnded, next.stages[position].name});
    }
  }
  if (!is_terminal(old.phase)) {
    if (next.phase == Phase::kSucceeded) events.push_back({NotifyEvent::kSucceeded, ""});
    if (next.phase == Phase::kFailed) events.push_back({NotifyEvent::kFailed, ""});
    if (next.phase == Phase::kCancelled) events.push_back({NotifyEvent::kCancelled, ""});
    if (!is_terminal(next.phase) && is_true(next, "Stalled") && !is_true(old, "Stalled")) {
      events.push_back({NotifyEvent::kStalled, ""});
    }
  }
  return events;
}

TargetView target_of(const JobView& view, const std::string& name) {
  const auto found = view.observed.notify.targets.find(name);
  return found == view.observed.notify.targets.end() ? TargetView() : found->second;
}

// The target has had it, or gets it no more.
bool may_leave(const JobView& view, const OutboxEntry& entry, const std::string& name, Time now) {
  if (target_of(view, name).state != TargetView::State::kKnown) {
    return now - entry.time >= std::chrono::minutes(10);
  }
  const auto& deliveries = view.observed.notify.deliveries;
  const bool tried = std::any_of(
      deliveries.begin(), deliveries.end(),
      [&](const DeliveryView& one) { return one.number == entry.number && one.target == name; });
  if (!tried) return now - entry.time >= std::chrono::hours(78);
  return std::any_of(deliveries.begin(), deliveries.end(), [&](const DeliveryView& one) {
    if (one.number != entry.number || one.target != name) return false;
    return one.result != DeliveryView::Result::kFailing ||
           now - entry.time >= std::chrono::hours(72);
  });
}

}  // namespace

std::string refused_outbox(const Status& old, const Status& next) {
  if (next.notifications < old.notifications) return "notifications falls";
  if (next.outbox.size() > 32) return "the outbox is too long";
  if (is_terminal(old.phase) && next.notifications != old.notifications) {
    return "S1: something happens to a job that has ended";
  }
  std::set<std::int64_t> numbers;
  for (const OutboxEntry& entry : next.outbox) {
    if (!numbers.insert(entry.number).second) return "two events have one number";
    if (entry.number > next.notifications) return "an event has a number above notifications";
    if (entry.targets.empty() || entry.targets.size() > 4) return "an event without targets";
    if (entry.reason.size() > 256 || entry.message.size() > 256) return "an event's text is long";
    const OutboxEntry* const was = entry_of(old, entry.number);
    if (!was && entry.number <= old.notifications) return "an event comes back";
    if (!was) continue;
    OutboxEntry same = *was;
    same.targets = entry.targets;
    if (!(same == entry)) return "an event changes";
    for (const std::string& name : entry.targets) {
      if (!has(was->targets, name)) return "an event gets another target";
    }
  }
  return "";
}

std::string outbox_trouble(const JobView& view, const Status& next, Time now) {
  const Status& old = view.job.status;
  constexpr std::int64_t kLastNumber = 2'147'483'648;
  if (old.notifications >= kLastNumber) return "";
  std::set<std::int64_t> used;
  std::size_t wanted = 0;
  std::string missing;
  for (const Expected& expected : expected_events(old, next)) {
    std::vector<std::string> targets;
    for (const std::string& name : view.job.notify) {
      if (target_of(view, name).wants(expected.event)) targets.push_back(name);
    }
    if (targets.empty()) continue;
    ++wanted;
    const auto found =
        std::find_if(next.outbox.begin(), next.outbox.end(), [&](const OutboxEntry& one) {
          return one.number > old.notifications && one.event == expected.event &&
                 one.stage == expected.stage && one.targets == targets && !used.count(one.number);
        });
    if (found != next.outbox.end()) {
      used.insert(found->number);
    } else if (next.outbox.size() < 32 || expected.stage.empty()) {
      missing = std::string("S23 Told: ") + to_string(expected.event) + " is not in the outbox";
    }
  }
  if (!missing.empty()) return missing;
  if (next.notifications != old.notifications + static_cast<std::int64_t>(wanted)) {
    return "S23 Told: notifications does not count the events";
  }
  for (const OutboxEntry& entry : old.outbox) {
    const OutboxEntry* const now_there = entry_of(next, entry.number);
    if (!now_there && next.outbox.size() == 32) continue;  // it made room
    for (const std::string& name : entry.targets) {
      const bool left = !now_there || !has(now_there->targets, name);
      if (left && !may_leave(view, entry, name, now)) {
        return "S23 Told: " + name + " has not taken event " + std::to_string(entry.number) +
               ", which leaves the outbox";
      }
    }
  }
  return "";
}

}  // namespace holdfast::reconciler::testing
