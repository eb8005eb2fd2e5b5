#include "agent/run/guard.h"

#include <algorithm>
#include <utility>

#include "core/agent_protocol.h"
#include "core/invariant.h"

namespace holdfast::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLastRenewalLimit = seconds(2);
// How long the child's descendants get to die of SIGKILL before the agent reports the exit code.
// They may belong to another user, and then our signals do not reach them.
constexpr Duration kLeftoversLimit = milliseconds(200);

}  // namespace

Guard::Guard(GuardSettings settings, Random& random)
    : progress_deadline_(settings.progress_deadline),
      lease_(settings.duration, random),
      grant_(settings.attempt, std::move(settings.holder)),
      rest_(std::move(settings.deferrals), settings.deferred_before) {}

template <class Event>
Orders Guard::step(SteadyTime now, Event event) {
  orders_ = Orders{};
  check_deadlines(now);
  if (phase_ != Phase::kDone) event();
  end_rest(now);
  plan(now);
  check();
  return std::move(orders_);
}

Orders Guard::woke(SteadyTime now) {
  return step(now, [] {});
}

Orders Guard::deadlines(SteadyTime now) {
  orders_ = Orders{};
  check_deadlines(now);
  orders_.wake_at = now;
  return std::move(orders_);
}

Orders Guard::progressed(SteadyTime now, std::string message) {
  return step(now, [&] {
    if (phase_ != Phase::kRunning && phase_ != Phase::kEnding) return;
    reports_.progressed(now, std::move(message));
  });
}

Orders Guard::checkpointed(SteadyTime now, std::int64_t number, std::string text) {
  return step(now, [&] {
    if (phase_ != Phase::kRunning && phase_ != Phase::kEnding) return;
    reports_.checkpointed(number, std::move(text));
  });
}

Orders Guard::child_ended(SteadyTime now, int exit_code) {
  return step(now, [&] {
    if (phase_ != Phase::kRunning && phase_ != Phase::kFencing) return;
    child_exit_code_ = exit_code;
    const Deferral* const deferred = rest_.rule(exit_code);
    if (deferred && phase_ == Phase::kRunning && !asked_to_end_) {
      rest_.begin(now + deferred->pause);
      rounds_.sweep(now);
      orders_.stop = Orders::Stop::kKill;
      return;
    }
    if (phase_ == Phase::kRunning) phase_ = Phase::kEnding;
    kill(now);
  });
}

Orders Guard::all_dead(SteadyTime now) {
  return step(now, [&] {
    if (phase_ == Phase::kFencing) return finish(kFencedExitCode, fenced_why_);
    if (resting()) rest_.swept();
    if (phase_ != Phase::kEnding || give_up_) return;
    orders_.stop = Orders::Stop::kNone;
    settle(now, now + kLastRenewalLimit);
  });
}

Orders Guard::asked_to_end(SteadyTime now) {
  return step(now, [&] {
    asked_to_end_ = true;
    // The job's command has not run, so there is nothing to judge: the turn is lost, without a
    // failure.
    if (phase_ == Phase::kWaiting) {
      finish(kFencedExitCode, "asked to end before it had the Lease");
    }
    // No command runs that could end: the pod ends with the last exit code.
    if (resting()) end_resting_pod(now);
  });
}

Orders Guard::answered(SteadyTime now, const LeaseReading& reading) {
  return step(now, [&] {
    if (!lease_.in_progress()) return;
    const SteadyTime sent = lease_.answered();
    if (const auto* const refusal = std::get_if<LeaseRefusal>(&reading)) {
      return refused(now, sent, *refusal);
    }
    const LeaseView& lease = std::get<LeaseView>(reading);
    if (phase_ == Phase::kWaiting) return granted(now, sent, lease);
    if (phase_ == Phase::kRunning) return held(now, sent, lease);
    lease_.confirmed();
    const bool lost = !grant_.lost(lease).empty();
    if (lost || request_.last) last_answer(lost);
  });
}

