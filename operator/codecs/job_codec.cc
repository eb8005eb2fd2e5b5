#include "operator/codecs/job_codec.h"

#include <algorithm>

#include "core/json.h"
#include "core/json_time.h"
#include "core/utf8.h"
#include "operator/codecs/condition_codec.h"
#include "operator/codecs/index_codec.h"
#include "operator/codecs/known_fields.h"
#include "operator/codecs/outbox_codec.h"
#include "reconciler/job/status_limits.h"
#include "reconciler/names.h"
#include "reconciler/pool/pool.h"
#include "reconciler/shards.h"

namespace holdfast::controller {
namespace {

using reconciler::seconds;

// The schema's limit of active, succeeded and failed.
constexpr std::int64_t kMostCounted = 2'147'483'647;

void put_text(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

// In whole seconds, as metav1.Time has them. put_time() keeps a fraction, which only a run's times
// need: the start has the mark of the intent in it.
void put_second(Json& json, const char* key, const std::optional<Time>& value) {
  if (value) json[key] = format_time(*value);
}

reconciler::HistoryEntry decode_history_entry(const JsonView& json) {
  reconciler::HistoryEntry entry;
  entry.stage = string_at(json, "stage");
  entry.index = int_at(json, "index");
  entry.alone = !at(json, "index").is_number_integer();
  entry.attempt = int_at(json, "attempt");
  entry.pod_name = string_at(json, "podName");
  entry.pod_uid = string_at(json, "podUID");
  entry.node_name = string_at(json, "nodeName");
  entry.worker_name = string_at(json, "workerName");
  entry.outcome = reconciler::parse_outcome(string_at(json, "outcome")).value_or(kUnknownOutcome);
  entry.reason = reconciler::AnyReason(string_at(json, "reason"));
  if (at(json, "exitCode").is_number_integer()) {
    entry.exit_code = static_cast<int>(int_at(json, "exitCode"));
  }
  entry.start_time = time_at(json, "startTime");
  entry.end_time = time_at(json, "endTime");
  entry.progress = string_at(json, "progress");
  entry.message = string_at(json, "message");
  entry.count = std::clamp<std::int64_t>(int_at(json, "count", 1), 1, reconciler::kCountLimit);
  return entry;
}

Json encode_history_entry(const reconciler::HistoryEntry& entry) {
  Json json = {{"attempt", entry.attempt}, {"outcome", to_string(entry.outcome)}};
  put_text(json, "stage", entry.stage);
  if (!entry.alone) json["index"] = entry.index;
  put_text(json, "podName", entry.pod_name);
  put_text(json, "podUID", entry.pod_uid);
  put_text(json, "nodeName", entry.node_name);
  put_text(json, "workerName", entry.worker_name);
  put_text(json, "reason", entry.reason.text());
  if (entry.exit_code) json["exitCode"] = *entry.exit_code;
  put_second(json, "startTime", entry.start_time);
  put_second(json, "endTime", entry.end_time);
  put_text(json, "progress", entry.progress);
  put_text(json, "message", entry.message);
  if (entry.count > 1) json["count"] = entry.count;
  return json;
}

// The schema's default status, before anybody has written one.
bool is_default(const reconciler::Status& status) {
  return status.phase == reconciler::Phase::kPending && status.attempt == 0 && status.waiting &&
         status.waiting->reason == reconciler::Reason::kOperatorAwaited;
}

}  // namespace

namespace {

reconciler::Run decode_run(const JsonView& json) {
  reconciler::Run run;
  run.index = int_at(json, "index");
  run.attempt = int_at(json, "attempt");
  run.pod_name = string_at(json, "podName");
  run.pod_uid = string_at(json, "podUID");
  run.node_name = string_at(json, "nodeName");
  run.start_time = time_at(json, "startTime");
  // The schema has these limits. A stored object may be older than it.
  run.attempts = std::clamp<std::int64_t>(int_at(json, "attempts", 1), 1, reconciler::kCountLimit);
  run.failures = std::clamp<std::int64_t>(int_at(json, "failures"), 0, reconciler::kCountLimit);
  run.disruptions =
      std::clamp<std::int64_t>(int_at(json, "disruptions"), 0, reconciler::kCountLimit);
  run.deferrals = std::clamp<std::int64_t>(int_at(json, "deferrals"), 0, reconciler::kCountLimit);
  run.next_attempt_time = time_at(json, "nextAttemptTime");
  run.refused = utf8_prefix(string_at(json, "refused"), reconciler::kRefusedLimit);
  run.progress = string_at(json, "progress");
  run.worker_name = string_at(json, "workerName");
  run.worker_uid = string_at(json, "workerUID");
  run.worker_lease_duration = std::chrono::seconds(std::clamp<std::int64_t>(
      int_at(json, "workerLeaseDurationSeconds"), 0, reconciler::kMaxLeaseSeconds));
  run.checkpoint = utf8_prefix(string_at(json, "checkpoint"), reconciler::kResultLimit);
  run.alone = bool_at(json, "alone");
  return run;
}

Json encode_run(const reconciler::Run& run) {
  Json json = {{"index", run.index}, {"attempt", run.attempt}};
  if (run.at_worker()) {
    put_text(json, "workerName", run.worker_name);
    put_text(json, "workerUID", run.worker_uid);
    if (run.worker_lease_duration.count() > 0) {
      json["workerLeaseDurationSeconds"] = run.worker_lease_duration.count();
    }
  } else {
    put_text(json, "podName", run.pod_name);
    put_text(json, "podUID", run.pod_uid);
    put_text(json, "nodeName", run.node_name);
  }
  put_text(json, "checkpoint", run.checkpoint);
  if (run.alone) json["alone"] = true;
  put_time(json, "startTime", run.start_time);
  if (run.attempts > 1) json["attempts"] = run.attempts;
  if (run.failures > 0) json["failures"] = run.failures;
  if (run.disruptions > 0) json["disruptions"] = run.disruptions;
  if (run.deferrals > 0) json["deferrals"] = run.deferrals;
  put_time(json, "nextAttemptTime", run.next_attempt_time);
  put_text(json, "refused", utf8_prefix(run.refused, reconciler::kRefusedLimit));
  put_text(json, "progress", run.progress);
  return json;
}

// The indexes of a job with many runs; a job with one run has the count alone. `completions` may
// have changed since the status was written: indexes from it on are forgotten.
void decode_ended_runs(const reconciler::Spec& spec, const JsonView& json,
                       reconciler::Status& status) {
  const std::string completed = string_at(json, "completedIndexes");
  const std::string failed = string_at(json, "failedIndexes");
  status.completed = decode_ended_indexes(completed, spec.completions);
  status.failed = decode_ended_indexes(failed, spec.completions);
  const bool had_one_run = completed.empty() && failed.empty();
  if (had_one_run && !spec.many_runs() && int_at(json, "succeeded") > 0) {
    status.completed = reconciler::IndexSet::first(1);
  }
}

void encode_ended_runs(const reconciler::Spec& spec, const reconciler::Status& status, Json& json) {
  const auto put_count = [&](const char* key, std::int64_t count) {
    if (count > 0) json[key] = std::min(count, kMostCounted);
  };
  put_count("active", std::count_if(status.runs.begin(), status.runs.end(),
                                    [](const reconciler::Run& run) { return run.open(); }));
  put_count("succeeded", status.completed.size());
  const auto bounded = [](std::int64_t count) {
    return std::clamp<std::int64_t>(count, 0, kMostCounted);
  };
  put_count("failed", bounded(status.stage_failures()) + bounded(status.stage_disruptions()));
  json["completions"] =
      std::to_string(status.completed.size()) + "/" + std::to_string(spec.wanted());
  // A job with one run has these if it had more runs before: then a run has failed for good, or one
  // has succeeded and the job is suspended. It may have more runs again.
  const bool had_more = !status.failed.empty() || status.phase == reconciler::Phase::kSuspended;
  if (!spec.many_runs() && !had_more) return;
  put_text(json, "completedIndexes", status.completed.text());
  put_text(json, "failedIndexes", status.failed.text());
}

std::int64_t count_at(const JsonView& json, const char* key) {
  return std::clamp<std::int64_t>(int_at(json, key), 0, reconciler::kCountLimit);
}

reconciler::StageStatus decode_stage_status(const JsonView& json) {
  reconciler::StageStatus stage;
  stage.name = string_at(json, "name");
  stage.phase = known_stage_phase(json);
  stage.start_time = time_at(json, "startTime");
  stage.completion_time = time_at(json, "completionTime");
  stage.failures = count_at(json, "failures");
  stage.disruptions = count_at(json, "disruptions");
  stage.deferrals = count_at(json, "deferrals");
  stage.suspended = seconds_at(json, "suspendedSeconds").value_or(seconds(0));
  stage.result = string_at(json, "result");
  stage.message = string_at(json, "message");
  return stage;
}

Json encode_stage_status(const reconciler::StageStatus& stage) {
  Json json = {{"name", stage.name}, {"phase", to_string(stage.phase)}};
  put_second(json, "startTime", stage.start_time);
  put_second(json, "completionTime", stage.completion_time);
  const auto put_count = [&](const char* key, std::int64_t count) {
    if (count > 0) json[key] = count;
  };
  put_count("failures", stage.failures);
  put_count("disruptions", stage.disruptions);
  put_count("deferrals", stage.deferrals);
  put_count("suspendedSeconds", stage.suspended.count());
  put_text(json, "result", stage.result);
  put_text(json, "message", stage.message);
  return json;
}

// The stage that the status names; the first one, if it names none of the job's.
std::size_t current_stage(const std::vector<reconciler::Stage>& stages, const JsonView& status) {
  const std::string name = string_at(status, "stage");
  for (std::size_t place = 0; place < stages.size(); ++place) {
    if (stages[place].name == name) return place;
  }
  return 0;
}

// An entry for each stage, in their order.
void decode_stages(const std::vector<reconciler::Stage>& stages, const JsonView& json,
                   reconciler::Status& status) {
  status.stage = current_stage(stages, json);
  for (const reconciler::Stage& stage : stages) {
    status.stages.emplace_back();
    for (const JsonView entry : at(json, "stages")) {
      if (string_at(entry, "name") == stage.name) status.stages.back() = decode_stage_status(entry);
    }
    status.stages.back().name = stage.name;
  }
}

// Whoever may write the status may also write runs that do not fit each other. There is one for
// each index, by index; of two the one with the later attempt. A running job with one run has the
// run 0. One that does not run may have had others (mend_runs()).
void sort_runs(const reconciler::Spec& spec, reconciler::Status& status) {
  std::vector<reconciler::Run>& runs = status.runs;
  const bool has_one = !spec.many_runs() && status.phase == reconciler::Phase::kRunning;
  for (reconciler::Run& run : runs) {
    if (has_one) run.index = 0;
  }
  std::sort(runs.begin(), runs.end(), [](const reconciler::Run& a, const reconciler::Run& b) {
    return a.index != b.index ? a.index < b.index : a.attempt > b.attempt;
  });
  const auto same_index = [](const reconciler::Run& a, const reconciler::Run& b) {
    return a.index == b.index;
  };
  runs.erase(std::unique(runs.begin(), runs.end(), same_index), runs.end());
}

}  // namespace

reconciler::Phase known_phase(const JsonView& json) {
  using reconciler::Phase;
  const std::string text = string_at(json, "phase");
  const auto known = reconciler::parse_phase(text);
  if (known || text.empty()) return known.value_or(Phase::kNone);
  const auto holds = [&](const char* type) {
    const JsonView conditions = at(json, "conditions");
    return std::any_of(conditions.begin(), conditions.end(), [&](const JsonView& one) {
      return string_at(one, "type") == type && string_at(one, "status") == "True";
    });
  };
  if (at(json, "completionTime").is_string()) {
    return holds("Complete") ? Phase::kSucceeded
                             : (holds("Cancelled") ? Phase::kCancelled : Phase::kFailed);
  }
  const JsonView runs = at(json, "runs");
  const bool is_open = std::any_of(runs.begin(), runs.end(), [](const JsonView& run) {
    return !at(run, "nextAttemptTime").is_string();
  });
  if (is_open) return Phase::kRunning;
  return int_at(json, "attempt") > 0 ? Phase::kBackoff : Phase::kPending;
}

reconciler::StagePhase known_stage_phase(const JsonView& json) {
  using reconciler::StagePhase;
  const auto known = reconciler::parse_stage_phase(string_at(json, "phase"));
  if (known) return *known;
  const bool has_begun = at(json, "startTime").is_string();
  const bool has_message = at(json, "message").is_string();
  if (at(json, "completionTime").is_string()) {
    return has_message ? StagePhase::kFailed : StagePhase::kSucceeded;
  }
  if (has_begun) return StagePhase::kRunning;
  return has_message ? StagePhase::kSkipped : StagePhase::kPending;
}

reconciler::Status decode_status(const reconciler::Spec& spec, const JsonView& json) {
  reconciler::Status status;
  status.phase = known_phase(json);
  status.attempt = int_at(json, "attempt");
  status.failures = int_at(json, "failures");
  status.disruptions = int_at(json, "disruptions");
  status.start_time = time_at(json, "startTime");
  status.completion_time = time_at(json, "completionTime");
  status.suspended = seconds_at(json, "suspendedSeconds").value_or(seconds(0));
  status.observed_generation = int_at(json, "observedGeneration");
  if (const JsonView waiting = at(json, "waiting"); waiting.is_object()) {
    status.waiting = reconciler::Waiting{
        reconciler::AnyReason(string_at(waiting, "reason")), string_at(waiting, "message"),
        string_at(waiting, "nextAction"), time_at(waiting, "deadline"), time_at(waiting, "since")};
  }
  if (is_default(status)) {
    status.phase = reconciler::Phase::kNone;
    status.waiting.reset();
  }
  for (const JsonView run : at(json, "runs")) status.runs.push_back(decode_run(run));
  sort_runs(spec, status);
  decode_ended_runs(spec, json, status);
  for (const JsonView entry : at(json, "history")) {
    status.history.push_back(decode_history_entry(entry));
  }
  for (const JsonView condition : at(json, "conditions")) {
    status.conditions.push_back(decode_condition(condition));
  }
  decode_outbox(json, status);
  return status;
}

Json encode_status(const reconciler::Spec& spec, const reconciler::Status& status) {
  Json json = {{"phase", to_string(status.phase)},
               {"attempt", status.attempt},
               {"failures", status.failures},
               {"disruptions", status.disruptions},
               {"observedGeneration", status.observed_generation}};
  put_second(json, "startTime", status.start_time);
  put_second(json, "completionTime", status.completion_time);
  if (status.suspended.count() > 0) json["suspendedSeconds"] = status.suspended.count();
  if (status.waiting) {
    Json waiting = {{"reason", status.waiting->reason.text()},
                    {"message", status.waiting->message},
                    {"nextAction", status.waiting->next_action}};
    put_second(waiting, "deadline", status.waiting->deadline);
    put_second(waiting, "since", status.waiting->since);
    json["waiting"] = std::move(waiting);
  }
  if (!status.stages.empty()) json["stage"] = status.stages[status.stage].name;
  for (const auto& stage : status.stages) json["stages"].push_back(encode_stage_status(stage));
  encode_ended_runs(spec, status, json);
  for (const auto& run : status.runs) json["runs"].push_back(encode_run(run));
  for (const auto& entry : status.history) {
    json["history"].push_back(encode_history_entry(entry));
  }
  for (const auto& condition : status.conditions) {
    json["conditions"].push_back(encode_condition(condition));
  }
  encode_outbox(status, json);
  return json;
}

namespace {

// Whoever may write the status may also write runs that do not fit its phase and attempt. These two
// decide, and the attempt gives its pod's name.
void mend_runs(reconciler::Job& job) {
  reconciler::IndexSet& completed = job.status.completed;
  reconciler::IndexSet& failed = job.status.failed;
  if (job.status.attempt <= 0) completed = failed = {};
  // A run that is over stays over. One without an attempt has not begun. Only a suspended job may
  // have fewer runs than before, and it decides when to forget the others.
  const bool may_have_more = job.status.phase == reconciler::Phase::kSuspended ||
                             job.status.phase == reconciler::Phase::kCancelling;
  const reconciler::IndexSet all = may_have_more
                                       ? reconciler::IndexSet::first(reconciler::kCompletionsLimit)
                                       : job.spec.all_indexes();
  std::erase_if(job.status.runs, [&](const reconciler::Run& run) {
    return run.attempt <= 0 || !all.contains(run.index) || completed.contains(run.index) ||
           failed.contains(run.index);
  });
  reconciler::Status& status = job.status;
  if (is_terminal(status.phase)) return status.runs.clear();
  for (reconciler::Run& run : status.runs) {
    if (!job.spec.many_runs() && !run.at_worker()) continue;
    run.pod_name = reconciler::pod_name(job.name, job.uid, run.attempt);
  }
  if (status.phase != reconciler::Phase::kRunning) {
    for (reconciler::Run& run : status.runs) {
      if (run.open()) run.next_attempt_time = status.start_time.value_or(job.created);
    }
    return;
  }
  if (job.spec.many_runs() || !completed.empty()) return;
  reconciler::Run& run = status.begun();
  run.attempt = status.attempt;
  run.attempts = std::max<std::int64_t>(run.attempts, 1);
  run.pod_name = reconciler::pod_name(job.name, job.uid, run.attempt);
  run.next_attempt_time.reset();
}

// Two hashes of 16 digits and a dash: lane::Source.
constexpr std::size_t kMostSource = 33;
// Kubernetes sets it for a deletion with propagationPolicy Orphan.
constexpr const char* kOrphanFinalizer = "orphan";
constexpr std::size_t kMostShardLabel = 12;  // "1023-of-1024"
constexpr std::size_t kMostHostname = 63;    // of a DNS label

// Whoever may write the job may write these, too: what is no value of ours is left out.
void decode_lane(const JsonView& meta, CachedJob& cached) {
  const JsonView annotations = at(meta, "annotations");
  std::string source = string_at(annotations, reconciler::kBatchJobAnnotation);
  if (source.empty() || source.size() > kMostSource) return;
  cached.source = std::move(source);
  const std::string label = string_at(at(meta, "labels"), reconciler::kShardLabel);
  if (!label.empty() && label.size() <= kMostShardLabel) {
    cached.job.fixed_shard = reconciler::fixed_shard_key(label, cached.uid);
  }
  std::string name = string_at(annotations, reconciler::kBatchJobNameAnnotation);
  const bool is_label =
      name.size() <= kMostHostname &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == name.npos;
  if (is_label && name != cached.name) cached.job.hostname = std::move(name);
}

}  // namespace

JobPtr decode_job(const JsonView& json) {
  auto cached = std::make_shared<CachedJob>();
  if (!kube::decode_meta(json, *cached)) return nullptr;
  const JsonView meta = at(json, "metadata");
  const JsonView spec = at(json, "spec");
  reconciler::Job& job = cached->job;
  job.namespace_ = cached->namespace_;
  job.name = cached->name;
  job.uid = cached->uid;
  job.version = cached->version;
  job.generation = int_at(meta, "generation");
  job.created = time_at(meta, "creationTimestamp").value_or(Time{});
  job.deleting = at(meta, "deletionTimestamp").is_string();
  job.deletion = time_at(meta, "deletionTimestamp");
  for (const JsonView finalizer : at(meta, "finalizers")) {
    if (finalizer == reconciler::kOutboxFinalizer) job.holds_outbox = true;
    if (finalizer == kOrphanFinalizer) job.orphans = true;
  }
  decode_lane(meta, *cached);
  job.stages = decode_stages_of(spec);
  job.cancel = bool_at(spec, "cancel");
  job.queue = decode_queue_ref(at(spec, "queue"));
  job.notify = decode_notify(at(spec, "notify"));
  job.unknown = unknown_in_spec(KnownKind::kDurableJob, spec);
  if (const std::string lists = unreadable_indexes(spec); !lists.empty()) {
    job.unknown += (job.unknown.empty() ? "" : ", ") + lists;
  }
  job.spec = job.stages.empty() ? decode_spec(spec)
                                : job.stages[current_stage(job.stages, at(json, "status"))].spec;
  const bool later_has_pool =
      std::any_of(job.stages.begin(), job.stages.end(),
                  [](const reconciler::Stage& stage) { return stage.spec.pool.has_value(); });
  job.has_pool = job.spec.pool || later_has_pool;
  // Each change of the spec raises the generation.
  if (job.has_pool) job.message = std::max<std::int64_t>(job.generation, 1) - 1;
  job.status = decode_status(job.spec, at(json, "status"));
  decode_stages(job.stages, at(json, "status"), job.status);
  if (job.spec.many_runs() && !is_terminal(job.status.phase)) {
    job.stored_bytes = json.text().size();
  }
  mend_runs(job);
  if (!at(spec, "template").is_object() && !at(spec, "workerPool").is_object()) return nullptr;
  if (is_terminal(job.status.phase)) return cached;
  const bool waits = job.queue && job.status.says_queued();
  JobTexts texts = waits ? JobTexts{"", shared_metadata(meta), nullptr,
                                    unknown_in_status(KnownKind::kDurableJob, at(json, "status"))}
                         : decode_texts(json);
  if (texts.size() <= kMaxCachedTexts) cached->texts = std::move(texts);
  return cached;
}

JobTexts decode_texts(const JsonView& json) {
  const JsonView spec = at(json, "spec");
  const std::string stage = string_at(at(json, "status"), "stage");
  JsonView pod_template = at(spec, "template");
  for (const JsonView one : at(spec, "stages")) {
    if (string_at(one, "name") == stage) pod_template = at(one, "template");
  }
  const bool is_there = pod_template.is_object();
  JobTexts texts{is_there ? std::string(pod_template.text()) : std::string(),
                 shared_metadata(at(json, "metadata"))};
  texts.unknown = unknown_in_status(KnownKind::kDurableJob, at(json, "status"));
  if (!is_terminal(known_phase(at(json, "status")))) return texts;
  if (const JobPtr whole = decode_job(json)) {
    texts.finished = std::make_shared<const reconciler::Job>(whole->job);
  }
  return texts;
}

reconciler::Status finished_status(reconciler::Status now, const reconciler::Status& decided) {
  now.observed_generation = decided.observed_generation;
  now.outbox = decided.outbox;
  for (const reconciler::Condition& condition : decided.conditions) {
    const auto same = std::find_if(now.conditions.begin(), now.conditions.end(),
                                   [&](const auto& one) { return one.type == condition.type; });
    if (same == now.conditions.end()) {
      now.conditions.push_back(condition);
      continue;
    }
    const bool moves = same->status != condition.status || same->unknown;
    const Time since = moves ? condition.last_transition_time : same->last_transition_time;
    *same = condition;
    same->last_transition_time = since;
  }
  // The decision has not seen all of them.
  reconciler::drop_foreign_conditions(now.conditions);
  return now;
}

std::string shared_metadata(const JsonView& metadata) {
  std::string text;
  for (const char* key : {"annotations", "finalizers", "labels", "ownerReferences"}) {
    const JsonView value = at(metadata, key);
    if (!value.is_object() && !value.is_array()) continue;
    text += std::string(text.empty() ? "{" : ",") + "\"" + key + "\":" + value.text();
  }
  return text.empty() ? "{}" : text + "}";
}

std::string status_update_body(const reconciler::Job& job, const JobTexts& texts,
                               const reconciler::Status& status) {
  const Result<Json> shared = parse_json(texts.metadata);
  const reconciler::Spec& spec = job.stages.empty() ? job.spec : job.stages[status.stage].spec;
  Json metadata = shared.ok() && shared->is_object() ? *shared : Json::object();
  metadata["name"] = job.name;
  metadata["namespace"] = job.namespace_;
  metadata["uid"] = job.uid;
  metadata["resourceVersion"] = std::to_string(job.version);
  Json encoded = encode_status(spec, status);
  put_back_unknown(texts.unknown, encoded);
  const Json body = {{"apiVersion", reconciler::kJobApiVersion},
                     {"kind", reconciler::kJobKind},
                     {"metadata", std::move(metadata)},
                     {"status", std::move(encoded)}};
  // The status must be written even if a text is not valid UTF-8.
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string job_release_body(const reconciler::Job& job, const std::string& shared_metadata) {
  const Result<Json> shared = parse_json(shared_metadata);
  Json kept = Json::array();
  for (const Json& finalizer : at(shared.ok() ? *shared : Json(), "finalizers")) {
    if (finalizer != reconciler::kOutboxFinalizer) kept.push_back(finalizer);
  }
  const Json body = {{"metadata",
                      {{"uid", job.uid},
                       {"resourceVersion", std::to_string(job.version)},
                       {"finalizers", std::move(kept)}}}};
  return body.dump();
}

}  // namespace holdfast::controller
