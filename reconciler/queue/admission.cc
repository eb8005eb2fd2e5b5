#include "reconciler/queue/admission.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/time.h"
#include "reconciler/queue/rate.h"

namespace holdfast::reconciler {
namespace {

bool is_full(const QueueSpec& spec, const Line& line) {
  return spec.concurrency && line.used() >= *spec.concurrency;
}

void claim(const QueueView& view, const Line& line, QueueDecision& decision) {
  // A queue that nobody has claimed yet is claimed at once, so that its first job does not wait.
  const bool is_right = view.status.running == line.used() && view.status.waiting == 0 &&
                        view.status.observed_generation == view.generation &&
                        view.status.admitting == line.open_admissions();
  if (line.waiting() == 0 && !view.status.holder.empty() && is_right) return;
  QueueStatus next = view.status;
  next.holder = view.self;
  for (const Admission& carried : view.carried) {
    const auto known = std::find_if(next.admitting.begin(), next.admitting.end(),
                                    [&](const Admission& one) { return one.uid == carried.uid; });
    if (known != next.admitting.end()) {
      known->attempt = std::max(known->attempt, carried.attempt);
    } else if (next.admitting.size() < kAdmissionLimit) {
      next.admitting.push_back(carried);
    }
  }
  decision.write = std::move(next);
  decision.claims = true;
}

struct Why {
  const char* reason;
  std::string message;
};

// As if the user held it: so nothing takes a token, and the jobs keep their places.
QueueSpec held_by_guard(const QueueView& view) {
  QueueSpec spec = view.spec;
  spec.hold = spec.hold || view.guard.holds;
  return spec;
}

Why why_it_stops(const QueueView& view, const QueueStatus& next, const Line& line) {
  const QueueSpec& spec = view.spec;
  if (spec.hold) return {"Held", "spec.hold is true: no job starts"};
  if (view.guard.holds) {
    return {to_string(Reason::kGuardMissing), "no job starts: " + view.guard.fault};
  }
  if (!spec.unknown.empty()) {
    return {to_string(Reason::kNotKnownToThisVersion),
            "no job starts, because this version of the operator does not know: " + spec.unknown};
  }
  if (next.tokens && next.tokens->count == 0 && line.waiting() > 0) {
    const Time next_one = std::chrono::ceil<seconds>(next_token(*next.tokens, *spec.rate));
    return {"RateLimited",
            "the rate has no token left; the next one comes at " + format_time(next_one)};
  }
  if (is_full(spec, line)) return {"Full", "as many jobs run as spec.concurrency allows"};
  if (next.admitting.size() >= kAdmissionLimit) {
    return {"AdmissionsOpen",
            std::to_string(kAdmissionLimit) + " admitted jobs have not started yet"};
  }
  if (line.waiting() > 0 && !line.next()) {
    return {"KeysFull", "the keys of all waiting jobs have as many permits as they may"};
  }
  return {"PermitsFree", "no job waits"};
}

// The schema of conditions: reasons are words, messages are for people.
void report(const Why& why, Time now, QueueStatus& next) {
  const bool admits = std::string_view(why.reason) == "PermitsFree";
  Condition& condition = own_condition(next.conditions, "Admitting", admits, now);
  const auto generation = condition.observed_generation;
  condition.set(admits, why.reason, why.message, now);
  condition.observed_generation = generation;
}

// Gives permits to the first of the line, as many as there may be.
void admit(const QueueSpec& spec, QueueStatus& next, Line& line, QueueDecision& decision) {
  while (spec.admits() && !is_full(spec, line) && next.admitting.size() < kAdmissionLimit &&
         (!next.tokens || next.tokens->count > 0)) {
    const QueuedJob* const job = line.next();
    if (!job) return;
    const Admission admission{job->uid, job->attempt};
    line.admit(admission.uid);
    next.admitting.push_back(admission);
    decision.admitted.push_back(admission.uid);
    if (next.tokens) --next.tokens->count;
  }
}

Duration pause_after_write(const Line& line) {
  return std::min<Duration>(kAdmissionPause, kAdmissionPauseOfPermit * line.used());
}

// Seconds, as in status, and no write for a record that says the same.
std::optional<Time> whole(const std::optional<Time>& time) {
  return time ? std::optional<Time>(std::chrono::floor<seconds>(*time)) : std::nullopt;
}

}  // namespace

bool could_admit(const QueueSpec& spec, const std::optional<Tokens>& tokens, Time now,
                 const Line& line) {
  if (!spec.admits() || is_full(spec, line) || !line.next()) return false;
  if (line.open_admissions().size() >= kAdmissionLimit) return false;
  return !spec.rate || refill(tokens, *spec.rate, now).count > 0;
}

QueueDecision decide_queue(const QueueView& view, Line& line) {
  QueueDecision decision;
  line.limit_keys(view.spec.concurrency_per_key);
  if (!view.claimed) {
    claim(view, line, decision);
    return decision;
  }
  if (!view.may_count) {
    decision.awaits_caches = true;
    return decision;
  }
  if (view.guard.holds && view.guard.fault.empty()) {
    decision.wake_after = kGuardLook;
    return decision;
  }
  const QueueSpec spec = held_by_guard(view);
  const Duration pause = pause_after_write(line) - view.since_write;
  if (pause > Duration::zero() && could_admit(spec, view.status.tokens, view.now, line)) {
    decision.wake_after = pause;
    return decision;
  }
  QueueStatus next = view.status;
  next.admitting = line.open_admissions();
  next.tokens.reset();
  if (spec.rate) next.tokens = refill(view.status.tokens, *spec.rate, view.now);
  admit(spec, next, line, decision);
  next.running = line.used();
  next.waiting = line.waiting();
  next.oldest_since = whole(line.oldest_since());
  next.head = line.head(kHeadLimit);
  next.observed_generation = view.generation;
  report(why_it_stops(view, next, line), view.now, next);
  const bool is_empty_handed = spec.rate && next.tokens->count == 0 && line.next() && spec.admits();
  if (is_empty_handed && !is_full(spec, line)) {
    decision.wake_after =
        std::max<Duration>(next_token(*next.tokens, *spec.rate) - view.now, Duration::zero());
  }
  // Tokens that only came back are no news: the record says from when they count.
  if (decision.admitted.empty() && spec.rate && view.status.tokens)
    next.tokens = view.status.tokens;
  if (decision.admitted.empty() && next == view.status) return decision;
  // Whoever changed the spec looks at once what became of it.
  const bool is_asked = view.status.observed_generation != view.generation;
  const Duration left = kQueueRefresh - view.since_write;
  if (decision.admitted.empty() && !is_asked && left > Duration::zero()) {
    decision.wake_after = std::min(decision.wake_after.value_or(left), left);
    return decision;
  }
  decision.write = std::move(next);
  return decision;
}

}  // namespace holdfast::reconciler