void Guard::check_deadlines(SteadyTime now) {
  if (phase_ == Phase::kRunning && now >= lease_.terminate_at()) {
    fence(lease_.kill_at(), lease_.silence(now));
  }
  if (phase_ == Phase::kEnding && give_up_ && now >= *give_up_) finish(child_exit_code_);
  if (resting() && !rest_.is_swept() && now >= rounds_.due()) {
    rounds_.sweep(now);
    orders_.stop = Orders::Stop::kKill;
  }
  const bool killing = phase_ == Phase::kFencing || (phase_ == Phase::kEnding && !give_up_);
  if (killing && now >= rounds_.due()) kill(now);
  // Without CAP_KILL, kill() on a child of another user always fails with EPERM. But the end of a
  // container's first process works: the kernel then kills the whole process namespace, for any
  // user. The container ends only when all are gone.
  if (killing && phase_ == Phase::kFencing && rounds_.last(now, kill_limit(lease_.duration()))) {
    finish(kFencedExitCode, fenced_why_);
    orders_.last_words = hurried_words(lease_.duration());
  }
  if (killing && phase_ == Phase::kEnding && rounds_.last(now, kLeftoversLimit)) {
    // The child's descendants must not run longer than they could with the child alive.
    settle(now, std::min(now + kLastRenewalLimit, lease_.kill_at()));
  }
  if (phase_ == Phase::kDone) return;
  const std::string late = lease_.give_up_late(now);
  if (late.empty()) return;
  orders_.abort_request = true;
  failed(now, late);
}

// -- answers -----------------------------------------------------------------------------------

void Guard::granted(SteadyTime now, SteadyTime sent, const LeaseView& lease) {
  if (grant_.is_too_late(lease)) return finish(kFencedExitCode, grant_.lost(lease));
  const std::string not_yet = grant_.not_yet(lease);
  if (!not_yet.empty()) return failed(now, not_yet);
  if (request_.put && !grant_.is_named(lease)) return failed(now, "it was created again");
  grant_.names(lease);
  lease_.confirmed();
  if (!request_.put) return;
  phase_ = Phase::kRunning;
  reports_.begins(now, progress_deadline_);
  acknowledged(sent);
  orders_.start_before = lease_.terminate_at();
}

void Guard::held(SteadyTime now, SteadyTime sent, const LeaseView& lease) {
  std::string why = grant_.lost(lease);
  if (!why.empty()) return fence(now + grace(lease_.duration()), std::move(why));
  lease_.confirmed();
  if (request_.put) acknowledged(sent);
}

void Guard::refused(SteadyTime now, SteadyTime sent, const LeaseRefusal& refusal) {
  switch (refusal.kind) {
    case LeaseRefusal::Kind::kNone:
      return failed(now, refusal.why, refusal.retry_after);
    case LeaseRefusal::Kind::kConflict:
      return lease_.conflict(now);
    case LeaseRefusal::Kind::kGone:
      if (phase_ == Phase::kWaiting) return failed(now, "it does not exist");
      if (phase_ == Phase::kEnding) return last_answer(true);
      // If a job is deleted, its Lease goes before its pod, and before a preStop hook has ended.
      // Going on is as safe as fencing at once: an operator that finds no Lease waits a whole
      // duration before it grants the next one. So a missing Lease could always count as a renewal.
      // It counts only after a signal to end, because otherwise a child without a Lease could run
      // forever.
      if (asked_to_end_) lease_.postpone(sent);
      return failed(now, refusal.why);
    case LeaseRefusal::Kind::kFenced:
      if (phase_ == Phase::kWaiting) return finish(kFencedExitCode, refusal.why);
      if (phase_ == Phase::kEnding) return last_answer(true);
      return fence(now + grace(lease_.duration()), refusal.why);
  }
}

// If the Lease belongs to somebody else, the child's end is not written to it. Only the exit code
// reports it.
void Guard::last_answer(bool lost) {
  lost_ = lost;
  if (give_up_) finish(child_exit_code_);
}

void Guard::acknowledged(SteadyTime sent) {
  lease_.acknowledged(sent);
  reports_.has(reports_.sent_mark(), reports_.age(sent));
  if (const auto kept = reports_.keep()) orders_.kept = kept;
}

// The next request waits as long as the API server asks. While the child runs, one try must fit
// before the deadline. Before that, the Lease may be granted at any time, so it is read as often as
// it will be renewed.
void Guard::failed(SteadyTime now, const std::string& why, std::optional<Duration> asked) {
  const bool is_news = lease_.failed(now, why);
  if (phase_ == Phase::kWaiting && is_news) orders_.say = "waiting for the Lease: " + why;
  if (!asked) return;
  SteadyTime latest = now + lease_.duration() / 3;
  if (phase_ == Phase::kRunning) {
    latest = lease_.terminate_at() - request_limit(lease_.duration());
  } else if (phase_ == Phase::kEnding) {
    latest = give_up_.value_or(SteadyTime{}) - kLastTry;
  }
  lease_.put_off(now, *asked, latest);
}

