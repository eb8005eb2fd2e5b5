#include "client/cache/reflector_refresh.h"

#include <algorithm>
#include <utility>

#include "client/cache/list_query.h"

namespace holdfast::cache {

void RefreshCheck::ask() {
  is_due_ = true;
  list_counts_ = false;
}

void RefreshCheck::end() { step_ = std::monostate(); }

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
  if (is_short) return wait_to_pass(kShortWatch + kShortWatchGrace, actions);
  const auto spread = static_cast<std::uint64_t>((kPassAtMost - kPassAtLeast).count());
  wait_to_pass(kPassAtLeast + Duration(random_.below(spread)), actions);
}

void RefreshCheck::passed(std::uint64_t version) {
  if (std::holds_alternative<Passing>(step_) && version >= must_pass_) settle();
}

void RefreshCheck::wait_to_pass(Duration delay, Actions& actions) {
  step_ = Passing();
  arm(delay, actions);
}

void RefreshCheck::arm(Duration delay, Actions& actions) {
  epoch_ = ++epochs_;
  actions.emplace_back(action::ArmTimer{epoch_, delay});
}

bool RefreshCheck::timer(bool watch_is_short, Actions& actions) {
  if (const auto* const comparing = std::get_if<Comparing>(&step_)) {
    actions.emplace_back(action::Compare{epoch_, comparing->metadata});
    return false;
  }
  if (watch_is_short) return true;
  if (std::holds_alternative<Passing>(step_)) {
    step_ = Listing();
    actions.emplace_back(action::List{epoch_, list_query(Freshness::kConsistent, 0, "", 0),
                                      action::Wanted::kMetadata});
  }
  return false;
}

void RefreshCheck::listed(kube::ListPage&& metadata, SteadyTime now, Actions& actions) {
  Comparing comparing{std::make_shared<const kube::ListPage>(std::move(metadata)), now};
  actions.emplace_back(action::Compare{epoch_, comparing.metadata});
  step_ = std::move(comparing);
}

bool RefreshCheck::compared(std::size_t behind, SteadyTime now, Actions& actions) {
  if (behind > 0 && now - std::get<Comparing>(step_).since >= kCatchUp) return true;
  if (behind == 0) {
    settle();
  } else {
    arm(kComparePeriod, actions);
  }
  return false;
}

bool RefreshCheck::failed(const Error& error, SteadyTime now, Actions& actions) {
  if (is_incomplete(error)) return true;
  trouble_.note(error);
  const Duration delay = std::max(trouble_.next_wait(error, now), asked_by(error));
  wait_to_pass(delay, actions);
  actions.emplace_back(action::Note{
      LogLevel::kWarn, "list failed", {{"error", error.message}, {"code", to_string(error.code)}}});
  return false;
}

}  // namespace holdfast::cache
