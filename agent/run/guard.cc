#include "agent/run/guard.h"

#include <algorithm>
#include <utility>

#include "agent/base/lease_times.h"
#include "core/agent_protocol.h"

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
    : settings_(std::move(settings)), random_(random) {}

template <class Event>
Orders Guard::step(SteadyTime now, Event event) {
  orders_ = Orders{};
  check_deadlines(now);
  if (phase_ != Phase::kDone) event();
  end_rest(now);
  plan(now);
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
    ++mark_;
    message_ = std::move(message);
    last_progress_ = now;
    told_overdue_ = false;
  });
}

Orders Guard::checkpointed(SteadyTime now, std::int64_t number, std::string text) {
  return step(now, [&] {
    if (phase_ != Phase::kRunning && phase_ != Phase::kEnding) return;
    checkpoint_ = number;
    checkpoint_text_ = std::move(text);
  });
}

Orders Guard::child_ended(SteadyTime now, int exit_code) {
  return step(now, [&] {
    if (phase_ != Phase::kRunning && phase_ != Phase::kFencing) return;
    const Deferral* const deferred = deferral(exit_code);
    if (deferred && phase_ == Phase::kRunning && !told_to_end_) {
      return rest(now, exit_code, deferred->pause);
    }
    if (phase_ == Phase::kRunning) phase_ = Phase::kEnding;
    child_exit_code_ = exit_code;
    kill_at_ = now;
    kill(now);
  });
}

Orders Guard::all_dead(SteadyTime now) {
  return step(now, [&] {
    if (phase_ == Phase::kFencing) return finish(kFencedExitCode, fenced_why_);
    if (resting()) swept_ = true;
    if (phase_ != Phase::kEnding || settled_) return;
    orders_.stop = Orders::Stop::kNone;
    settle(now, now + kLastRenewalLimit);
  });
}

Orders Guard::told_to_end(SteadyTime now) {
  return step(now, [&] {
    told_to_end_ = true;
    // The job's command has not run, so there is nothing to judge: the turn is lost, without a
    // failure.
    if (phase_ == Phase::kWaiting) {
      finish(kFencedExitCode, "asked to end before it had the Lease");
    }
    // No command runs that could end: the pod ends with the last exit code.
    if (resting()) end_resting_pod(now);
  });
}

Orders Guard::answered(SteadyTime now, const Answer& answer) {
  return step(now, [&] {
    if (!pending_) return;
    const Pending request = *pending_;
    pending_.reset();
    if (phase_ == Phase::kWaiting) return answered_waiting(now, request, answer);
    if (phase_ == Phase::kRunning) return answered_running(now, request, answer);
    if (phase_ == Phase::kEnding) answered_ending(now, request, answer);
  });
}

void Guard::check_deadlines(SteadyTime now) {
  const Duration duration = settings_.duration;
  if (phase_ == Phase::kRunning && now - *renewed_ >= terminate_after(duration)) {
    std::string why = "no renewal was acknowledged for " + human_duration(now - *renewed_) +
                      ", the Lease is " + human_duration(duration) + " long";
    if (!last_failure_.empty()) why += " (" + last_failure_ + ")";
    fence(*renewed_ + kill_after(duration), std::move(why));
  }
  if (phase_ == Phase::kEnding && settled_ && now >= give_up_) finish(child_exit_code_);
  if (resting() && !swept_ && now >= kill_again_) {
    kill_again_ = now + kKillAgain;
    orders_.stop = Orders::Stop::kKill;
  }
  const bool killing = phase_ == Phase::kFencing || (phase_ == Phase::kEnding && !settled_);
  if (killing && now >= kill_at_ && now >= kill_again_) kill(now);
  // Without CAP_KILL, kill() on a child of another user always fails with EPERM. But the end of a
  // container's first process works: the kernel then kills the whole process namespace, for any
  // user. The container ends only when all are gone.
  if (killing && killed_ && phase_ == Phase::kFencing && now - *killed_ >= kill_limit(duration)) {
    finish(kFencedExitCode, fenced_why_);
    orders_.last_words = hurried_words(duration);
  }
  if (killing && phase_ == Phase::kEnding && now - *killed_ >= kLeftoversLimit) {
    // The child's descendants must not run longer than they could with the child alive.
    settle(now, std::min(now + kLastRenewalLimit, *renewed_ + kill_after(duration)));
  }
  if (phase_ == Phase::kDone || !pending_) return;
  // So late answers are ignored: by then the Lease may belong to somebody else.
  if (now - pending_->sent >= request_limit(duration)) {
    pending_.reset();
    orders_.abort_request = true;
    failed(now, "the API server did not answer within " + human_duration(request_limit(duration)));
  }
}

