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
  watch_.opened_at = now;
  watch_.last_event = now;
  if (state_ == State::kWatching) {
    trouble_.good(now);
    check_.watch_opened(version_, watch_.is_short, actions);
  }
  return actions;
}

Actions ReflectorMachine::events(Epoch epoch, std::vector<kube::WatchEvent>&& events,
                                 SteadyTime now) {
  Actions actions;
  if (epoch != epoch_) return actions;
  watch_.last_event = now;
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
    watch_.had_event = true;
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
  check_.passed(version_);
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
    if (event.object) {
      list_.add(std::move(event));
    } else {
      ++undecodable_;
    }
    return;
  }
  if (!event.initial_events_end) return;
  if (!list_.is_consistent() && event.version < version_) {
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
  listed(event.version, now, actions);
  state_ = State::kWatching;
  watch_.had_event = true;
  if (!check_.is_due()) return;
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
  if (refused(error) || (watch_.opened_at && list_.stream_broke())) {
    list_.stream_no_more();
    actions.emplace_back(action::Note{
        LogLevel::kInfo, "no streamed lists here; listing in pages", {{"error", error.message}}});
  }
  if (refused(error)) {
    list(actions);
  } else if (needs_consistent_list(error)) {
    list_consistently(error, now, actions);
  } else {
    wait(Next::kList, error, now, actions);
  }
}

void ReflectorMachine::watch_broke(const Error& error, SteadyTime now, Actions& actions) {
  if (needs_consistent_list(error)) {
    list_consistently(error, now, actions);
  } else if (error.code != ErrorCode::kThrottled && (from_server(error) || watch_.opened_at) &&
             ++watch_errors_ >= kWatchTries) {
    wait(Next::kList, error, now, actions);
  } else {
    wait(Next::kLook, error, now, actions);
  }
}

void ReflectorMachine::watch_done(SteadyTime now, Actions& actions) {
  const Duration lasted = watch_.opened_at ? now - *watch_.opened_at : Duration::zero();
  if (lasted < kTooShort && !watch_.had_event) {
    wait(Next::kLook,
         make_error(ErrorCode::kTransient, "the watch ended within a second, without an event"),
         now, actions);
  } else if (watch_.is_short) {
    look_after_short_watch(actions);
  } else if (lasted + kEarly < watch_.timeout) {
    look(actions);
  } else {
    watch(actions);
  }
}

}  // namespace holdfast::cache
