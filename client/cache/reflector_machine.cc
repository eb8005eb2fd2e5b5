#include "client/cache/reflector_machine.h"

#include <algorithm>
#include <utility>

namespace holdfast::cache {

Actions ReflectorMachine::start(SteadyTime now) {
  Actions actions;
  if (state_ != State::kIdle) return actions;
  last_event_ = now;
  list(actions);
  return actions;
}

Actions ReflectorMachine::stop() {
  Actions actions;
  close_watch(actions);
  end_check();
  state_ = State::kIdle;
  epoch_ = ++epochs_;
  return actions;
}

Actions ReflectorMachine::relist(SteadyTime now) {
  Actions actions;
  if (state_ == State::kIdle) return actions;
  const bool listing = state_ == State::kListing || state_ == State::kStreaming;
  if (listing && freshness_ == Freshness::kConsistent) return actions;
  freshness_ = Freshness::kConsistent;
  last_event_ = now;
  if (state_ == State::kWaiting) {
    next_ = Next::kList;
    return actions;
  }
  close_watch(actions);
  list(actions);
  return actions;
}

Actions ReflectorMachine::widened(SteadyTime now) {
  freshness_ = Freshness::kConsistent;
  if (state_ == State::kListing || state_ == State::kStreaming) return list_anew(now);
  return relist(now);
}

Actions ReflectorMachine::narrowed(SteadyTime now) {
  if (state_ == State::kListing || state_ == State::kStreaming) return list_anew(now);
  Actions actions;
  if (state_ != State::kWatching) return actions;
  close_watch(actions);
  last_event_ = now;
  watch(actions);
  return actions;
}

// In place of the list under way.
Actions ReflectorMachine::list_anew(SteadyTime now) {
  Actions actions;
  last_event_ = now;
  close_watch(actions);
  list(actions);
  return actions;
}

Actions ReflectorMachine::watch_lags(Log::Fields seen, SteadyTime now) {
  if (!live() || (lagged_at_ && now - *lagged_at_ < kLagInterval)) return {};
  lagged_at_ = now;
  Actions actions = relist(now);
  actions.emplace_back(action::Note{
      LogLevel::kWarn, "the watch lags behind a live read; listing again", std::move(seen)});
  return actions;
}

Actions ReflectorMachine::timer(Epoch epoch, SteadyTime now) {
  Actions actions;
  if (check_ != Check::kNone && epoch == check_epoch_) {
    check_timer(now, actions);
    return actions;
  }
  if (epoch != epoch_) return actions;
  if (state_ == State::kWaiting) {
    last_event_ = now;
    if (next_ == Next::kList) {
      list(actions);
    } else {
      look(actions);
    }
  } else if (state_ == State::kStreaming) {
    const Duration silent = now - last_event_;
    if (silent < kStreamSilence) {
      actions.emplace_back(action::ArmTimer{epoch_, kStreamSilence - silent});
      return actions;
    }
    streams_refused_ = true;
    actions.emplace_back(
        action::Note{LogLevel::kWarn, "streamed list does not end; listing in pages", {}});
    close_watch(actions);
    list(actions);
  }
  return actions;
}

Actions ReflectorMachine::server_answers(SteadyTime now) {
  unanswered_.reset();
  if (state_ != State::kWaiting) return {};
  if (now < asked_until_) return {action::ArmTimer{epoch_, asked_until_ - now}};
  return timer(epoch_, now);
}

// ---- Lists.

bool ReflectorMachine::is_incomplete(const Error& error) {
  return error.http_status == 0 && (error.code == ErrorCode::kTerminal || error.maybe_applied);
}

bool ReflectorMachine::version_ahead(const Error& error) {
  return error.http_status == 504 &&
         error.message.find("Too large resource version") != std::string::npos;
}

Actions ReflectorMachine::page(Epoch epoch, kube::ListPage&& page, SteadyTime now) {
  Actions actions;
  if (check_ == Check::kListing && epoch == check_epoch_) {
    check_listed(std::move(page), now, actions);
    return actions;
  }
  if (epoch != epoch_) return actions;
  if (state_ == State::kLooking) {
    looked(page.version, now, actions);
    return actions;
  }
  if (state_ != State::kListing) return actions;
  undecodable_ += static_cast<std::uint64_t>(page.undecodable);
  if (continue_token_.empty()) {
    list_version_ = page.version;
    // Recorded from the first page on, because the list may break and a later one may show higher
    // versions.
    if (freshness_ == Freshness::kConsistent && list_version_ < version_) set_back_ = true;
  }
  items_.insert(items_.end(), std::make_move_iterator(page.items.begin()),
                std::make_move_iterator(page.items.end()));
  continue_token_ = std::move(page.continue_token);
  if (!continue_token_.empty()) {
    list_page(actions);
    return actions;
  }
  if (freshness_ != Freshness::kConsistent && list_version_ < version_) {
    // The server lags: its view must not undo newer changes.
    list_consistently(make_error(ErrorCode::kTransient, "the list is older than what was seen"),
                      now, actions);
    return actions;
  }
  listed(std::exchange(items_, {}), list_version_, now, actions);
  go_on_watching(actions);
  return actions;
}

Actions ReflectorMachine::list_failed(Epoch epoch, const Error& error, SteadyTime now) {
  Actions actions;
  if (check_ == Check::kListing && epoch == check_epoch_) {
    check_failed(error, now, actions);
    return actions;
  }
  if (epoch != epoch_) return actions;
  if (state_ == State::kLooking) {
    wait(Next::kLook, error, now, actions);
    return actions;
  }
  if (state_ != State::kListing) return actions;
  if (error.code == ErrorCode::kGone) {
    // The token expired between two pages, and it would expire again.
    if (!continue_token_.empty()) paged_ = false;
    list_consistently(error, now, actions);
  } else if (version_ahead(error)) {
    list_consistently(error, now, actions);
  } else if (is_incomplete(error)) {
    list_in_smaller_parts(error, now, actions);
  } else {
    wait(Next::kList, error, now, actions);
  }
  return actions;
}

// Some servers ignore the limit at version 0 and answer everything at once.
void ReflectorMachine::list_in_smaller_parts(const Error& error, SteadyTime now, Actions& actions) {
  const bool in_one = freshness_ == Freshness::kAny || !paged_;
  if (in_one) {
    freshness_ = Freshness::kConsistent;
    paged_ = true;
  }
  const bool too_large = error.code == ErrorCode::kTerminal;
  if (!too_large || (!in_one && page_limit_ == 1)) return wait(Next::kList, error, now, actions);
  if (!in_one) page_limit_ = std::max(1, page_limit_ / 10);
  actions.emplace_back(
      action::Note{LogLevel::kInfo, "listing in smaller parts", {{"error", error.message}}});
  list(actions);
}

void ReflectorMachine::listed(std::vector<ObjectPtr>&& items, std::uint64_t version, SteadyTime now,
                              Actions& actions) {
  Trust trust = Trust::kMayBeOld;
  if (freshness_ == Freshness::kConsistent) {
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
  paged_ = true;
  broken_streams_ = 0;
  watch_errors_ = 0;
  freshness_ = Freshness::kNotOlder;
  things_go_well(now);
  if (list_refreshes_) settle_refresh();
  actions.emplace_back(action::Replace{std::move(items), version, trust});
}

void ReflectorMachine::looked(std::uint64_t version, SteadyTime now, Actions& actions) {
  must_pass_ = version;
  if (version >= version_) {
    watch(actions);
    return;
  }
  set_back_ = true;
  freshness_ = Freshness::kConsistent;
  last_event_ = now;
  list(actions);
}

// ---- What comes next.

void ReflectorMachine::list(Actions& actions) {
  end_check();
  if (refresh_due_) freshness_ = Freshness::kConsistent;
  list_refreshes_ = refresh_due_;
  items_.clear();
  streamed_.clear();
  continue_token_.clear();
  if (config_.streaming_lists && !streams_refused_) {
    stream(actions);
  } else {
    list_page(actions);
  }
}

void ReflectorMachine::list_page(Actions& actions) {
  state_ = State::kListing;
  epoch_ = ++epochs_;
  const int limit = paged_ ? page_limit_ : 0;
  actions.emplace_back(
      action::List{epoch_, list_query(freshness_, version_, continue_token_, limit)});
}

void ReflectorMachine::stream(Actions& actions) {
  state_ = State::kStreaming;
  epoch_ = ++epochs_;
  opened_at_.reset();
  had_event_ = false;
  timeout_ = watch_timeout();
  actions.emplace_back(action::Watch{epoch_, stream_query(freshness_, version_), timeout_});
  actions.emplace_back(action::ArmTimer{epoch_, kStreamSilence});
}

void ReflectorMachine::look(Actions& actions) {
  end_check();
  state_ = State::kLooking;
  short_watch_due_ = refresh_due_;
  epoch_ = ++epochs_;
  actions.emplace_back(action::List{epoch_, look_query(), action::Wanted::kVersion});
}

void ReflectorMachine::watch(Actions& actions) {
  end_check();
  state_ = State::kWatching;
  epoch_ = ++epochs_;
  opened_at_.reset();
  had_event_ = false;
  is_short_ = std::exchange(short_watch_due_, false) && refresh_due_ && version_ < must_pass_;
  timeout_ = is_short_ ? kShortWatch : watch_timeout();
  actions.emplace_back(action::Watch{epoch_, watch_query(version_), timeout_});
}

Duration ReflectorMachine::asked_by(const Error& error) {
  return std::min(error.retry_after.value_or(Duration::zero()), kLongestAsked);
}

Backoff& ReflectorMachine::backoff_after(const Error& error) {
  if (error.code == ErrorCode::kThrottled) return throttled_;
  return error.code == ErrorCode::kGone ? expired_ : unanswered_;
}

void ReflectorMachine::things_go_well(SteadyTime now) {
  trouble_.clear();
  for (Backoff* backoff : {&unanswered_, &throttled_, &expired_}) backoff->good(now);
}

void ReflectorMachine::wait(Next next, const Error& error, SteadyTime now, Actions& actions) {
  wait_for(backoff_after(error).next(now, random_), next, error, now, actions);
}

void ReflectorMachine::wait_for(Duration delay, Next next, const Error& error, SteadyTime now,
                                Actions& actions) {
  asked_until_ = now + asked_by(error);
  delay = std::max(delay, asked_until_ - now);
  trouble_ = error.message;
  end_check();
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
  freshness_ = Freshness::kConsistent;
  const Duration delay = backoff_after(error).next(now, random_);
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

}  // namespace holdfast::cache
