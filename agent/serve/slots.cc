#include "agent/serve/slots.h"

#include <algorithm>
#include <utility>

#include "core/agent_protocol.h"
#include "core/invariant.h"

namespace holdfast::agent {
namespace {

// The busier the worker is, the longer its next news wait for each other after a renewal, so that
// they share one: so long for each other attempt.
constexpr std::chrono::milliseconds kPauseForEach{25};

}  // namespace

Slots::Slots(SlotSettings settings, Random& random)
    : settings_(std::move(settings)),
      attempts_({settings_.slots, settings_.duration, settings_.stop_grace}, random),
      lease_(settings_.duration, random),
      pod_(settings_.pod_grace, settings_.stop_grace) {}

template <class Event>
SlotOrders Slots::step(SteadyTime now, Event event) {
  orders_ = SlotOrders{};
  check_deadlines(now);
  if (phase_ != Phase::kDone) event();
  // The event may have brought an end of the pod that leaves no time.
  if (!over() && pod_.has_begun()) {
    check_grace(now);
    attempts_.check_deadlines(now, orders_);
  }
  plan(now);
  check();
  return std::move(orders_);
}

SlotOrders Slots::woke(SteadyTime now) {
  return step(now, [] {});
}

SlotOrders Slots::deadlines(SteadyTime now) {
  orders_ = SlotOrders{};
  check_deadlines(now);
  orders_.wake_at = now;
  return std::move(orders_);
}

SlotOrders Slots::watched(SteadyTime now, const WorkReading& reading) {
  return step(now, [&] {
    if (over()) return;
    if (const auto* const refusal = std::get_if<LeaseRefusal>(&reading)) {
      if (refusal->kind == LeaseRefusal::Kind::kGone) work_is_gone(now, refusal->why);
      return;
    }
    const WorkView& view = std::get<WorkView>(reading);
    if (work_.is_news(view)) work_.heard(now);
    read_work(now, view, std::nullopt);
  });
}

SlotOrders Slots::work_answered(SteadyTime now, const WorkReading& reading) {
  return step(now, [&] {
    if (!lease_.in_progress() || request_.wants != Wants::kWork) return;
    const SteadyTime sent = lease_.answered();
    if (const auto* const refusal = std::get_if<LeaseRefusal>(&reading)) {
      if (refusal->kind == LeaseRefusal::Kind::kGone) return work_is_gone(now, refusal->why);
      return failed(now, refusal->why, refusal->retry_after);
    }
    work_.heard(sent);
    read_work(now, std::get<WorkView>(reading), sent);
  });
}

SlotOrders Slots::worker_answered(SteadyTime now, const WorkerReading& reading) {
  return step(now, [&] {
    if (!lease_.in_progress() || request_.wants == Wants::kWork) return;
    const SteadyTime sent = lease_.answered();
    if (const auto* const refusal = std::get_if<LeaseRefusal>(&reading)) {
      return worker_refused(now, *refusal);
    }
    const WorkerView& view = std::get<WorkerView>(reading);
    std::string why = lost(view);
    if (!why.empty()) return fence(now, now + grace(settings_.duration), std::move(why));
    worker_uid_ = view.uid;
    lease_.confirmed();
    attempts_.recorded(*view.report, orders_);
    if (request_.wants == Wants::kRenewal) acknowledged(sent);
  });
}

SlotOrders Slots::looked(SteadyTime now, const AttemptId& id, const JobReading& reading) {
  return step(now, [&] {
    if (phase_ != Phase::kServing) return;
    attempts_.looked(now, id, reading, lease_.terminate_at(), orders_);
  });
}

SlotOrders Slots::message_read(SteadyTime now, const AttemptId& id, const JobReading& reading) {
  return step(now, [&] { attempts_.message_read(now, id, reading, orders_); });
}

SlotOrders Slots::happened(SteadyTime now, int slot, SlotEvent event) {
  return step(now, [&] { attempts_.happened(now, slot, std::move(event), orders_); });
}

SlotOrders Slots::asked_to_end(SteadyTime now) {
  return step(now, [&] {
    if (over() || pod_.is_asked_to_end()) return;
    pod_.asked_to_end(now);
    drain("asked to end");
  });
}

// -- deadlines ---------------------------------------------------------------------------------

void Slots::check_deadlines(SteadyTime now) {
  if (phase_ == Phase::kServing && attempts_.alive() && now >= lease_.terminate_at()) {
    fence(now, lease_.kill_at(), lease_.silence(now));
  }
  if (!over() && pod_.has_begun()) check_grace(now);
  if (phase_ == Phase::kFencing && now >= rounds_.due()) {
    rounds_.round(now);
    orders_.kill_everything = true;
  }
  // The agent is the container's first process, so its end kills what SIGKILL does not reach.
  if (phase_ == Phase::kFencing && rounds_.last(now, kill_limit(settings_.duration))) {
    finish(kFencedExitCode, fenced_why_);
    orders_.last_words = hurried_words(settings_.duration);
  }
  if (phase_ == Phase::kDone) return;
  attempts_.check_deadlines(now, orders_);
  const std::string late = lease_.give_up_late(now);
  if (late.empty()) return;
  orders_.abort_request = true;
  failed(now, late);
}

// The pod's grace: its commands end in time for a last report.
void Slots::check_grace(SteadyTime now) {
  if (pod_.is_asked_to_end() && now >= pod_.end()) {
    orders_.kill_everything = attempts_.alive();
    return finish(attempts_.alive() ? kFencedExitCode : 0,
                  attempts_.alive() ? "processes outlive the pod's grace" : "");
  }
  attempts_.kill_by(pod_.kill_by());
  if (now < pod_.stop_at() || std::exchange(stopping_, true)) return;
  attempts_.stop_all(now, orders_);
}

// -- answers -----------------------------------------------------------------------------------

void Slots::read_work(SteadyTime now, const WorkView& view, std::optional<SteadyTime> asked) {
  if (view.uid != work_.uid()) {
    if (named_) return work_is_gone(now, "the work Lease was deleted and created again");
    work_.begins(view.uid);
    attempts_.apply(now, Work{}, orders_);
  }
  if (!view.work) {
    const std::string& why = view.work.error().message;
    if (work_.not_understood(why)) {
      orders_.say.push_back("the work Lease is not understood: " + why);
    }
    return;
  }
  const Work& work = *view.work;
  work_.understood();
  if (named_ && work_.is_set_back(work, asked)) {
    return work_is_gone(now, "the work Lease was set back");
  }
  if (!work_.is_newer(work)) return;
  work_.obeys(now, work);
  attempts_.apply(now, work, orders_);
  if (work.end) pod_.marked(now, work.end->grace);
  if (work.draining) drain("the operator asks for it");
}

// The operator makes the Leases once it knows the pod. Afterwards it never makes them again for
// this worker.
void Slots::work_is_gone(SteadyTime now, const std::string& why) {
  if (named_) return fence(now, now + grace(settings_.duration), why);
  work_.is_gone();
  attempts_.apply(now, Work{}, orders_);
  failed(now, "there is no work Lease");
}

void Slots::worker_refused(SteadyTime now, const LeaseRefusal& refusal) {
  const bool is_gone = refusal.kind == LeaseRefusal::Kind::kGone;
  if (refusal.kind == LeaseRefusal::Kind::kConflict) return lease_.conflict(now);
  if (refusal.kind == LeaseRefusal::Kind::kFenced || (is_gone && named_)) {
    return fence(now, now + grace(settings_.duration), refusal.why);
  }
  if (is_gone) return failed(now, "there is no worker Lease");
  failed(now, refusal.why, refusal.retry_after);
}

void Slots::acknowledged(SteadyTime sent) {
  phase_ = Phase::kServing;
  lease_.acknowledged(sent);
  recorded_news_ = request_.news;
  recorded_draining_ = recorded_draining_ || request_.draining;
}

std::string Slots::lost(const WorkerView& view) const {
  if (named_ && view.uid != worker_uid_) return "the Lease was deleted and created again";
  if (view.holder.empty()) return "the Lease was taken from this worker";
  if (view.holder != settings_.holder) return "the Lease's holder is " + view.holder;
  // It may be the mark of a process that began attempts.
  if (!view.report) return "the Lease is not understood: " + view.report.error().message;
  if (view.report->life.empty() || view.report->life == settings_.life) return "";
  return "the container was restarted";
}

// The next request waits as long as the API server asks. One try must fit before each deadline.
void Slots::failed(SteadyTime now, const std::string& why, std::optional<Duration> asked) {
  const bool is_news = lease_.failed(now, why);
  if (phase_ == Phase::kStarting && is_news) {
    orders_.say.push_back("waiting for the Leases: " + why);
  }
  if (!asked) return;
  SteadyTime latest = now + settings_.duration / 3;
  if (attempts_.alive()) {
    latest = std::min(latest, lease_.terminate_at() - request_limit(settings_.duration));
  }
  if (pod_.has_begun()) latest = std::min(latest, pod_.end() - kLastTry);
  lease_.put_off(now, *asked, latest);
}

// -- ends --------------------------------------------------------------------------------------

void Slots::drain(const std::string& why) {
  if (!draining_) orders_.say.push_back("draining: " + why);
  draining_ = true;
  attempts_.drain(orders_);
}

void Slots::fence(SteadyTime now, SteadyTime kill_at, std::string why) {
  attempts_.drain(orders_);
  if (!attempts_.alive()) return finish(kFencedExitCode, std::move(why));
  phase_ = Phase::kFencing;
  fenced_why_ = std::move(why);
  kill_at = std::min(kill_at, lease_.kill_at());
  rounds_.begin_at(kill_at);
  if (lease_.give_up()) orders_.abort_request = true;
  attempts_.kill_by(kill_at);
  attempts_.stop_all(now, orders_);
}

void Slots::finish(int exit_code, std::string fenced) {
  attempts_.drain(orders_);
  phase_ = Phase::kDone;
  if (lease_.give_up()) orders_.abort_request = true;
  orders_.exit_code = exit_code;
  orders_.fenced = std::move(fenced);
  orders_.last_words = kLastWordsLimit;
}

// -- plans -------------------------------------------------------------------------------------

void Slots::plan(SteadyTime now) {
  orders_.wake_at = SteadyTime::max();
  plan_end();
  if (phase_ == Phase::kDone) return;
  const bool may_begin = phase_ == Phase::kServing && !draining_;
  attempts_.plan(now, may_begin ? std::optional(lease_.terminate_at()) : std::nullopt, orders_);
  if (phase_ == Phase::kFencing) {
    wake(rounds_.due());
    if (rounds_.began()) wake(*rounds_.began() + kill_limit(settings_.duration));
    return;
  }
  if (attempts_.alive()) wake(lease_.terminate_at());
  if (pod_.has_begun() && !stopping_) wake(pod_.stop_at());
  if (pod_.is_asked_to_end()) wake(pod_.end());
  plan_request(now);
}

// Whether nothing is left to do.
void Slots::plan_end() {
  if (phase_ == Phase::kDone) return;
  if (phase_ == Phase::kFencing) {
    if (!attempts_.alive()) finish(kFencedExitCode, fenced_why_);
    return;
  }
  if (attempts_.only_stuck()) return finish(kFencedExitCode, "processes cannot be killed");
  if (attempts_.stuck()) drain("processes cannot be killed");
  if (!pod_.is_asked_to_end() || !attempts_.empty()) return;
  // Before the first renewal nobody counts on this worker.
  if (recorded_draining_ || !named_) finish(0);
}

void Slots::plan_request(SteadyTime now) {
  const SteadyTime due = lease_.due(report_wanted());
  if (!lease_.in_progress() && now < due) return wake(due);
  if (!lease_.in_progress()) {
    lease_.send(now);
    request_ = Request{.wants = Wants::kRenewal, .news = attempts_.news(), .draining = draining_};
    if (!lease_.may_renew()) {
      request_.wants = Wants::kWorker;
      orders_.get_worker = true;
    } else if (!work_.heard_lately(now, lease_.renewed(), settings_.duration)) {
      request_.wants = Wants::kWork;
      orders_.get_work = true;
    } else {
      named_ = true;
      orders_.put = WorkerReport{.work_uid = work_.uid(),
                                 .seq = std::max<std::int64_t>(work_.seq(), 0),
                                 .life = settings_.life,
                                 .draining = draining_,
                                 .answers = attempts_.answers(now)};
    }
  }
  wake(lease_.late_at());
}

// When a renewal is due for the sake of what it reports.
SteadyTime Slots::report_wanted() const {
  if (draining_ && !recorded_draining_) return SteadyTime{};
  if (!lease_.renewed()) return SteadyTime::max();
  SteadyTime due = attempts_.report_due(*lease_.renewed());
  if (attempts_.news() > recorded_news_) {
    due = std::min(due, *lease_.renewed() + kPauseForEach * std::max(attempts_.count() - 1, 0));
  }
  return due;
}

void Slots::check() const {
  attempts_.check();
  const bool serves = phase_ == Phase::kServing;
  invariant(!over() || !lease_.in_progress(), "whoever fences itself asks for nothing more");
  invariant(!serves || (named_ && lease_.renewed()), "a worker serves once it has renewed");
  invariant(phase_ != Phase::kFencing || attempts_.alive(), "a fence lasts until nothing is alive");
  invariant(recorded_news_ <= attempts_.news(), "no more news is acknowledged than there was");
  invariant(draining_ || !recorded_draining_, "only a worker that drains has said so");
}

void Slots::wake(SteadyTime when) { orders_.wake_at = std::min(orders_.wake_at, when); }

}  // namespace holdfast::agent
