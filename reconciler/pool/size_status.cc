#include "reconciler/pool/size_status.h"

#include <algorithm>

#include "core/utf8.h"

namespace holdfast::reconciler {
namespace {

constexpr std::size_t kMessageLimit = 512;
constexpr const char* kCannotStart = "WorkersCannotStart";
constexpr const char* kAwaitNode = "WorkersAwaitNode";

std::string counted(std::int64_t workers) {
  return std::to_string(workers) + (workers == 1 ? " worker" : " workers");
}

// The first pod by name, so that its words stay the same as long as it is there.
const PoolWorker* first_of(const std::vector<const PoolWorker*>& workers) {
  const auto first = std::min_element(
      workers.begin(), workers.end(),
      [](const PoolWorker* a, const PoolWorker* b) { return a->pod.name < b->pod.name; });
  return first == workers.end() ? nullptr : *first;
}

std::string why_not_started(const PoolState& state, const StartFailures& failures) {
  if (const PoolWorker* const first = first_of(failures.failing())) {
    const std::string& trouble = first->pod.trouble;
    const std::string late =
        "it is not live " + human_duration(state.spec.start_deadline) + " after it got its node";
    return clean_text("pod " + first->pod.name + ": " + (trouble.empty() ? late : trouble),
                      kMessageLimit);
  }
  return state.refusal ? clean_text("no worker can start: " + state.refusal->why, kMessageLimit)
                       : "";
}

// What was said of the last failure. The pool's message may be about a field that is not known.
std::string last_words(const PoolStatus& status) {
  for (const Condition& condition : status.conditions) {
    if (condition.type != "Available" && condition.type != "Stalled") continue;  // somebody else's
    if (condition.reason == kCannotStart) return clean_text(condition.message, kMessageLimit);
    if (condition.reason == to_string(Reason::kNotKnownToThisVersion)) return "";
  }
  return clean_text(status.message, kMessageLimit);
}

// What the workers without a node wait for; empty: all have one.
std::string why_no_node(const PoolSeen& seen) {
  std::vector<const PoolWorker*> waiting;
  for (const PoolWorker* const worker : seen.starting) {
    if (!worker->bound) waiting.push_back(worker);
  }
  const PoolWorker* const first = first_of(waiting);
  if (!first) return "";
  std::string text = counted(static_cast<std::int64_t>(waiting.size()));
  text += waiting.size() == 1 ? " has no node yet" : " have no node yet";
  if (!first->pod.trouble.empty()) text += "; pod " + first->pod.name + ": " + first->pod.trouble;
  return clean_text(text, kMessageLimit);
}

void set(PoolStatus& status, const char* type, bool value, const char* reason,
         const std::string& message, Time now) {
  own_condition(status.conditions, type, value, now).set(value, reason, message, now);
}

void count(const PoolState& state, const PoolSeen& seen, PoolStatus& status) {
  status.observed_generation = state.generation;
  WorkerCounts workers;
  workers.starting = static_cast<std::int64_t>(seen.starting.size());
  workers.draining = static_cast<std::int64_t>(seen.draining.size());
  status.slots = status.busy_slots = 0;
  for (const PoolWorker* const worker : seen.live) {
    ++(worker->attempts > 0 ? workers.busy : workers.idle);
    status.slots += worker->pod.slots;
    status.busy_slots += std::min(worker->attempts, worker->pod.slots);
  }
  workers.total = workers.starting + workers.draining + workers.busy + workers.idle;
  status.workers = workers;
  status.waiting = state.waiting;
  status.oldest_since = state.oldest_since;
  if (status.oldest_since) {
    status.oldest_since = std::chrono::floor<seconds>(*status.oldest_since);
  }
  status.selector = std::string(kWorkerPoolLabel) + "=" + state.name;
}

struct Progress {
  const char* reason;
  std::string message;
};

Progress progress_of(const PoolSeen& seen, const PoolStatus& status, const std::string& no_node) {
  if (seen.old > 0) {
    const std::string text = counted(seen.old) + " of an older template";
    return {"RollingOut", no_node.empty() ? text : text + "; " + no_node};
  }
  if (!no_node.empty()) return {kAwaitNode, no_node};
  if (status.workers.starting > 0)
    return {"WorkersStarting", counted(status.workers.starting) + " not live yet"};
  if (status.workers.draining > 0) {
    return {"WorkersDraining", counted(status.workers.draining) + " without further work"};
  }
  return {"PoolAtRest", ""};
}

}  // namespace

PoolSeen sorted(const PoolState& state) {
  PoolSeen seen;
  for (const PoolWorker& worker : state.workers) {
    if (worker.pod.ended || worker.state == WorkerState::kCutOff) continue;
    const bool is_old = has_older_template(state, worker);
    if (worker.pod.deleting || worker.state == WorkerState::kDraining) {
      seen.draining.push_back(&worker);
      const bool holds_nothing = worker.pod.deleting && worker.attempts == 0;
      if (is_old && !holds_nothing) ++seen.rolling;
    } else if (worker.state == WorkerState::kLive) {
      seen.live.push_back(&worker);
    } else {
      seen.starting.push_back(&worker);
    }
    if (is_old) ++seen.old;
  }
  return seen;
}

PoolStatus next_status(const PoolState& state, const PoolSeen& seen, const StartFailures& failures,
                       const StartRecord& starts) {
  PoolStatus status = state.status;
  status.starts = starts;
  // Between two tries no pod may be there. Then the last words stay.
  const bool fails = status.starts.failed > 0;
  std::string why = fails ? why_not_started(state, failures) : "";
  if (fails && why.empty()) why = last_words(state.status);
  count(state, seen, status);
  const std::int64_t live = status.workers.busy + status.workers.idle;
  const bool available = live >= state.spec.min_workers;
  const std::string no_node = why_no_node(seen);
  const Progress progress = progress_of(seen, status, no_node);
  const bool rests = progress.message.empty();
  if (available) {
    set(status, "Available", true, "PoolAvailable", "", state.now);
  } else if (fails) {
    set(status, "Available", false, kCannotStart, why, state.now);
  } else if (!no_node.empty()) {
    set(status, "Available", false, kAwaitNode, no_node, state.now);
  } else {
    set(status, "Available", false, "WorkersStarting",
        std::to_string(live) + " of " + counted(state.spec.min_workers) + " live", state.now);
  }
  set(status, "Progressing", !rests, progress.reason, progress.message, state.now);
  if (!state.spec.unknown.empty()) {
    const char* const reason = to_string(Reason::kNotKnownToThisVersion);
    status.message = clean_text(
        "no worker is made, and no attempt begins, because this version of the operator does not "
        "know: " +
            state.spec.unknown,
        kMessageLimit);
    set(status, "Stalled", true, reason, status.message, state.now);
    return status;
  }
  const bool stalled = status.starts.failed >= kStalledAfter;
  set(status, "Stalled", stalled, stalled ? kCannotStart : "PoolProgresses", stalled ? why : "",
      state.now);
  status.message = fails ? why : progress.message;
  return status;
}

}  // namespace holdfast::reconciler
