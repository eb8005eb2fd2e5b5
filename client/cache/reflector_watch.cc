// How ReflectorMachine handles a watch's events and its end.
#include <utility>

#include "client/cache/reflector_machine.h"

namespace holdfast::cache {
namespace {

bool refused(const Error& error) { return error.code == ErrorCode::kInvalid; }

bool from_server(const Error& error) { return error.http_status != 0; }

}  // namespace

Actions ReflectorMachine::watch_opened(Epoch epoch, SteadyTime now) {
  Actions actions;
  if (epoch != epoch_ || (state_ != State::kStreaming && state_ != State::kWatching)) {
    return actions;
  }
  opened_at_ = now;
  last_event_ = now;
  if (state_ == State::kWatching) {
    things_go_well(now);
    begin_check(actions);
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
      if (epoch != epoch_) return actions;  // the rest is of a stream that was given up
      before = apply.version = version_;
      continue;
    }
    if (state_ != State::kWatching) return actions;
    // A watch brings only events after its version. Older ones are repetitions.
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
  if (!apply.events.empty() || apply.version != before) actions.emplace_back(std::move(apply));
  if (check_ == Check::kPassing && version_ >= must_pass_) settle_refresh();
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
  if (event.version < version_ && !std::exchange(set_back_, true)) {
    // Versions were reliable until here, so the items may share the store's own objects.
    close_watch(actions);
    return list(actions);
  }
  std::vector<ObjectPtr> items;
  items.reserve(streamed_.size());
  for (auto& [key, object] : streamed_) items.push_back(std::move(object));
  streamed_.clear();
  listed(std::move(items), event.version, now, actions);
  state_ = State::kWatching;
  had_event_ = true;
  if (!refresh_due_) return;
  close_watch(actions);
  look(actions);
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
    actions.emplace_back(action::Note{
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
  } else if (is_short_) {
    look_after_short_watch(actions);
  } else if (lasted + kEarly < timeout_) {
    look(actions);
  } else {
    watch(actions);
  }
}

void ReflectorMachine::close_watch(Actions& actions) {
  if (state_ == State::kStreaming || state_ == State::kWatching) {
    actions.emplace_back(action::CloseWatch{});
  }
}

}  // namespace holdfast::cache
