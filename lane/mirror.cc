#include "lane/mirror.h"

#include <algorithm>

namespace holdfast::lane {
namespace {

Json* find_condition(Json& status, const std::string& type) {
  if (!status.contains("conditions") || !status["conditions"].is_array()) return nullptr;
  for (Json& condition : status["conditions"]) {
    if (string_at(condition, "type") == type) return &condition;
  }
  return nullptr;
}

bool holds(Json& status, const std::string& type) {
  const Json* const condition = find_condition(status, type);
  return condition && string_at(*condition, "status") == "True";
}

// One that has this value stays as it is.
void set_condition(Json& status, const std::string& type, bool value, const std::string& reason,
                   const std::string& message, Time now) {
  const char* const text = value ? "True" : "False";
  Json condition = {{"type", type},
                    {"status", text},
                    {"reason", reason},
                    {"message", message},
                    {"lastProbeTime", format_time(now)},
                    {"lastTransitionTime", format_time(now)}};
  Json* const found = find_condition(status, type);
  if (found && string_at(*found, "status") == text) return;
  if (found) {
    *found = std::move(condition);
  } else {
    if (!at(status, "conditions").is_array()) status["conditions"] = Json::array();
    status["conditions"].push_back(std::move(condition));
  }
}

// The API server leaves out a count of 0.
void put_count(Json& status, const char* key, std::int64_t count) {
  if (count > 0) {
    status[key] = count;
  } else {
    status.erase(key);
  }
}

constexpr const char* kChangeRefused = "ChangeRefused";

// Of the Job, which the API server compares them with.
std::string indexes_of(const BatchJob& job, reconciler::IndexSet indexes) {
  indexes.keep_below(int_at(job.spec, "completions", 1));
  return indexes.text();
}

// The API server lets the number of successes of such a Job fall, because it may shrink.
bool may_shrink(const BatchJob& job) {
  return job.indexed() && int_at(job.spec, "completions", 1) == int_at(job.spec, "parallelism", 1);
}

}  // namespace

void rest(Json& status, Time now) {
  set_condition(status, "Suspended", true, "JobSuspended", "Job suspended", now);
  status.erase("startTime");
}

void go_on(Json& status, Time now) {
  if (holds(status, "Suspended")) {
    set_condition(status, "Suspended", false, "JobResumed", "Job resumed", now);
    status["startTime"] = format_time(now);
  }
  if (!at(status, "startTime").is_string()) status["startTime"] = format_time(now);
}

void decide_end(Json& status, const End& end, Time now) {
  if (holds(status, "SuccessCriteriaMet") || holds(status, "FailureTarget")) return;
  set_condition(status, end.succeeds ? "SuccessCriteriaMet" : "FailureTarget", true, end.reason,
                end.message, now);
}

void finish(Json& status, const End& end, Time done, Time now) {
  decide_end(status, end, now);
  status.erase("active");
  status["ready"] = 0;
  if (!at(status, "startTime").is_string()) status["startTime"] = format_time(std::min(done, now));
  const bool succeeds = holds(status, "SuccessCriteriaMet");
  if (succeeds) {
    const auto started = parse_time(string_at(status, "startTime"));
    status["completionTime"] = format_time(std::max(done, started.value_or(done)));
  }
  set_condition(status, succeeds ? "Complete" : "Failed", true, end.reason, end.message, now);
}

void report_refusal(Json& status, const std::string& message, Time now) {
  if (reports_refusal(status, message)) return;
  set_condition(status, kChangeRefused, false, "ChangeTried", "", now);  // so a new one is reported
  set_condition(status, kChangeRefused, true, kChangeRefused, message, now);
}

void take_refusal_back(Json& status, Time now) {
  if (holds(status, kChangeRefused)) {
    set_condition(status, kChangeRefused, false, "ChangeAccepted", "", now);
  }
}

bool reports_refusal(const Json& status, const std::string& message) {
  for (const Json& condition : at(status, "conditions")) {
    if (string_at(condition, "type") != kChangeRefused) continue;
    return string_at(condition, "status") == "True" && string_at(condition, "message") == message;
  }
  return false;
}

void count(const BatchJob& job, const reconciler::Job& durable, std::optional<std::int64_t> ready,
           Json& status) {
  const reconciler::Status& seen = durable.status;
  const auto open = std::count_if(seen.runs.begin(), seen.runs.end(),
                                  [](const reconciler::Run& run) { return run.open(); });
  put_count(status, "active", is_terminal(seen.phase) ? 0 : open);
  status["ready"] = std::min(ready.value_or(int_at(status, "ready")), int_at(status, "active"));
  // A cache may be older than the one that the last write came from.
  const auto raise = [&](const char* key, std::int64_t value) {
    constexpr std::int64_t kMost = 2'147'483'647;
    put_count(status, key, std::max(int_at(status, key), std::min(value, kMost)));
  };
  if (may_shrink(job)) {
    reconciler::IndexSet completed = seen.completed;
    completed.keep_below(int_at(job.spec, "completions", 1));
    put_count(status, "succeeded", completed.size());
  } else {
    raise("succeeded", seen.completed.size());
  }
  // As with podFailurePolicy's Ignore, what costs nothing of backoffLimit is not counted: Helm 3
  // takes a count above the limit for the Job's failure.
  raise("failed", seen.failures);
  if (!durable.spec.indexed) return;
  const std::string completed = indexes_of(job, seen.completed);
  if (!completed.empty()) status["completedIndexes"] = completed;
  if (completed.empty() && may_shrink(job)) status.erase("completedIndexes");
  if (!durable.spec.backoff_limit_per_index) return;
  // A job with one run has no list of indexes that have failed.
  const bool only_one_failed = !durable.spec.many_runs() &&
                               seen.phase == reconciler::Phase::kFailed && seen.completed.empty();
  status["failedIndexes"] = only_one_failed ? "0" : indexes_of(job, seen.failed);
}

std::optional<End> end_of(const reconciler::Job& durable) {
  using reconciler::Phase;
  const reconciler::Status& seen = durable.status;
  for (const bool succeeds : {true, false}) {
    const auto* const found = seen.condition(succeeds ? "SuccessCriteriaMet" : "FailureTarget");
    if (!found || !found->status) continue;
    End end{succeeds, found->reason, found->message};
    if (succeeds && end.reason == "Completed") {
      end.reason = "CompletionsReached";
      end.message = "Reached expected number of succeeded pods";
    }
    return end;
  }
  if (seen.phase == Phase::kSucceeded) {
    return End{true, "CompletionsReached", "Reached expected number of succeeded pods"};
  }
  if (seen.phase == Phase::kFailed) {
    return End{false, "BackoffLimitExceeded", "DurableJob " + durable.name + " has failed"};
  }
  // A job with spec.cancel may still succeed before its operator looks; one that cancels may not.
  if (seen.phase != Phase::kCancelled && seen.phase != Phase::kCancelling) return std::nullopt;
  return End{false, "Cancelled", "DurableJob " + durable.name + " was cancelled"};
}

}  // namespace holdfast::lane
