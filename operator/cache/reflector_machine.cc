#include "operator/cache/reflector_machine.h"

#include <algorithm>
#include <utility>

namespace holdfast::cache {
namespace {

// What the server says when it is asked for a version that it has not reached: it was set back, or
// it is behind the one that was asked before.
bool version_ahead(const Error& error) {
  return error.http_status == 504 &&
         error.message.find("Too large resource version") != std::string::npos;
}

bool refused(const Error& error) { return error.code == ErrorCode::kInvalid; }

bool from_server(const Error& error) { return error.http_status != 0; }

}  // namespace

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
  state_ = State::kIdle;
  ++epoch_;
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

Actions ReflectorMachine::timer(Epoch epoch, SteadyTime now) {
  Actions actions;
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
      actions.push_back(action::ArmTimer{epoch_, kStreamSilence - silent});
      return actions;
    }
    streams_refused_ = true;
    actions.push_back(
        action::Note{LogLevel::kWarn, "streamed list does not end; listing in pages", {}});
    close_watch(actions);
    list(actions);
  }
  return actions;
}

Actions ReflectorMachine::server_answers(SteadyTime now) {
  backoff_ = Backoff();
  if (state_ != State::kWaiting) return {};
  return timer(epoch_, now);
}

// ---- Lists.

Actions ReflectorMachine::page(Epoch epoch, kube::ListPage&& page, SteadyTime now) {
  Actions actions;
  if (epoch != epoch_) return actions;
  if (state_ == State::kLooking) {
    looked(page.version, now, actions);
    return actions;
  }
  if (state_ != State::kListing) return actions;
  undecodable_ += static_cast<std::uint64_t>(page.undecodable);
  if (continue_token_.empty()) {
    list_version_ = page.version;
    // Known from the first page on, should the list break and a later one show higher versions.
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
    // A server that is behind: its view must not undo what was seen.
    list_consistently(make_error(ErrorCode::kTransient, "the list is older than what was seen"),
                      now, actions);
    return actions;
  }
  listed(std::exchange(items_, {}), list_version_, now, actions);
  watch(actions);
  return actions;
}

Actions ReflectorMachine::list_failed(Epoch epoch, const Error& error, SteadyTime now) {
  Actions actions;
  if (epoch != epoch_) return actions;
  if (state_ == State::kLooking) {
    wait(Next::kLook, error, now, actions);
    return actions;
  }
  if (state_ != State::kListing) return actions;
  if (error.code == ErrorCode::kGone) {
    // A token that expired between two pages would do so again.
    if (!continue_token_.empty()) paged_ = false;
    list_consistently(error, now, actions);
  } else if (version_ahead(error)) {
    list_consistently(error, now, actions);
  } else {
    wait(Next::kList, error, now, actions);
  }
  return actions;
}

void ReflectorMachine::listed(std::vector<ObjectPtr>&& items, std::uint64_t version, SteadyTime now,
                              Actions& actions) {
  Trust trust = Trust::kMayBeOld;
  if (freshness_ == Freshness::kConsistent) {
    trust = set_back_ || version < version_ ? Trust::kSetBack : Trust::kConsistent;
  }
  if (trust == Trust::kSetBack) {
    ++time_travels_;
    actions.push_back(
        action::Note{LogLevel::kWarn,
                     "the server's versions went back; everything was listed anew",
                     {{"seen", std::to_string(version_)}, {"listed", std::to_string(version)}}});
  }
  version_ = version;
  synced_ = true;
  set_back_ = false;
  paged_ = true;
  broken_streams_ = 0;
  watch_errors_ = 0;
  freshness_ = Freshness::kNotOlder;
  trouble_.clear();
  backoff_.good(now);
  actions.push_back(action::Replace{std::move(items), version, trust});
}

void ReflectorMachine::looked(std::uint64_t version, SteadyTime now, Actions& actions) {
  if (version >= version_) {
    watch(actions);
    return;
  }
  set_back_ = true;
  freshness_ = Freshness::kConsistent;
  last_event_ = now;
  list(actions);
}

