#include "agent/serve/attempts.h"

#include <algorithm>
#include <utility>

#include "agent/base/lease_times.h"
#include "core/invariant.h"

namespace holdfast::agent {
namespace {

using std::chrono::floor;
using std::chrono::seconds;

// SIGKILL is repeated often at first, then less: processes that hang in a device may need long.
constexpr Duration kOftenFor = seconds(1);
constexpr Duration kThenEvery = seconds(1);
// From then on processes that got SIGKILL are taken for ones that only the agent's end can kill.
// They may belong to another user. A machine that is only busy needs less.
constexpr Duration kStuckAfter = seconds(10);

std::string name_of(const AttemptId& id, const std::string& job_name) {
  return "job " + job_name + ", run " + std::to_string(id.run) + ", attempt " +
         std::to_string(id.attempt);
}

}  // namespace

Attempts::Attempts(Settings settings, Random& random) : settings_(settings), random_(random) {}

// -- entries -----------------------------------------------------------------------------------

void Attempts::apply(SteadyTime now, const Work& work, SlotOrders& orders) {
  for (One& one : all_) one.gone = true;
  for (const WorkEntry& entry : work.entries) {
    auto one =
        std::find_if(all_.begin(), all_.end(), [&](const One& old) { return old.id == entry.id; });
    if (one == all_.end()) {
      one = all_.emplace(all_.end());
      one->id = entry.id;
      one->job_name = entry.job_name;
    }
    one->gone = false;
    one->message.asked = std::max(one->message.asked, entry.message);
    // That it was asked to stop is never taken back.
    if (entry.stop) stop(now, *one, orders);
  }
  for (One& one : all_) {
    if (one.gone && one.state == State::kRuns) die(now, one, AnswerKind::kStopped, orders);
    if (one.gone && one.state == State::kLooks) orders.abort_looks.push_back(one.id);
  }
  forget_gone();
  if (work.draining || draining_) drain(orders);
}

// A report that was too long may have room now for the answers that did not fit.
void Attempts::forget_gone() {
  const auto forgotten =
      std::erase_if(all_, [](const One& one) { return one.gone && !one.alive(); });
  const bool unrecorded = std::any_of(all_.begin(), all_.end(), [](const One& one) {
    return one.state == State::kOver && !one.recorded;
  });
  if (forgotten > 0 && unrecorded) ++news_;
}

void Attempts::drain(SlotOrders& orders) {
  draining_ = true;
  for (One& one : all_) hand_back(one, orders);
}

void Attempts::stop_all(SteadyTime now, SlotOrders& orders) {
  for (One& one : all_) {
    if (one.state == State::kRuns) stop(now, one, orders);
  }
}

// -- looks -------------------------------------------------------------------------------------

void Attempts::looked(SteadyTime now, const AttemptId& id, const JobReading& reading,
                      SteadyTime begin_before, SlotOrders& orders) {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const One& one) {
    return one.state == State::kLooks && one.id == id;
  });
  if (found == all_.end()) return;
  One& one = *found;
  one.message.got = one.message.sent;
  if (reading.kind == JobReading::Kind::kNone) {
    one.give_slot_back();
    return put_off(now, one, reading.why, reading.retry_after, orders);
  }
  if (reading.kind == JobReading::Kind::kOther) {
    orders.say.push_back("hands back " + name_of(one.id, one.job_name) + ": " + reading.why);
    one.give_slot_back();
    return is_over(one, AnswerKind::kReturned);
  }
  // The renewal that it needs is late. Afterwards the job is looked at again.
  if (now >= begin_before) return one.give_slot_back();
  one.state = State::kRuns;
  one.reports.begins(now, reading.progress_deadline);
  orders.starts.push_back({one.slot, one.id, begin_before});
}

void Attempts::put_off(SteadyTime now, One& one, const std::string& why,
                       std::optional<Duration> asked, SlotOrders& orders) {
  one.look.not_before = now + about(random_, retry_pause(settings_.duration), kRetryJitter);
  if (asked) {
    const Duration pause = std::min(*asked, settings_.duration / 3);
    one.look.not_before =
        std::max(one.look.not_before, now + pause + up_to(random_, pause, kRetryJitter));
  }
  if (why == one.look.last_failure) return;
  one.look.last_failure = why;
  orders.say.push_back("cannot read " + name_of(one.id, one.job_name) + ": " + why);
}

