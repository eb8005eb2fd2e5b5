#include "plugin/base/job_text.h"

#include <algorithm>

#include "core/utf8.h"
#include "reconciler/api.h"

namespace holdfast::plugin {
namespace {

using reconciler::IndexSet;

// A longer text is no help on a screen.
constexpr std::size_t kTextLimit = 2048;

std::optional<std::int64_t> number_at(const Json& object, std::string_view key) {
  const Json& value = at(object, key);
  if (!value.is_number_integer()) return std::nullopt;
  return value.get<std::int64_t>();
}

RunText read_run(const Json& run) {
  return {.index = int_at(run, "index"),
          .attempt = int_at(run, "attempt"),
          .attempts = int_at(run, "attempts", 1),
          .pod = clean_at(run, "podName"),
          .node = clean_at(run, "nodeName"),
          .worker = clean_at(run, "workerName"),
          .start = moment_at(run, "startTime"),
          .next_attempt = moment_at(run, "nextAttemptTime"),
          .failures = int_at(run, "failures"),
          .disruptions = int_at(run, "disruptions"),
          .deferrals = int_at(run, "deferrals"),
          .progress = clean_at(run, "progress"),
          .refused = clean_at(run, "refused")};
}

EndText read_end(const Json& entry) {
  return {.stage = clean_at(entry, "stage"),
          .index = number_at(entry, "index"),
          .attempt = int_at(entry, "attempt"),
          .count = int_at(entry, "count", 1),
          .pod = clean_at(entry, "podName"),
          .node = clean_at(entry, "nodeName"),
          .worker = clean_at(entry, "workerName"),
          .outcome = clean_at(entry, "outcome"),
          .reason = clean_at(entry, "reason"),
          .exit_code = number_at(entry, "exitCode"),
          .start = moment_at(entry, "startTime"),
          .end = moment_at(entry, "endTime"),
          .message = last_lines(string_at(entry, "message"), kTextLimit)};
}

StageText read_stage(const Json& entry, const Json& spec) {
  StageText stage{.name = clean_at(entry, "name"),
                  .phase = clean_at(entry, "phase"),
                  .start = moment_at(entry, "startTime"),
                  .end = moment_at(entry, "completionTime"),
                  .failures = int_at(entry, "failures"),
                  .disruptions = int_at(entry, "disruptions"),
                  .deferrals = int_at(entry, "deferrals"),
                  .result = clean_at(entry, "result"),
                  .message = clean_at(entry, "message"),
                  .suspended = int_at(entry, "suspendedSeconds")};
  stage.always = string_at(spec, "when") == "Always";
  return stage;
}

// The entry of spec.stages with this name; null: the first stage, whose fields are spec's own.
const Json& spec_of_stage(const Json& spec, const std::string& name) {
  for (const Json& stage : at(spec, "stages")) {
    if (string_at(stage, "name") == name) return stage;
  }
  return at(spec, "");
}

void read_stages(const Json& spec, const Json& status, JobText& text) {
  text.stage = clean_at(status, "stage");
  for (const Json& entry : at(status, "stages")) {
    text.stages.push_back(read_stage(entry, spec_of_stage(spec, string_at(entry, "name"))));
  }
  const Json& own = spec_of_stage(spec, text.stage);
  text.spec = own.is_object() ? own : spec;
}

void read_runs(const Json& status, JobText& text) {
  for (const Json& run : at(status, "runs")) text.runs.push_back(read_run(run));
  for (const Json& entry : at(status, "history")) text.history.push_back(read_end(entry));
  text.succeeded = int_at(status, "succeeded");
  text.completed_indexes = string_at(status, "completedIndexes");
  text.failed_indexes = string_at(status, "failedIndexes");
  text.wanted = int_at(text.spec, "completions", 1);
  if (const std::string list = string_at(text.spec, "indexes"); !list.empty()) {
    const auto indexes = IndexSet::parse(list, IndexSet::kMost);
    if (indexes) text.wanted = indexes->size();
  }
}

}  // namespace

std::string clean_at(const Json& object, std::string_view key) {
  return clean_text(string_at(object, key), kTextLimit);
}

std::optional<Time> moment_at(const Json& object, std::string_view key) {
  return parse_time(string_at(object, key));
}

std::size_t JobText::open_runs() const {
  return static_cast<std::size_t>(std::count_if(
      runs.begin(), runs.end(), [](const RunText& run) { return !run.next_attempt; }));
}

JobText read_job(const Json& job) {
  const Json& metadata = at(job, "metadata");
  const Json& spec = at(job, "spec");
  const Json& status = at(job, "status");
  JobText text;
  text.namespace_ = clean_at(metadata, "namespace");
  text.name = clean_at(metadata, "name");
  text.uid = clean_at(metadata, "uid");
  text.created = moment_at(metadata, "creationTimestamp");
  text.phase = clean_at(status, "phase");
  text.started = moment_at(status, "startTime");
  text.completed = moment_at(status, "completionTime");
  text.attempt = int_at(status, "attempt");
  text.failures = int_at(status, "failures");
  text.disruptions = int_at(status, "disruptions");
  text.queue = clean_at(at(spec, "queue"), "name");
  if (const Json& waiting = at(status, "waiting"); waiting.is_object()) {
    text.waiting = WaitingText{.reason = clean_at(waiting, "reason"),
                               .message = clean_at(waiting, "message"),
                               .next_action = clean_at(waiting, "nextAction"),
                               .deadline = moment_at(waiting, "deadline"),
                               .since = moment_at(waiting, "since")};
  }
  read_stages(spec, status, text);
  read_runs(status, text);
  text.pool = clean_at(at(text.spec, "workerPool"), "name");
  return text;
}

const Json& condition_of(const Json& job, std::string_view type) {
  for (const Json& condition : at(at(job, "status"), "conditions")) {
    if (string_at(condition, "type") == type) return condition;
  }
  return at(job, "");
}

bool holds(const Json& job, std::string_view type) {
  return string_at(condition_of(job, type), "status") == "True";
}

}  // namespace holdfast::plugin