// ---- Watches.

Actions ReflectorMachine::watch_opened(Epoch epoch, SteadyTime now) {
  Actions actions;
  if (epoch != epoch_ || (state_ != State::kStreaming && state_ != State::kWatching)) {
    return actions;
  }
  opened_at_ = now;
  last_event_ = now;
  if (state_ == State::kWatching) {
    trouble_.clear();
    backoff_.good(now);
  }
  return actions;
}

Actions ReflectorMachine::events(Epoch epoch, std::vector<kube::WatchEvent>&& events,
                                 SteadyTime now) {
  Actions actions;
  if (epoch != epoch_) return actions;
  last_event_ = now;
  std::uint64_t before = version_;  // the store's
  action::Apply apply{{}, version_};
  std::optional<Error> error;
  for (kube::WatchEvent& event : events) {
    if (event.type == kube::WatchEventType::kError) {
      error = std::move(event.error);
      break;
    }
    if (state_ == State::kStreaming) {
      stream_event(std::move(event), now, actions);
      before = apply.version = version_;
      continue;
    }
    if (state_ != State::kWatching) return actions;
    // A watch tells what came after its version: anything else was told before.
    if (event.version <= version_) continue;
    had_event_ = true;
    watch_errors_ = 0;
    version_ = apply.version = event.version;
    if (event.type == kube::WatchEventType::kBookmark) continue;
    if (event.object) {
      apply.events.push_back(std::move(event));
    } else {
      ++undecodable_;
    }
  }
  if (!apply.events.empty() || apply.version != before) actions.push_back(std::move(apply));
  if (!error) return actions;
  close_watch(actions);
  if (state_ == State::kStreaming) {
    stream_broke(*error, now, actions);
  } else {
    watch_broke(*error, now, actions);
  }
  return actions;
}

void ReflectorMachine::stream_event(kube::WatchEvent&& event, SteadyTime now, Actions& actions) {
  if (event.type != kube::WatchEventType::kBookmark) {
    if (!event.object) {
      ++undecodable_;
    } else if (event.type == kube::WatchEventType::kDeleted) {
      streamed_.erase(event.object->key());
    } else {
      std::string key = event.object->key();
      streamed_[std::move(key)] = std::move(event.object);
    }
    return;
  }
  if (!event.initial_events_end) return;
  if (freshness_ != Freshness::kConsistent && event.version < version_) {
    close_watch(actions);
    list_consistently(make_error(ErrorCode::kTransient, "the list is older than what was seen"),
                      now, actions);
    return;
  }
  std::vector<ObjectPtr> items;
  items.reserve(streamed_.size());
  for (auto& [key, object] : streamed_) items.push_back(std::move(object));
  streamed_.clear();
  listed(std::move(items), event.version, now, actions);
  state_ = State::kWatching;
  had_event_ = true;
}

Actions ReflectorMachine::watch_ended(Epoch epoch, const std::optional<Error>& error,
                                      SteadyTime now) {
  Actions actions;
  if (epoch != epoch_) return actions;
  if (state_ == State::kStreaming) {
    stream_broke(
        error ? *error : make_error(ErrorCode::kTransient, "the streamed list ended half-way"), now,
        actions);
  } else if (state_ == State::kWatching) {
    if (error) {
      watch_broke(*error, now, actions);
    } else {
      watch_done(now, actions);
    }
  }
  return actions;
}

void ReflectorMachine::stream_broke(const Error& error, SteadyTime now, Actions& actions) {
  if (refused(error) || (opened_at_ && ++broken_streams_ >= kStreamTries)) {
    streams_refused_ = true;
    actions.push_back(action::Note{
        LogLevel::kInfo, "no streamed lists here; listing in pages", {{"error", error.message}}});
  }
  if (refused(error)) {
    list(actions);
  } else if (error.code == ErrorCode::kGone || version_ahead(error)) {
    list_consistently(error, now, actions);
  } else {
    wait(Next::kList, error, now, actions);
  }
}