// -- answers -----------------------------------------------------------------------------------

void Guard::answered_waiting(SteadyTime now, const Pending& request, const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kFenced:
      return finish(kFencedExitCode, answer.why);
    case Answer::Kind::kConflict:
      return conflict(now);
    case Answer::Kind::kGone:
      return failed(now, "it does not exist");
    case Answer::Kind::kNone:
      return failed(now, answer.why, answer.retry_after);
    case Answer::Kind::kLease:
      break;
  }
  if (answer.lease.attempt > settings_.attempt) return finish(kFencedExitCode, lost(answer.lease));
  if (answer.lease.attempt < settings_.attempt) {
    return wait(now, "it is still attempt " + std::to_string(answer.lease.attempt) +
                         "'s; this is attempt " + std::to_string(settings_.attempt));
  }
  if (answer.lease.holder != settings_.holder) {
    return wait(now, answer.lease.holder.empty() ? "it is not given to this pod yet"
                                                 : "it is " + answer.lease.holder + "'s");
  }
  if (request.put && answer.lease.uid != uid_) return wait(now, "it was created again");
  uid_ = answer.lease.uid;
  may_renew_ = true;
  if (!request.put) return;
  phase_ = Phase::kRunning;
  last_progress_ = now;
  renewed(request);
  orders_.start_before = request.sent + terminate_after(settings_.duration);
}

void Guard::answered_running(SteadyTime now, const Pending& request, const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kNone:
      return failed(now, answer.why, answer.retry_after);
    case Answer::Kind::kConflict:
      return conflict(now);
    case Answer::Kind::kGone:
      // If a job is deleted, its Lease goes before its pod, and before a preStop hook has ended.
      // Going on is as safe as fencing at once: an operator that finds no Lease waits a whole
      // duration before it grants the next one. So a missing Lease could always count as a renewal.
      // It counts only after a signal to end, because otherwise a child without a Lease could run
      // forever.
      if (told_to_end_) renewed_ = request.sent;
      return failed(now, answer.why);
    case Answer::Kind::kFenced:
      return fence(now + grace(settings_.duration), answer.why);
    case Answer::Kind::kLease:
      break;
  }
  std::string why = lost(answer.lease);
  if (!why.empty()) return fence(now + grace(settings_.duration), std::move(why));
  may_renew_ = true;
  if (request.put) renewed(request);
}

// If the Lease belongs to somebody else, the child's end is not written to it. Only the exit code
// reports it.
void Guard::answered_ending(SteadyTime now, const Pending& request, const Answer& answer) {
  switch (answer.kind) {
    case Answer::Kind::kNone:
      return failed(now, answer.why, answer.retry_after);
    case Answer::Kind::kConflict:
      return conflict(now);
    case Answer::Kind::kGone:
    case Answer::Kind::kFenced:
      lost_ = true;
      break;
    case Answer::Kind::kLease:
      lost_ = !lost(answer.lease).empty();
      may_renew_ = true;
      if (!lost_ && !request.last) return;
      break;
  }
  if (settled_) finish(child_exit_code_);
}

