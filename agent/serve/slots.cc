#include "agent/serve/slots.h"

#include <algorithm>
#include <utility>

#include "agent/base/lease_times.h"
#include "core/agent_protocol.h"

namespace holdfast::agent {
namespace {

using std::chrono::seconds;

// The watch may be as quiet as this, without a read between two renewals. So attempts that end one
// after the other do not cost a read each.
Duration may_be_quiet(Duration duration) { return retry_pause(duration); }
// The busier the worker is, the longer its next news wait for each other after a renewal, so that
// they share one: so long for each other attempt.
constexpr std::chrono::milliseconds kPauseForEach{25};

}  // namespace

Slots::Slots(SlotSettings settings, Random& random)
    : settings_(std::move(settings)),
      random_(random),
      attempts_({settings_.slots, settings_.duration, settings_.stop_grace}, random) {}

template <class Event>
SlotOrders Slots::step(SteadyTime now, Event event) {
  orders_ = SlotOrders{};
  check_deadlines(now);
  if (phase_ != Phase::kDone) event();
  // The event may have brought an end of the pod that leaves no time.
  if (!over() && ending_) {
    check_grace(now);
    attempts_.check_deadlines(now, orders_);
  }
  plan(now);
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
    if (reading.kind == WorkReading::Kind::kGone) work_is_gone(now, reading.why);
    if (reading.kind != WorkReading::Kind::kRead) return;
    const bool news = reading.work && (reading.uid != work_uid_ || reading.work->seq > seq_);
    if (news) heard_ = now;
    read_work(now, reading, std::nullopt);
  });
}

SlotOrders Slots::work_answered(SteadyTime now, const WorkReading& reading) {
  return step(now, [&] {
    if (!pending_ || pending_->request != Request::kGetWork) return;
    const Pending request = *std::exchange(pending_, std::nullopt);
    if (reading.kind == WorkReading::Kind::kNone) {
      return failed(now, reading.why, reading.retry_after);
    }
    if (reading.kind == WorkReading::Kind::kGone) return work_is_gone(now, reading.why);
    heard_ = request.sent;
    read_work(now, reading, request.sent);
  });
}

SlotOrders Slots::worker_answered(SteadyTime now, const WorkerReading& reading) {
  return step(now, [&] {
    if (!pending_ || pending_->request == Request::kGetWork) return;
    const Pending request = *std::exchange(pending_, std::nullopt);
    switch (reading.kind) {
      case WorkerReading::Kind::kNone:
        return failed(now, reading.why, reading.retry_after);
      case WorkerReading::Kind::kConflict:
        return conflict(now);
      case WorkerReading::Kind::kGone:
        return worker_is_gone(now, reading.why);
      case WorkerReading::Kind::kFenced:
        return fence(now, now + grace(settings_.duration), reading.why);
      case WorkerReading::Kind::kLease:
        break;
    }
    std::string why = lost(reading);
    if (!why.empty()) return fence(now, now + grace(settings_.duration), std::move(why));
    worker_uid_ = reading.uid;
    may_renew_ = true;
    attempts_.told(*reading.report, orders_);
    if (request.request == Request::kPut) renewed(request);
  });
}

SlotOrders Slots::looked(SteadyTime now, const AttemptId& id, const JobReading& reading) {
  return step(now, [&] {
    if (phase_ == Phase::kServing) attempts_.looked(now, id, reading, begin_before(), orders_);
  });
}

SlotOrders Slots::missed(SteadyTime now, int slot) {
  return step(now, [&] { attempts_.missed(now, slot, orders_); });
}

SlotOrders Slots::message_read(SteadyTime now, const AttemptId& id, const JobReading& reading) {
  return step(now, [&] { attempts_.message_read(now, id, reading, orders_); });
}

SlotOrders Slots::progressed(SteadyTime now, int slot, std::string message) {
  return step(now, [&] { attempts_.progressed(now, slot, std::move(message)); });
}

SlotOrders Slots::checkpointed(SteadyTime now, int slot, std::int64_t number, std::string text) {
  return step(now, [&] { attempts_.checkpointed(slot, number, std::move(text)); });
}

SlotOrders Slots::ended(SteadyTime now, int slot, int exit_code, std::string result) {
  return step(now, [&] { attempts_.ended(now, slot, exit_code, std::move(result), orders_); });
}

SlotOrders Slots::all_dead(SteadyTime now, int slot) {
  return step(now, [&] { attempts_.all_dead(slot); });
}

SlotOrders Slots::told_to_end(SteadyTime now) {
  return step(now, [&] {
    if (over() || told_to_end_) return;
    told_to_end_ = now;
    pod_ends(now);
    drain("asked to end");
  });
}

// -- deadlines ---------------------------------------------------------------------------------

