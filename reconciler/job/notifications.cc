#include "reconciler/job/notifications.h"

#include <algorithm>
#include <utility>

#include "core/utf8.h"
#include "reconciler/job/conditions.h"
#include "reconciler/job/edges.h"

namespace holdfast::reconciler {
namespace {

constexpr const char* kCondition = "NotificationFailed";
// Reasons of the condition. After a loss it stays.
constexpr const char* kNotDelivered = "NotDelivered";
constexpr const char* kOutboxFull = "OutboxFull";
constexpr const char* kTargetUnknown = "TargetUnknown";
constexpr const char* kTargetForbidden = "TargetForbidden";

const TargetView& target_of(const Context& context, const std::string& name) {
  static const TargetView kUnknown;
  const auto& targets = context.view.observed.notify.targets;
  const auto found = targets.find(name);
  return found == targets.end() ? kUnknown : found->second;
}

const DeliveryView* delivery_of(const Context& context, std::int64_t number,
                                const std::string& target) {
  const auto& all = context.view.observed.notify.deliveries;
  const auto found = std::find_if(all.begin(), all.end(), [&](const DeliveryView& one) {
    return one.number == number && one.target == target;
  });
  return found == all.end() ? nullptr : &*found;
}

std::string short_text(std::string text) {
  if (text.size() <= kNotifyTextLimit) return text;
  return utf8_prefix(std::move(text), kNotifyTextLimit - 3) + "...";
}

std::string why_unusable(const TargetView& target, const std::string& name) {
  return target.state == TargetView::State::kForbidden
             ? "the job's namespace may not use the target " + name
             : "the operator's configuration has no target " + name;
}

void report_loss(const Context& context, const char* reason, const std::string& message,
                 WriteStatus& write) {
  set_condition(write.status, kCondition, true, reason, message, context.now);
  write.events.push_back(Event{true, kCondition, "Notify", message});
}

// Null: the status says neither that a target is not known, nor that an event was lost.
const Condition* reported_trouble(const Status& status) {
  const Condition* const reported = status.condition(kCondition);
  return reported && reported->status ? reported : nullptr;
}

bool says_loss(const Condition& reported) {
  return reported.reason == kNotDelivered || reported.reason == kOutboxFull;
}

// Until then an event waits for a target that is not known. Both times stand in the status, so no
// process has to live for long. None: the status has to say first that the target is not known. So
// whoever has removed a target by mistake has the same time for each event, however old.
std::optional<Time> unknown_until(const Context& context, const OutboxEntry& entry) {
  const Condition* const reported = reported_trouble(context.job.status);
  if (!reported) return std::nullopt;
  if (!says_loss(*reported)) {
    return std::max(entry.time, reported->last_transition_time) + kUnknownTargetFor;
  }
  // A loss keeps the condition, so no status says since when the target is not known.
  const Time seen = context.now + (kUnknownTargetFor - context.view.observed.live_for);
  return std::min(std::max(entry.time + kUnknownTargetFor, seen), entry.time + kNotifyAtMost);
}

// Until then an event waits for its first try. A process that is new has tried nothing: it gets
// some time for that, but not for ever.
Time untried_until(const Context& context, const OutboxEntry& entry) {
  const Time tried = context.now + (kFirstTryWithin - context.view.observed.live_for);
  return std::min(std::max(entry.time + kNotifyAtMost, tried), entry.time + 2 * kNotifyAtMost);
}

// Why this target gets the event no more; none: it may still get it.
std::optional<std::string> why_given_up(const Context& context, const OutboxEntry& entry,
                                        const std::string& name) {
  const TargetView& target = target_of(context, name);
  const DeliveryView* const delivery = delivery_of(context, entry.number, name);
  if (target.state != TargetView::State::kKnown) {
    const std::optional<Time> until = unknown_until(context, entry);
    if (!until || context.now < *until) return std::nullopt;
    return why_unusable(target, name);
  }
  if (!delivery) {
    if (context.now < untried_until(context, entry)) return std::nullopt;
    return "its turn did not come in time";
  }
  if (delivery->result == DeliveryView::Result::kTaken) return std::nullopt;
  const bool is_over = notifies_no_longer(context.now - entry.time);
  if (delivery->result == DeliveryView::Result::kFailing && !is_over) return std::nullopt;
  return delivery->why;
}

std::string named(const OutboxEntry& entry) {
  const std::string number = "event " + std::to_string(entry.number);
  if (!entry.unknown.empty()) return number + ", which this version does not know";
  return std::string(to_string(entry.event)) + " (" + number + ")";
}

// Takes out what has been taken, and what is given up.
void settle(const Context& context, WriteStatus& write) {
  for (OutboxEntry& entry : write.status.outbox) {
    std::erase_if(entry.targets, [&](const std::string& name) {
      const DeliveryView* const delivery = delivery_of(context, entry.number, name);
      if (delivery && delivery->result == DeliveryView::Result::kTaken) return true;
      const auto why = why_given_up(context, entry, name);
      if (!why) return false;
      report_loss(context, kNotDelivered,
                  "the target " + name + " did not take " + named(entry) + ": " + *why, write);
      write.dropped_for.push_back(name);
      return true;
    });
  }
  std::erase_if(write.status.outbox, [](const OutboxEntry& one) { return one.targets.empty(); });
}

// A job has one last event, and it always finds room: the others are dropped for it, the oldest
// first, and ends of stages before the rest.
void make_room(const Context& context, WriteStatus& write) {
  auto& outbox = write.status.outbox;
  while (outbox.size() > kOutboxLimit) {
    auto oldest = std::find_if(outbox.begin(), outbox.end(), [](const OutboxEntry& one) {
      return one.event == NotifyEvent::kStageEnded && one.unknown.empty();
    });
    if (oldest == outbox.end()) oldest = outbox.begin();
    report_loss(context, kOutboxFull,
                "the outbox is full: " + named(*oldest) + " was dropped before its targets took it",
                write);
    for (const std::string& name : oldest->targets) write.dropped_for.push_back(name);
    outbox.erase(oldest);
  }
}

void put(const Context& context, OutboxEntry entry, Status& status) {
  for (const std::string& name : context.job.notify) {
    if (target_of(context, name).wants(entry.event)) entry.targets.push_back(name);
  }
  if (entry.targets.empty() || status.notifications >= kCountLimit) return;
  entry.number = ++status.notifications;
  entry.time = std::chrono::floor<seconds>(context.now);
  entry.reason = short_text(std::move(entry.reason));
  entry.message = short_text(std::move(entry.message));
  status.outbox.push_back(std::move(entry));
}

OutboxEntry entry_of(NotifyEvent event, const Condition* condition) {
  OutboxEntry entry;
  entry.event = event;
  if (condition) {
    entry.reason = condition->reason;
    entry.message = condition->message;
  }
  return entry;
}

void put_stage_ends(const Context& context, Status& status) {
  const auto& before = context.job.status.stages;
  for (std::size_t position = 0; position < before.size() && position < status.stages.size();
       ++position) {
    const StageStatus& stage = status.stages[position];
    const bool has_run =
        stage.phase == StagePhase::kSucceeded || stage.phase == StagePhase::kFailed;
    if (!has_run || has_ended(before[position].phase)) continue;
    OutboxEntry entry;
    entry.event = NotifyEvent::kStageEnded;
    entry.stage = stage.name;
    entry.reason = to_string(stage.phase);
    entry.message = stage.message;
    put(context, std::move(entry), status);
  }
}

void put_events(const Context& context, Status& status) {
  const Status& before = context.job.status;
  put_stage_ends(context, status);
  if (is_terminal(status.phase)) {
    if (is_terminal(before.phase)) return;
    const bool failed = status.phase == Phase::kFailed;
    const bool succeeded = status.phase == Phase::kSucceeded;
    const NotifyEvent event = succeeded ? NotifyEvent::kSucceeded
                              : failed  ? NotifyEvent::kFailed
                                        : NotifyEvent::kCancelled;
    const char* const condition = succeeded ? "Complete" : failed ? "Failed" : "Cancelled";
    put(context, entry_of(event, status.condition(condition)), status);
  } else if (status.holds("Stalled") && !before.holds("Stalled")) {
    put(context, entry_of(NotifyEvent::kStalled, status.condition("Stalled")), status);
  }
}

// The names in spec.notify, and those that an event still waits for.
std::vector<std::string> names_in_use(const Context& context, const Status& status) {
  std::vector<std::string> names = context.job.notify;
  for (const OutboxEntry& entry : status.outbox) {
    names.insert(names.end(), entry.targets.begin(), entry.targets.end());
  }
  return names;
}

bool is_unusable(const Context& context, const std::string& name) {
  return target_of(context, name).state != TargetView::State::kKnown;
}

// A name that reaches nobody is shown from the first write on.
void report_targets(const Context& context, Status& status) {
  const Condition* const reported = reported_trouble(status);
  if (reported && says_loss(*reported)) return;
  for (const std::string& name : names_in_use(context, status)) {
    if (!is_unusable(context, name)) continue;
    const TargetView& target = target_of(context, name);
    const bool forbidden = target.state == TargetView::State::kForbidden;
    set_condition(status, kCondition, true, forbidden ? kTargetForbidden : kTargetUnknown,
                  why_unusable(target, name) + "; its events are dropped after 10 minutes",
                  context.now);
    return;
  }
  clear_condition(status, kCondition, "TargetsKnown", context.now);
}

}  // namespace

void keep_outbox(const Context& context, WriteStatus& write) {
  // A name that was wrong may have been taken out.
  const Condition* const reported = reported_trouble(context.job.status);
  const bool is_settled = !reported || says_loss(*reported);
  if (context.job.notify.empty() && context.job.status.outbox.empty() && is_settled) return;
  settle(context, write);
  put_events(context, write.status);
  make_room(context, write);
  report_targets(context, write.status);
}

void decide_outbox(const Context& context, Plan& plan) {
  const Status& before = context.job.status;
  if (before.outbox.empty()) return;
  const auto& writes = plan.decision().writes;
  const bool writes_status = std::any_of(writes.begin(), writes.end(), [](const Write& write) {
    return std::holds_alternative<WriteStatus>(write);
  });
  if (writes_status) return;
  WriteStatus write = start_write(context);
  WriteStatus settled = write;
  settle(context, settled);
  // Plan::write() settles it, too.
  const std::vector<std::string> names = names_in_use(context, before);
  const bool is_unreported = !reported_trouble(before) &&
                             std::any_of(names.begin(), names.end(), [&](const std::string& name) {
                               return is_unusable(context, name);
                             });
  if (is_unreported || settled.status.outbox != before.outbox) {
    return plan.write_in_turn(std::move(write));
  }
  for (const OutboxEntry& entry : before.outbox) {
    for (const std::string& name : entry.targets) {
      const Time over = is_unusable(context, name)
                            ? unknown_until(context, entry).value_or(context.now)
                            : entry.time + kNotifyFor;
      // After that time each failure of a known target is an event.
      if (over > context.now) {
        plan.wake_at(over);
      } else if (!delivery_of(context, entry.number, name)) {
        plan.wake_at(untried_until(context, entry));
      }
    }
  }
}

namespace {

// After its deletion nothing holds a job for longer.
constexpr seconds kHeldAtMost = std::chrono::hours(1);
// What holds a namespace that is being deleted looks broken to its owner.
constexpr seconds kHeldInGoingNamespace{60};
// Nothing reports that the namespace goes.
constexpr seconds kNamespaceLook{30};

}  // namespace

bool hold_for_outbox(const Context& context, Plan& plan) {
  const Job& job = context.job;
  const bool is_over = is_terminal(job.status.phase);
  if (!job.holds_outbox || (!is_over && !job.deleting)) return false;
  const bool may_lose_rights = context.view.observed.may_lose_rights;
  bool goes = !is_over || may_lose_rights || job.status.outbox.empty();
  if (!goes && job.deleting) {
    const bool is_short = context.view.observed.namespace_goes;
    const Time until =
        job.deletion.value_or(context.now) + (is_short ? kHeldInGoingNamespace : kHeldAtMost);
    goes = context.now >= until;
    plan.wake_in(std::min<Duration>(until - context.now, kNamespaceLook));
  }
  if (goes) plan.decision().writes.emplace_back(ReleaseJob{});
  return !goes && job.deleting;
}

}  // namespace holdfast::reconciler