void Guard::renewed(const Pending& request) {
  renewed_ = request.sent;
  told_mark_ = std::max(told_mark_, request.mark);
  if (request.checkpoint > kept_) orders_.kept = kept_ = request.checkpoint;
  if (settings_.progress_deadline && request.mark == mark_ &&
      request.sent - last_progress_ >= *settings_.progress_deadline) {
    told_overdue_ = true;
  }
  const Duration third = settings_.duration / 3;
  next_renewal_ = request.sent + third -
                  std::chrono::duration_cast<Duration>(third * kRenewalJitter * random_.uniform());
  not_before_ = SteadyTime{};
  conflicts_ = 0;
  last_failure_.clear();
}

std::string Guard::lost(const LeaseView& lease) const {
  if (!uid_.empty() && lease.uid != uid_) return "the Lease was deleted and created again";
  if (lease.attempt != settings_.attempt) {
    return "the Lease is attempt " + std::to_string(lease.attempt) + "'s; this is attempt " +
           std::to_string(settings_.attempt);
  }
  if (lease.holder == settings_.holder) return "";
  return lease.holder.empty() ? "the Lease was taken from this pod"
                              : "the Lease is " + lease.holder + "'s";
}

void Guard::failed(SteadyTime now, const std::string& why, std::optional<Duration> asked) {
  last_failure_ = why;
  if (phase_ == Phase::kWaiting) {
    wait(now, why);
  } else {
    not_before_ = now + about(random_, retry_pause(settings_.duration), kRetryJitter);
  }
  if (asked) put_off(now, *asked);
}

// The next request waits as long as the API server asks. While the child runs, one try must fit
// before the deadline. Before that, the Lease may be granted at any time, so it is read as often as
// it will be renewed.
void Guard::put_off(SteadyTime now, Duration asked) {
  const Duration duration = settings_.duration;
  SteadyTime latest = now + duration / 3;
  if (phase_ == Phase::kRunning) {
    latest = *renewed_ + terminate_after(duration) - request_limit(duration);
  } else if (phase_ == Phase::kEnding) {
    latest = give_up_ - kLastTry;
  }
  not_before_ =
      std::max(not_before_, std::min(now + asked + up_to(random_, asked, kRetryJitter), latest));
}

// The Lease is read again at once. After repeated conflicts there is a pause before each read.
void Guard::conflict(SteadyTime now) {
  may_renew_ = false;
  if (++conflicts_ > 1) {
    not_before_ = now + about(random_, retry_pause(settings_.duration), kRetryJitter);
  }
}

void Guard::wait(SteadyTime now, const std::string& why) {
  may_renew_ = false;
  not_before_ = now + about(random_, kPoll, kPollJitter);
  if (why != waiting_why_) orders_.say = "waiting for the Lease: " + why;
  waiting_why_ = why;
}

// -- ends --------------------------------------------------------------------------------------

void Guard::fence(SteadyTime kill_at, std::string why) {
  phase_ = Phase::kFencing;
  fenced_why_ = std::move(why);
  kill_at_ = kill_at;
  orders_.abort_request = pending_.has_value();
  pending_.reset();
  orders_.stop = Orders::Stop::kTerminate;
}

void Guard::kill(SteadyTime now) {
  if (!killed_) killed_ = now;
  kill_again_ = now + kKillAgain;
  orders_.stop = Orders::Stop::kKill;
}

// The last renewal is next, if there is time and the Lease is still ours.
void Guard::settle(SteadyTime now, SteadyTime give_up) {
  settled_ = true;
  give_up_ = give_up;
  not_before_ = std::min(not_before_, give_up_ - kLastTry);
  if (lost_ || now >= give_up_) finish(child_exit_code_);
}

void Guard::finish(int exit_code, std::string fenced) {
  phase_ = Phase::kDone;
  orders_.abort_request = orders_.abort_request || pending_.has_value();
  pending_.reset();
  orders_.exit_code = exit_code;
  orders_.fenced = std::move(fenced);
  orders_.last_words = kLastWordsLimit;
}

// -- "not yet" ---------------------------------------------------------------------------------