void Attempts::plan(SteadyTime now, std::optional<SteadyTime> begin_before, SlotOrders& orders) {
  const auto wake = [&](SteadyTime when) { orders.wake_at = std::min(orders.wake_at, when); };
  for (One& one : all_) {
    if (one.state == State::kWaits && begin_before && now < *begin_before) {
      const std::optional<int> slot = free_slot();
      if (slot && now < one.look.not_before) wake(one.look.not_before);
      if (slot && now >= one.look.not_before) {
        one.state = State::kLooks;
        one.slot = *slot;
        one.look.sent = now;
        one.message.sent = one.message.asked;
        orders.looks.push_back({one.slot, one.id, one.job_name});
      }
    }
    if (one.lacks_message()) read_message(now, one, orders);
    if (one.state == State::kLooks) wake(one.look.sent + request_limit(settings_.duration));
    if (one.state == State::kRuns && one.asked) wake(kill_at(one));
    if (one.state == State::kDies) {
      wake(one.rounds.due());
      if (!one.stuck) wake(*one.rounds.began() + kStuckAfter);
    }
  }
}

std::optional<int> Attempts::free_slot() const {
  for (int slot = 0; slot < settings_.slots; ++slot) {
    const bool taken =
        std::any_of(all_.begin(), all_.end(), [&](const One& one) { return one.slot == slot; });
    if (!taken) return slot;
  }
  return std::nullopt;
}

// -- messages ----------------------------------------------------------------------------------

void Attempts::read_message(SteadyTime now, One& one, SlotOrders& orders) {
  if (!one.message.reads && now >= one.look.not_before) {
    one.message.reads = true;
    one.look.sent = now;
    one.message.sent = one.message.asked;
    orders.messages.push_back({one.slot, one.id, one.job_name});
  }
  const SteadyTime due =
      one.message.reads ? one.look.sent + request_limit(settings_.duration) : one.look.not_before;
  orders.wake_at = std::min(orders.wake_at, due);
}

void Attempts::message_read(SteadyTime now, const AttemptId& id, const JobReading& reading,
                            SlotOrders& orders) {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const One& one) {
    return one.state == State::kRuns && one.message.reads && one.id == id;
  });
  if (found == all_.end()) return;
  found->message.reads = false;
  if (reading.kind == JobReading::Kind::kNone) {
    return put_off(now, *found, reading.why, reading.retry_after, orders);
  }
  found->message.got = found->message.sent;
}

// -- ends --------------------------------------------------------------------------------------

void Attempts::stop(SteadyTime now, One& one, SlotOrders& orders) {
  hand_back(one, orders);
  if (one.state != State::kRuns || one.asked) return;
  orders.terminate.push_back(one.slot);
  one.asked = now;
}

// If it has not begun, it never does.
void Attempts::hand_back(One& one, SlotOrders& orders) {
  if (one.state != State::kWaits && one.state != State::kLooks) return;
  if (one.state == State::kLooks) orders.abort_looks.push_back(one.id);
  one.give_slot_back();
  is_over(one, AnswerKind::kReturned);
}

void Attempts::happened(SteadyTime now, int slot, SlotEvent event, SlotOrders& orders) {
  const auto one = std::find_if(all_.begin(), all_.end(),
                                [&](const One& it) { return it.slot == slot && it.alive(); });
  if (one == all_.end()) return;
  const bool runs = one->state == State::kRuns;
  if (auto* const progress = std::get_if<Progressed>(&event)) {
    one->reports.progressed(now, std::move(progress->message));
  } else if (auto* const checkpoint = std::get_if<Checkpointed>(&event)) {
    one->reports.checkpointed(checkpoint->number, std::move(checkpoint->text));
  } else if (auto* const end = std::get_if<Ended>(&event); end && runs) {
    one->exit_code = end->exit_code;
    one->result = std::move(end->result);
    die(now, *one, one->asked ? AnswerKind::kStopped : AnswerKind::kEnded, orders);
  } else if (std::holds_alternative<Missed>(event) && runs) {
    missed(now, *one, orders);
  } else if (std::holds_alternative<AllDead>(event) && !runs) {
    all_dead(*one);
  }
}

// A report may have said that it runs.
void Attempts::missed(SteadyTime now, One& one, SlotOrders& orders) {
  if (one.asked) return die(now, one, AnswerKind::kStopped, orders);
  one.message.reads = false;
  one.look.not_before = now + about(random_, retry_pause(settings_.duration), kRetryJitter);
  one.give_slot_back();
  if (draining_) is_over(one, AnswerKind::kReturned);
}