void Slots::check_deadlines(SteadyTime now) {
  const Duration duration = settings_.duration;
  if (phase_ == Phase::kServing && attempts_.alive() && now >= begin_before()) {
    std::string why = "no renewal was acknowledged for " + human_duration(now - *renewed_) +
                      ", the Lease is " + human_duration(duration) + " long";
    if (!last_failure_.empty()) why += " (" + last_failure_ + ")";
    fence(now, *renewed_ + kill_after(duration), std::move(why));
  }
  if (!over() && ending_) check_grace(now);
  if (phase_ == Phase::kFencing && now >= std::max(kill_at_, kill_again_)) {
    if (!killed_) killed_ = now;
    kill_again_ = now + kKillAgain;
    orders_.kill_everything = true;
  }
  // The agent is the container's first process, so its end kills what SIGKILL does not reach.
  if (phase_ == Phase::kFencing && killed_ && now - *killed_ >= kill_limit(duration)) {
    finish(kFencedExitCode, fenced_why_);
    orders_.last_words = hurried_words(duration);
  }
  if (phase_ == Phase::kDone) return;
  attempts_.check_deadlines(now, orders_);
  if (!pending_ || now - pending_->sent < request_limit(duration)) return;
  // So late answers are ignored: by then the Lease may belong to somebody else.
  pending_.reset();
  orders_.abort_request = true;
  failed(now, "the API server did not answer within " + human_duration(request_limit(duration)));
}

// The pod's grace: its commands end in time for a last report.
void Slots::check_grace(SteadyTime now) {
  if (told_to_end_ && now >= pod_end()) {
    orders_.kill_everything = attempts_.alive();
    return finish(attempts_.alive() ? kFencedExitCode : 0,
                  attempts_.alive() ? "processes outlive the pod's grace" : "");
  }
  attempts_.kill_by(kill_by());
  if (now < stop_at() || std::exchange(stopping_, true)) return;
  attempts_.stop_all(now, orders_);
}

void Slots::pod_ends(SteadyTime now) {
  if (!ending_) ending_ = now;
}

// After a second deletion with a shorter grace the kubelet waits that long again.
void Slots::learn_grace(SteadyTime now, Duration grace) {
  if (!told_grace_) {
    told_end_ = *ending_ + grace;
  } else if (grace < *told_grace_) {
    told_end_ = std::min(*told_end_, now + grace);
  }
  told_grace_ = grace;
}

SteadyTime Slots::pod_end() const {
  return told_end_.value_or(*ending_ + std::min(kAssumedGrace, settings_.pod_grace));
}

SteadyTime Slots::kill_by() const { return std::max(pod_end() - kBeforeEnd, *ending_); }

// When the commands are asked to end, because the pod does.
SteadyTime Slots::stop_at() const {
  const Duration wait = told_grace_ ? Duration::zero() : mark_wait(pod_end() - *ending_);
  return std::max(kill_by() - settings_.stop_grace, *ending_ + wait);
}

SteadyTime Slots::begin_before() const { return *renewed_ + terminate_after(settings_.duration); }

// -- answers -----------------------------------------------------------------------------------

void Slots::read_work(SteadyTime now, const WorkReading& reading, std::optional<SteadyTime> asked) {
  if (reading.uid != work_uid_) {
    if (named_) return work_is_gone(now, "the work Lease was deleted and created again");
    work_uid_ = reading.uid;
    seq_ = -1;
    attempts_.apply(now, Work{}, orders_);
  }
  if (!reading.work) {
    if (reading.why != not_understood_) {
      orders_.say.push_back("the work Lease is not understood: " + reading.why);
    }
    not_understood_ = reading.why;
    return;
  }
  not_understood_.clear();
  if (is_set_back(*reading.work, asked)) return work_is_gone(now, "the work Lease was set back");
  // The watch and the reads may overtake each other.
  if (reading.work->seq <= seq_) return;
  seq_ = reading.work->seq;
  words_ = encode_work(*reading.work);
  applied_ = now;
  attempts_.apply(now, *reading.work, orders_);
  if (reading.work->end) {
    pod_ends(now);
    learn_grace(now, reading.work->end->grace);
  }
  if (reading.work->draining) drain("the operator asks for it");
}

// What was asked for later shows no earlier version.
bool Slots::is_set_back(const Work& work, std::optional<SteadyTime> asked) const {
  if (!named_) return false;
  if (work.seq == seq_) return encode_work(work) != words_;
  return work.seq < seq_ && asked && *asked > applied_;
}

// The operator makes the Leases once it knows the pod. Afterwards it never makes them again for
// this worker.
void Slots::work_is_gone(SteadyTime now, const std::string& why) {
  if (named_) return fence(now, now + grace(settings_.duration), why);
  work_uid_.clear();
  attempts_.apply(now, Work{}, orders_);
  failed(now, "there is no work Lease");
}

void Slots::worker_is_gone(SteadyTime now, const std::string& why) {
  if (named_) return fence(now, now + grace(settings_.duration), why);
  failed(now, "there is no worker Lease");
}