// The rule for this exit code; null: none, or its limit is reached, and the pod has to end with it.
const Deferral* Guard::deferral(int exit_code) const {
  const auto& rules = settings_.deferrals;
  const auto found = std::find_if(rules.begin(), rules.end(), [&](const Deferral& rule) {
    return rule.exit_code == exit_code;
  });
  if (found == rules.end() || settings_.deferred_before + deferrals_ >= found->limit) {
    return nullptr;
  }
  return &*found;
}

void Guard::rest(SteadyTime now, int exit_code, Duration pause) {
  ++deferrals_;
  resting_ = true;
  swept_ = false;
  child_exit_code_ = exit_code;
  again_at_ = now + pause;
  kill_again_ = now + kKillAgain;
  orders_.stop = Orders::Stop::kKill;
}

// The pod ends with the last exit code, which counts this deferral.
void Guard::end_resting_pod(SteadyTime now) {
  --deferrals_;
  phase_ = Phase::kEnding;
  kill_at_ = now;
  kill(now);
}

// The command runs again. If processes of the last time cannot be killed, the container has to end.
void Guard::end_rest(SteadyTime now) {
  if (!resting() || now < again_at_) return;
  if (!swept_) return end_resting_pod(now);
  resting_ = false;
  last_progress_ = now;
  orders_.start_before = *renewed_ + terminate_after(settings_.duration);
}

// -- plans -------------------------------------------------------------------------------------

// The moment when the next request is due, whatever it is.
SteadyTime Guard::renewal_due() const {
  if (phase_ != Phase::kRunning || !may_renew_) return not_before_;
  SteadyTime due = next_renewal_;
  if (mark_ > told_mark_) due = std::min(due, *renewed_ + progress_pause(settings_.duration));
  if (checkpoint_ > kept_) due = std::min(due, *renewed_ + checkpoint_pause(settings_.duration));
  if (settings_.progress_deadline && !told_overdue_) {
    due = std::min(due, last_progress_ + *settings_.progress_deadline);
  }
  return std::max(due, not_before_);
}

void Guard::plan(SteadyTime now) {
  const Duration duration = settings_.duration;
  orders_.wake_at = SteadyTime::max();
  const auto wake = [&](SteadyTime when) { orders_.wake_at = std::min(orders_.wake_at, when); };
  if (phase_ == Phase::kDone) return;
  if (phase_ == Phase::kFencing || (phase_ == Phase::kEnding && !settled_)) {
    // A request in progress at the child's end may still answer, but nothing new is sent meanwhile.
    wake(std::max(kill_at_, kill_again_));
    if (!killed_) return;
    return wake(*killed_ + (phase_ == Phase::kEnding ? kLeftoversLimit : kill_limit(duration)));
  }
  if (phase_ == Phase::kRunning) wake(*renewed_ + terminate_after(duration));
  if (resting()) wake(swept_ ? again_at_ : std::min(again_at_, kill_again_));
  if (phase_ == Phase::kEnding) wake(give_up_);
  if (!pending_ && now >= renewal_due()) {
    // Whoever waits for an answer does what it should.
    if (resting() && may_renew_) {
      ++mark_;
      last_progress_ = now;
    }
    pending_ = Pending{.put = may_renew_,
                       .last = may_renew_ && phase_ == Phase::kEnding,
                       .mark = mark_,
                       .checkpoint = checkpoint_,
                       .sent = now};
    orders_.get = !may_renew_;
    if (may_renew_) {
      const Duration age = phase_ == Phase::kWaiting ? Duration(0) : now - last_progress_;
      orders_.put = Renewal{.mark = mark_,
                            .age_seconds = std::chrono::duration_cast<seconds>(age).count(),
                            .message = message_,
                            .ended = std::nullopt,
                            .deferrals = deferrals_};
      if (phase_ == Phase::kEnding) orders_.put->ended = child_exit_code_;
      if (checkpoint_ > kept_) orders_.put->checkpoint = checkpoint_text_;
    }
  }
  wake(pending_ ? pending_->sent + request_limit(duration) : renewal_due());
}

}  // namespace holdfast::agent
