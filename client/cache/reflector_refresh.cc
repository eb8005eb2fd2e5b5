// ReflectorMachine's check, after a refresh, that the store is as new as the server was.
#include <utility>

#include "client/cache/reflector_machine.h"

namespace holdfast::cache {

Actions ReflectorMachine::refresh(SteadyTime now) {
  Actions actions;
  if (state_ == State::kIdle) return actions;
  refresh_due_ = true;
  list_refreshes_ = false;
  last_event_ = now;
  // The watch may be dead although it seems open. A new one at the same version brings the missed
  // events.
  if (state_ == State::kWatching) {
    close_watch(actions);
    look(actions);
  } else if (state_ == State::kLooking) {
    look(actions);
  }
  return actions;
}

// After a list: with a look between where it began before the refresh.
void ReflectorMachine::go_on_watching(Actions& actions) {
  if (refresh_due_) {
    look(actions);
  } else {
    watch(actions);
  }
}

void ReflectorMachine::begin_check(Actions& actions) {
  if (!refresh_due_) return;
  if (version_ >= must_pass_) return settle_refresh();
  if (is_short_) return arm_check(Check::kPassing, kShortWatch + kShortWatchGrace, actions);
  const auto spread = static_cast<std::uint64_t>((kPassAtMost - kPassAtLeast).count());
  arm_check(Check::kPassing, kPassAtLeast + Duration(random_.below(spread)), actions);
}

// The server may have been set back while the short watch was open.
void ReflectorMachine::look_after_short_watch(Actions& actions) {
  look(actions);
  short_watch_due_ = false;  // another one would bring no bookmark either
}

void ReflectorMachine::arm_check(Check check, Duration delay, Actions& actions) {
  check_ = check;
  check_epoch_ = ++epochs_;
  actions.emplace_back(action::ArmTimer{check_epoch_, delay});
}

void ReflectorMachine::check_timer(SteadyTime now, Actions& actions) {
  if (check_ == Check::kComparing) {
    actions.emplace_back(action::Compare{check_epoch_, metadata_});
  } else if (is_short_) {
    close_watch(actions);
    look_after_short_watch(actions);
  } else if (check_ == Check::kPassing) {
    check_ = Check::kListing;
    last_event_ = now;
    actions.emplace_back(action::List{check_epoch_, list_query(Freshness::kConsistent, 0, "", 0),
                                      action::Wanted::kMetadata});
  }
}

void ReflectorMachine::check_listed(kube::ListPage&& metadata, SteadyTime now, Actions& actions) {
  check_ = Check::kComparing;
  comparing_since_ = now;
  metadata_ = std::make_shared<const kube::ListPage>(std::move(metadata));
  actions.emplace_back(action::Compare{check_epoch_, metadata_});
}

Actions ReflectorMachine::compared(Epoch epoch, std::size_t behind, SteadyTime now) {
  Actions actions;
  if (check_ != Check::kComparing || epoch != check_epoch_) return actions;
  if (behind == 0) {
    settle_refresh();
  } else if (now - comparing_since_ < kCatchUp) {
    arm_check(Check::kComparing, kComparePeriod, actions);
  } else {
    actions = relist(now);
    actions.emplace_back(action::Note{LogLevel::kWarn,
                                      "the watch does not bring the changes; listing again",
                                      {{"objects", std::to_string(behind)}}});
  }
  return actions;
}

void ReflectorMachine::check_failed(const Error& error, SteadyTime now, Actions& actions) {
  if (is_incomplete(error)) {
    actions = relist(now);
    return;
  }
  trouble_ = error.message;
  const Duration delay = std::max(backoff_after(error).next(now, random_), asked_by(error));
  arm_check(Check::kPassing, delay, actions);
  actions.emplace_back(action::Note{
      LogLevel::kWarn, "list failed", {{"error", error.message}, {"code", to_string(error.code)}}});
}

void ReflectorMachine::end_check() {
  check_ = Check::kNone;
  metadata_.reset();
}

void ReflectorMachine::settle_refresh() {
  refresh_due_ = false;
  trouble_.clear();
  end_check();
}

}  // namespace holdfast::cache
