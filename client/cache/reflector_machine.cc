#include "client/cache/reflector_machine.h"

#include <algorithm>
#include <utility>

namespace holdfast::cache {

Actions ReflectorMachine::start() {
  Actions actions;
  if (state_ != State::kIdle) return actions;
  list(actions);
  return actions;
}

Actions ReflectorMachine::stop() {
  Actions actions;
  close_watch(actions);
  check_.end();
  state_ = State::kIdle;
  epoch_ = ++epochs_;
  return actions;
}

Actions ReflectorMachine::relist() {
  Actions actions;
  if (state_ == State::kIdle || (is_listing() && list_.is_consistent())) return actions;
  list_.must_be_consistent();
  if (state_ == State::kWaiting) {
    next_ = Next::kList;
    return actions;
  }
  return list_anew();
}

Actions ReflectorMachine::widened() {
  list_.must_be_consistent();
  if (is_listing()) return list_anew();
  return relist();
}

Actions ReflectorMachine::narrowed() {
  if (is_listing()) return list_anew();
  Actions actions;
  if (state_ != State::kWatching) return actions;
  close_watch(actions);
  watch(actions);
  return actions;
}

// In place of what is under way.
Actions ReflectorMachine::list_anew() {
  Actions actions;
  close_watch(actions);
  list(actions);
  return actions;
}

// The watch may be dead although it seems open. A new one at the same version brings the missed
// events.
Actions ReflectorMachine::refresh(SteadyTime now) {
  Actions actions;
  if (state_ == State::kIdle) return actions;
  watch_.last_event = now;
  check_.ask();
  if (state_ != State::kWatching && state_ != State::kLooking) return actions;
  close_watch(actions);
  look(actions);
  return actions;
}

Actions ReflectorMachine::watch_lags(Log::Fields seen, SteadyTime now) {
  if (!live() || (lagged_at_ && now - *lagged_at_ < kLagInterval)) return {};
  lagged_at_ = now;
  Actions actions = relist();
  actions.emplace_back(action::Note{
      LogLevel::kWarn, "the watch lags behind a live read; listing again", std::move(seen)});
  return actions;
}

Actions ReflectorMachine::compared(Epoch epoch, std::size_t behind, SteadyTime now) {
  Actions actions;
  if (!check_.compares(epoch) || !check_.compared(behind, now, actions)) return actions;
  actions = relist();
  actions.emplace_back(action::Note{LogLevel::kWarn,
                                    "the watch does not bring the changes; listing again",
                                    {{"objects", std::to_string(behind)}}});
  return actions;
}

Actions ReflectorMachine::timer(Epoch epoch, SteadyTime now) {
  Actions actions;
  if (check_.owns(epoch)) {
    if (!check_.timer(watch_.is_short, actions)) return actions;
    close_watch(actions);
    look_after_short_watch(actions);
    return actions;
  }
  if (epoch != epoch_) return actions;
  if (state_ == State::kWaiting) {
    if (next_ == Next::kList) {
      list(actions);
    } else {
      look(actions);
    }
  } else if (state_ == State::kStreaming) {
    const Duration silent = now - watch_.last_event;
    if (silent < kStreamSilence) {
      actions.emplace_back(action::ArmTimer{epoch_, kStreamSilence - silent});
      return actions;
    }
    list_.stream_no_more();
    actions.emplace_back(
        action::Note{LogLevel::kWarn, "streamed list does not end; listing in pages", {}});
    close_watch(actions);
    list(actions);
  }
  return actions;
}

Actions ReflectorMachine::server_answers(SteadyTime now) {
  trouble_.server_answers();
  if (state_ != State::kWaiting) return {};
  if (now < asked_until_) return {action::ArmTimer{epoch_, asked_until_ - now}};
  return timer(epoch_, now);
}

// ---- Lists.

Actions ReflectorMachine::page(Epoch epoch, kube::ListPage&& page, SteadyTime now) {
  Actions actions;
  if (check_.lists(epoch)) {
    check_.listed(std::move(page), now, actions);
    return actions;
  }
  if (epoch != epoch_) return actions;
  if (state_ == State::kLooking) {
    looked(page.version, actions);
    return actions;
  }
  if (state_ != State::kListing) return actions;
  undecodable_ += static_cast<std::uint64_t>(page.undecodable);
  list_.add(std::move(page));
  // Recorded from the first page on, because the list may break and a later one may show higher
  // versions.
  const bool is_older = list_.version() < version_;
  if (list_.is_consistent() && is_older) set_back_ = true;
  if (list_.has_next_page()) {
    list_page(actions);
    return actions;
  }
  if (!list_.is_consistent() && is_older) {
    // The server lags: its view must not undo newer changes.
    list_consistently(make_error(ErrorCode::kTransient, "the list is older than what was seen"),
                      now, actions);
    return actions;
  }
  listed(list_.version(), now, actions);
  if (check_.is_due()) {
    look(actions);  // the list began before the refresh
  } else {
    watch(actions);
  }
  return actions;
}

Actions ReflectorMachine::list_failed(Epoch epoch, const Error& error, SteadyTime now) {
  Actions actions;
  if (check_.lists(epoch)) {
    if (check_.failed(error, now, actions)) actions = relist();
    return actions;
  }
  if (epoch != epoch_) return actions;
  if (state_ == State::kLooking) {
    wait(Next::kLook, error, now, actions);
    return actions;
  }
  if (state_ != State::kListing) return actions;
  if (error.code == ErrorCode::kGone) list_.token_expired();
  if (needs_consistent_list(error)) {
    list_consistently(error, now, actions);
  } else if (is_incomplete(error) && list_.shrink(error.code == ErrorCode::kTerminal)) {
    actions.emplace_back(
        action::Note{LogLevel::kInfo, "listing in smaller parts", {{"error", error.message}}});
    list(actions);
  } else {
    wait(Next::kList, error, now, actions);
  }
  return actions;
}

void ReflectorMachine::listed(std::uint64_t version, SteadyTime now, Actions& actions) {
  Trust trust = Trust::kMayBeOld;
  if (list_.is_consistent()) {
    trust = set_back_ || version < version_ ? Trust::kSetBack : Trust::kConsistent;
  }
  if (trust == Trust::kSetBack) {
    ++time_travels_;
    actions.emplace_back(
        action::Note{LogLevel::kWarn,
                     "the server's versions went back; everything was listed again",
                     {{"seen", std::to_string(version_)}, {"listed", std::to_string(version)}}});
  }
  version_ = version;
  synced_ = true;
  set_back_ = false;
  watch_errors_ = 0;
  list_.end();
  trouble_.good(now);
  check_.list_ended();
  actions.emplace_back(action::Replace{list_.take_items(), version, trust});
}

void ReflectorMachine::looked(std::uint64_t version, Actions& actions) {
  check_.looked(version);
  if (version >= version_) {
    watch(actions);
    return;
  }
  set_back_ = true;
  list_.must_be_consistent();
  list(actions);
}

// ---- What comes next.

void ReflectorMachine::list(Actions& actions) {
  check_.list_begins();
  if (check_.is_due()) list_.must_be_consistent();
  list_.begin();
  if (list_.is_streamed()) {
    stream(actions);
  } else {
    list_page(actions);
  }
}

void ReflectorMachine::list_page(Actions& actions) {
  state_ = State::kListing;
  epoch_ = ++epochs_;
  actions.emplace_back(action::List{epoch_, list_.page_query(version_)});
}

void ReflectorMachine::stream(Actions& actions) {
  state_ = State::kStreaming;
  epoch_ = ++epochs_;
  watch_.opened_at.reset();
  watch_.had_event = false;
  watch_.timeout = watch_timeout();
  actions.emplace_back(action::Watch{epoch_, list_.stream_query(version_), watch_.timeout});
  actions.emplace_back(action::ArmTimer{epoch_, kStreamSilence});
}

void ReflectorMachine::look(Actions& actions) {
  check_.look_begins();
  state_ = State::kLooking;
  epoch_ = ++epochs_;
  actions.emplace_back(action::List{epoch_, look_query(), action::Wanted::kVersion});
}

void ReflectorMachine::look_after_short_watch(Actions& actions) {
  look(actions);
  check_.no_short_watch();
}

void ReflectorMachine::watch(Actions& actions) {
  state_ = State::kWatching;
  epoch_ = ++epochs_;
  watch_.is_short = check_.watch_begins(version_);
  watch_.opened_at.reset();
  watch_.had_event = false;
  watch_.timeout = watch_.is_short ? RefreshCheck::kShortWatch : watch_timeout();
  actions.emplace_back(action::Watch{epoch_, watch_query(version_), watch_.timeout});
}

void ReflectorMachine::wait(Next next, const Error& error, SteadyTime now, Actions& actions) {
  wait_for(trouble_.next_wait(error, now), next, error, now, actions);
}

void ReflectorMachine::wait_for(Duration delay, Next next, const Error& error, SteadyTime now,
                                Actions& actions) {
  asked_until_ = now + asked_by(error);
  delay = std::max(delay, asked_until_ - now);
  trouble_.note(error);
  check_.end();
  state_ = State::kWaiting;
  next_ = next;
  epoch_ = ++epochs_;
  actions.emplace_back(action::ArmTimer{epoch_, delay});
  actions.emplace_back(action::Note{LogLevel::kWarn,
                                    next == Next::kList ? "list failed" : "watch failed",
                                    {{"error", error.message},
                                     {"code", to_string(error.code)},
                                     {"again_in", human_duration(delay)}}});
}

void ReflectorMachine::list_consistently(const Error& error, SteadyTime now, Actions& actions) {
  list_.must_be_consistent();
  const Duration delay = trouble_.next_wait(error, now);
  if (delay > Duration::zero()) return wait_for(delay, Next::kList, error, now, actions);
  actions.emplace_back(action::Note{
      LogLevel::kInfo, "version expired; listing again", {{"version", std::to_string(version_)}}});
  list(actions);
}

std::chrono::seconds ReflectorMachine::watch_timeout() {
  const auto spread =
      static_cast<std::uint64_t>((config_.watch_at_most - config_.watch_at_least).count());
  return config_.watch_at_least + std::chrono::seconds(random_.below(spread + 1));
}

void ReflectorMachine::close_watch(Actions& actions) {
  if (state_ == State::kStreaming || state_ == State::kWatching) {
    actions.emplace_back(action::CloseWatch{});
  }
}

}  // namespace holdfast::cache