void Slots::renewed(const Pending& request) {
  phase_ = Phase::kServing;
  renewed_ = request.sent;
  told_news_ = request.news;
  told_draining_ = told_draining_ || request.draining;
  const Duration third = settings_.duration / 3;
  next_renewal_ = request.sent + third - up_to(random_, third, kRenewalJitter);
  not_before_ = SteadyTime{};
  conflicts_ = 0;
  last_failure_.clear();
}

std::string Slots::lost(const WorkerReading& reading) const {
  if (named_ && reading.uid != worker_uid_) return "the Lease was deleted and created again";
  if (reading.holder.empty()) return "the Lease was taken from this worker";
  if (reading.holder != settings_.holder) return "the Lease's holder is " + reading.holder;
  // It may be the mark of a process that began attempts.
  if (!reading.report) return "the Lease is not understood: " + reading.why;
  if (reading.report->life.empty() || reading.report->life == settings_.life) return "";
  return "the container was restarted";
}

void Slots::failed(SteadyTime now, const std::string& why, std::optional<Duration> asked) {
  if (phase_ == Phase::kStarting) {
    may_renew_ = false;
    not_before_ = now + about(random_, kPoll, kPollJitter);
    if (why != last_failure_) orders_.say.push_back("waiting for the Leases: " + why);
  } else {
    not_before_ = now + about(random_, retry_pause(settings_.duration), kRetryJitter);
  }
  last_failure_ = why;
  if (asked) put_off(now, *asked);
}

// The next request waits as long as the API server asks. One try must fit before each deadline.
void Slots::put_off(SteadyTime now, Duration asked) {
  SteadyTime latest = now + settings_.duration / 3;
  if (attempts_.alive()) {
    latest = std::min(latest, begin_before() - request_limit(settings_.duration));
  }
  if (ending_) latest = std::min(latest, pod_end() - kLastTry);
  not_before_ =
      std::max(not_before_, std::min(now + asked + up_to(random_, asked, kRetryJitter), latest));
}

// The Lease is read again at once. After repeated conflicts there is a pause before each read.
void Slots::conflict(SteadyTime now) {
  may_renew_ = false;
  if (++conflicts_ > 1) {
    not_before_ = now + about(random_, retry_pause(settings_.duration), kRetryJitter);
  }
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
  kill_at_ = std::min(kill_at, *renewed_ + kill_after(settings_.duration));
  orders_.abort_request = orders_.abort_request || pending_.has_value();
  pending_.reset();
  attempts_.kill_by(kill_at_);
  attempts_.stop_all(now, orders_);
}

void Slots::finish(int exit_code, std::string fenced) {
  attempts_.drain(orders_);
  phase_ = Phase::kDone;
  orders_.abort_request = orders_.abort_request || pending_.has_value();
  pending_.reset();
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
  attempts_.plan(now, may_begin ? std::optional(begin_before()) : std::nullopt, orders_);
  if (phase_ == Phase::kFencing) {
    wake(std::max(kill_at_, kill_again_));
    if (killed_) wake(*killed_ + kill_limit(settings_.duration));
    return;
  }
  if (attempts_.alive()) wake(begin_before());
  if (ending_ && !stopping_) wake(stop_at());
  if (told_to_end_) wake(pod_end());
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
  if (!told_to_end_ || !attempts_.empty()) return;
  // Before the first renewal nobody counts on this worker.
  if (told_draining_ || !named_) finish(0);
}

void Slots::plan_request(SteadyTime now) {
  if (!pending_ && now < request_due()) return wake(request_due());
  if (!pending_) {
    pending_ = Pending{
        .request = Request::kPut, .sent = now, .news = attempts_.news(), .draining = draining_};
    if (!may_renew_) {
      pending_->request = Request::kGetWorker;
      orders_.get_worker = true;
    } else if (!heard_lately(now)) {
      pending_->request = Request::kGetWork;
      orders_.get_work = true;
    } else {
      named_ = true;
      orders_.put = WorkerReport{.work_uid = work_uid_,
                                 .seq = std::max<std::int64_t>(seq_, 0),
                                 .life = settings_.life,
                                 .draining = draining_,
                                 .answers = attempts_.answers(now)};
    }
  }
  wake(pending_->sent + request_limit(settings_.duration));
}

SteadyTime Slots::request_due() const {
  if (phase_ == Phase::kStarting || !may_renew_) return not_before_;
  SteadyTime due = std::min(next_renewal_, attempts_.report_due(*renewed_));
  if (attempts_.news() > told_news_) {
    due = std::min(due, *renewed_ + kPauseForEach * std::max(attempts_.count() - 1, 0));
  }
  if (draining_ && !told_draining_) due = SteadyTime{};
  return std::max(due, not_before_);
}

void Slots::wake(SteadyTime when) { orders_.wake_at = std::min(orders_.wake_at, when); }

bool Slots::heard_lately(SteadyTime now) const {
  if (!heard_ || work_uid_.empty()) return false;
  const bool since_renewal = !renewed_ || *heard_ > *renewed_;
  return now - *heard_ <=
         (since_renewal ? settings_.duration / 3 : may_be_quiet(settings_.duration));
}

}  // namespace holdfast::agent
