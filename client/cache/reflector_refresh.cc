#include "client/cache/reflector_refresh.h"

#include <algorithm>
#include <utility>

#include "client/cache/list_query.h"

namespace holdfast::cache {

void RefreshCheck::ask() {
  is_due_ = true;
  list_counts_ = false;
}

void RefreshCheck::end() {
  state_ = State::kNone;
  metadata_.reset();
}

void RefreshCheck::settle() {
  is_due_ = false;
  trouble_.over();
  end();
}

void RefreshCheck::list_begins() {
  end();
  list_counts_ = is_due_;
}

void RefreshCheck::list_ended() {
  if (list_counts_) settle();
}

void RefreshCheck::look_begins() {
  end();
  short_watch_due_ = is_due_;
}

bool RefreshCheck::watch_begins(std::uint64_t version) {
  end();
  return std::exchange(short_watch_due_, false) && is_due_ && version < must_pass_;
}

void RefreshCheck::watch_opened(std::uint64_t version, bool is_short, Actions& actions) {
  if (!is_due_) return;
  if (version >= must_pass_) return settle();
  if (is_short) return arm(State::kPassing, kShortWatch + kShortWatchGrace, actions);
  const auto spread = static_cast<std::uint64_t>((kPassAtMost - kPassAtLeast).count());
  arm(State::kPassing, kPassAtLeast + Duration(random_.below(spread)), actions);
}

void RefreshCheck::passed(std::uint64_t version) {
  if (state_ == State::kPassing && version >= must_pass_) settle();
}

void RefreshCheck::arm(State state, Duration delay, Actions& actions) {
  state_ = state;
  epoch_ = ++epochs_;
  actions.emplace_back(action::ArmTimer{epoch_, delay});
}

bool RefreshCheck::timer(bool watch_is_short, Actions& actions) {
  if (state_ == State::kComparing) {
    actions.emplace_back(action::Compare{epoch_, metadata_});
    return false;
  }
  if (watch_is_short) return true;
  if (state_ == State::kPassing) {
    state_ = State::kListing;
    actions.emplace_back(action::List{epoch_, list_query(Freshness::kConsistent, 0, "", 0),
                                      action::Wanted::kMetadata});
  }
  return false;
}

void RefreshCheck::listed(kube::ListPage&& metadata, SteadyTime now, Actions& actions) {
  state_ = State::kComparing;
  comparing_since_ = now;
  metadata_ = std::make_shared<const kube::ListPage>(std::move(metadata));
  actions.emplace_back(action::Compare{epoch_, metadata_});
}

bool RefreshCheck::compared(std::size_t behind, SteadyTime now, Actions& actions) {
  if (behind > 0 && now - comparing_since_ >= kCatchUp) return true;
  if (behind == 0) {
    settle();
  } else {
    arm(State::kComparing, kComparePeriod, actions);
  }
  return false;
}

bool RefreshCheck::failed(const Error& error, SteadyTime now, Actions& actions) {
  if (is_incomplete(error)) return true;
  trouble_.note(error);
  const Duration delay = std::max(trouble_.next_wait(error, now), asked_by(error));
  arm(State::kPassing, delay, actions);
  actions.emplace_back(action::Note{
      LogLevel::kWarn, "list failed", {{"error", error.message}, {"code", to_string(error.code)}}});
  return false;
}

}  // namespace holdfast::cache