// -- ends --------------------------------------------------------------------------------------

void Guard::fence(SteadyTime kill_at, std::string why) {
  phase_ = Phase::kFencing;
  fenced_why_ = std::move(why);
  rounds_.begin_at(kill_at);
  orders_.abort_request = lease_.give_up();
  orders_.stop = Orders::Stop::kTerminate;
}

void Guard::kill(SteadyTime now) {
  rounds_.round(now);
  orders_.stop = Orders::Stop::kKill;
}

// The last renewal is next, if there is time and the Lease is still ours.
void Guard::settle(SteadyTime now, SteadyTime give_up) {
  give_up_ = give_up;
  lease_.try_by(give_up - kLastTry);
  if (lost_ || now >= give_up) finish(child_exit_code_);
}

void Guard::finish(int exit_code, std::string fenced) {
  phase_ = Phase::kDone;
  if (lease_.give_up()) orders_.abort_request = true;
  orders_.exit_code = exit_code;
  orders_.fenced = std::move(fenced);
  orders_.last_words = kLastWordsLimit;
}

// The pod ends with the last exit code, which counts this deferral.
void Guard::end_resting_pod(SteadyTime now) {
  rest_.hand_over();
  phase_ = Phase::kEnding;
  kill(now);
}

// The command runs again. If processes of the last time cannot be killed, the container has to end.
void Guard::end_rest(SteadyTime now) {
  if (!resting() || now < rest_.until()) return;
  if (!rest_.is_swept()) return end_resting_pod(now);
  rest_.end();
  reports_.begins(now, progress_deadline_);
  orders_.start_before = lease_.terminate_at();
}

// -- plans -------------------------------------------------------------------------------------

void Guard::plan(SteadyTime now) {
  orders_.wake_at = SteadyTime::max();
  const auto wake = [&](SteadyTime when) { orders_.wake_at = std::min(orders_.wake_at, when); };
  if (phase_ == Phase::kDone) return;
  if (phase_ == Phase::kFencing || (phase_ == Phase::kEnding && !give_up_)) {
    // A request in progress at the child's end may still answer, but nothing new is sent meanwhile.
    wake(rounds_.due());
    if (!rounds_.began()) return;
    return wake(*rounds_.began() +
                (phase_ == Phase::kEnding ? kLeftoversLimit : kill_limit(lease_.duration())));
  }
  if (phase_ == Phase::kRunning) wake(lease_.terminate_at());
  if (resting()) {
    wake(rest_.is_swept() ? rest_.until() : std::min(rest_.until(), rounds_.due()));
  }
  if (phase_ == Phase::kEnding) wake(*give_up_);
  plan_request(now);
}

void Guard::check() const {
  const bool over = phase_ == Phase::kFencing || phase_ == Phase::kDone;
  invariant(!over || !lease_.in_progress(), "whoever fences itself asks for nothing more");
  invariant(phase_ != Phase::kRunning || lease_.renewed(), "a command runs once it has the Lease");
  invariant(!orders_.start_before || phase_ == Phase::kRunning, "a command starts with the Lease");
  invariant(!give_up_ || phase_ == Phase::kEnding || phase_ == Phase::kDone,
            "the last renewal comes after the command's end");
}

void Guard::plan_request(SteadyTime now) {
  SteadyTime wanted{};  // at once
  if (phase_ == Phase::kRunning) wanted = reports_.due(*lease_.renewed(), lease_.duration());
  const SteadyTime due = lease_.due(wanted);
  if (!lease_.in_progress() && now >= due) {
    const bool put = lease_.may_renew();
    // Whoever waits for an answer does what it should.
    if (resting() && put) reports_.waits(now);
    request_ = Request{.put = put, .last = put && phase_ == Phase::kEnding};
    lease_.send(now);
    orders_.get = !put;
    if (put) {
      const Duration age = phase_ == Phase::kWaiting ? Duration(0) : reports_.age(now);
      orders_.put = Renewal{.mark = reports_.mark(),
                            .age_seconds = std::chrono::duration_cast<seconds>(age).count(),
                            .message = reports_.message(),
                            .ended = std::nullopt,
                            .deferrals = rest_.count()};
      if (request_.last) orders_.put->ended = child_exit_code_;
      if (!reports_.is_kept()) orders_.put->checkpoint = reports_.checkpoint();
      reports_.sent();
    }
  }
  orders_.wake_at = std::min(orders_.wake_at, lease_.in_progress() ? lease_.late_at() : due);
}

}  // namespace holdfast::agent