void ReflectorMachine::watch_broke(const Error& error, SteadyTime now, Actions& actions) {
  if (error.code == ErrorCode::kGone || version_ahead(error)) {
    list_consistently(error, now, actions);
  } else if (error.code != ErrorCode::kThrottled && (from_server(error) || opened_at_) &&
             ++watch_errors_ >= kWatchTries) {
    wait(Next::kList, error, now, actions);
  } else {
    wait(Next::kLook, error, now, actions);
  }
}

void ReflectorMachine::watch_done(SteadyTime now, Actions& actions) {
  const Duration lasted = opened_at_ ? now - *opened_at_ : Duration::zero();
  if (lasted < kTooShort && !had_event_) {
    wait(Next::kLook,
         make_error(ErrorCode::kTransient, "the watch ended within a second, without an event"),
         now, actions);
  } else if (lasted + kEarly < timeout_) {
    look(actions);
  } else {
    watch(actions);
  }
}

void ReflectorMachine::close_watch(Actions& actions) {
  if (state_ == State::kStreaming || state_ == State::kWatching) {
    actions.push_back(action::CloseWatch{});
  }
}

// ---- What comes next.

void ReflectorMachine::list(Actions& actions) {
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
  ++epoch_;
  const int limit = paged_ ? config_.page_limit : 0;
  actions.push_back(action::List{epoch_, list_query(freshness_, version_, continue_token_, limit)});
}

void ReflectorMachine::stream(Actions& actions) {
  state_ = State::kStreaming;
  ++epoch_;
  opened_at_.reset();
  had_event_ = false;
  timeout_ = watch_timeout();
  actions.push_back(action::Watch{epoch_, stream_query(freshness_, version_), timeout_});
  actions.push_back(action::ArmTimer{epoch_, kStreamSilence});
}

void ReflectorMachine::look(Actions& actions) {
  state_ = State::kLooking;
  ++epoch_;
  actions.push_back(action::List{epoch_, look_query(), /*look=*/true});
}

void ReflectorMachine::watch(Actions& actions) {
  state_ = State::kWatching;
  ++epoch_;
  opened_at_.reset();
  had_event_ = false;
  timeout_ = watch_timeout();
  actions.push_back(action::Watch{epoch_, watch_query(version_), timeout_});
}

void ReflectorMachine::wait(Next next, const Error& error, SteadyTime now, Actions& actions) {
  const Duration asked = error.retry_after.value_or(Duration::zero());
  const Duration delay = std::max(backoff_.next(now, random_), std::min(asked, kLongestAsked));
  trouble_ = error.message;
  state_ = State::kWaiting;
  next_ = next;
  ++epoch_;
  actions.push_back(action::ArmTimer{epoch_, delay});
  actions.push_back(action::Note{LogLevel::kWarn,
                                 next == Next::kList ? "list failed" : "watch failed",
                                 {{"error", error.message},
                                  {"code", to_string(error.code)},
                                  {"again_in", human_duration(delay)}}});
}

void ReflectorMachine::list_consistently(const Error& error, SteadyTime now, Actions& actions) {
  freshness_ = Freshness::kConsistent;
  // A version that was compacted is in the order of things and is mended at once; a server that
  // says so again and again is not.
  if (error.code != ErrorCode::kGone || !backoff_.fresh(now)) {
    wait(Next::kList, error, now, actions);
    return;
  }
  backoff_.next(now, random_);
  actions.push_back(action::Note{
      LogLevel::kInfo, "version expired; listing anew", {{"version", std::to_string(version_)}}});
  list(actions);
}

std::chrono::seconds ReflectorMachine::watch_timeout() {
  const auto spread =
      static_cast<std::uint64_t>((config_.watch_at_most - config_.watch_at_least).count());
  return config_.watch_at_least + std::chrono::seconds(random_.below(spread + 1));
}

}  // namespace holdfast::cache