void Attempts::die(SteadyTime now, One& one, AnswerKind kind, SlotOrders& orders) {
  one.state = State::kDies;
  one.kind = kind;
  one.rounds.round(now);
  orders.kill.push_back(one.slot);
}

void Attempts::all_dead(One& one) {
  one.slot = -1;
  one.state = State::kOver;
  if (one.gone) return forget_gone();
  is_over(one, one.kind);
}

void Attempts::is_over(One& one, AnswerKind kind) {
  one.state = State::kOver;
  one.kind = kind;
  one.stuck = false;
  ++news_;
}

void Attempts::check_deadlines(SteadyTime now, SlotOrders& orders) {
  for (One& one : all_) {
    if (one.state == State::kLooks && now - one.look.sent >= request_limit(settings_.duration)) {
      orders.abort_looks.push_back(one.id);
      one.give_slot_back();
      put_off(now, one, "the API server does not answer", std::nullopt, orders);
    }
    if (one.lacks_message() && one.message.reads &&
        now - one.look.sent >= request_limit(settings_.duration)) {
      orders.abort_looks.push_back(one.id);
      one.message.reads = false;
      put_off(now, one, "the API server does not answer", std::nullopt, orders);
    }
    if (one.state == State::kRuns && one.asked && now >= kill_at(one)) {
      die(now, one, AnswerKind::kStopped, orders);
    }
    if (one.state != State::kDies) continue;
    if (now >= one.rounds.due()) {
      one.rounds.round(now, one.rounds.last(now, kOftenFor) ? kThenEvery : kKillAgain);
      orders.kill.push_back(one.slot);
    }
    if (!one.stuck && one.rounds.last(now, kStuckAfter)) {
      one.stuck = true;
      orders.say.push_back("processes of " + name_of(one.id, one.job_name) + " do not die");
    }
  }
}

bool Attempts::alive() const {
  return std::any_of(all_.begin(), all_.end(), [](const One& one) { return one.alive(); });
}

bool Attempts::stuck() const {
  return std::any_of(all_.begin(), all_.end(), [](const One& one) { return one.stuck; });
}

bool Attempts::only_stuck() const {
  return stuck() && std::all_of(all_.begin(), all_.end(), [](const One& one) { return one.stuck; });
}

void Attempts::check() const {
  std::vector<int> in_slot(static_cast<std::size_t>(settings_.slots));
  for (const One& one : all_) {
    invariant(one.has_slot() == (one.slot >= 0), "an attempt has a slot from its look to its end");
    invariant(one.slot < settings_.slots, "an attempt has a slot that exists");
    if (!one.has_slot()) continue;
    invariant(++in_slot[static_cast<std::size_t>(one.slot)] == 1, "a slot has one attempt");
  }
}

// -- reports -----------------------------------------------------------------------------------

std::vector<Answer> Attempts::answers(SteadyTime now) {
  std::vector<Answer> answers;
  for (One& one : all_) {
    if (one.gone || one.state == State::kWaits || one.state == State::kLooks) continue;
    one.reports.sent();
    Answer& answer = answers.emplace_back();
    answer.id = one.id;
    answer.mark = one.reports.mark();
    answer.message = one.reports.message();
    answer.checkpoint = one.reports.checkpoint();
    if (one.state == State::kOver) answer.kind = one.kind;
    if (answer.kind == AnswerKind::kRunning) {
      answer.age_seconds = floor<seconds>(one.reports.age(now)).count();
    }
    if (answer.kind == AnswerKind::kEnded) {
      answer.exit_code = one.exit_code;
      answer.result = one.result;
    }
  }
  return answers;
}

// What a long report left out is not there, and so is not recorded.
void Attempts::recorded(const WorkerReport& report, SlotOrders& orders) {
  for (const Answer& answer : report.answers) {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [&](const One& one) { return one.id == answer.id; });
    if (found == all_.end()) continue;
    One& one = *found;
    // A later report may have had no more room for it.
    one.recorded = one.state == State::kOver && answer.kind == one.kind;
    one.reports.has(answer.mark, seconds(answer.age_seconds));
    if (!one.alive() || answer.checkpoint != one.reports.sent_checkpoint()) continue;
    if (const auto kept = one.reports.keep()) orders.kept.push_back({one.slot, *kept});
  }
}

SteadyTime Attempts::report_due(SteadyTime renewed) const {
  SteadyTime due = SteadyTime::max();
  for (const One& one : all_) {
    if (one.state != State::kRuns || one.gone) continue;
    due = std::min(due, one.reports.due(renewed, settings_.duration));
  }
  return due;
}

}  // namespace holdfast::agent
