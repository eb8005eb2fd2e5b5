#include "operator/codecs/job_codec.h"

#include <algorithm>

#include "api/json_in.h"
#include "api/json_out.h"
#include "core/json.h"
#include "core/json_time.h"
#include "operator/codecs/index_codec.h"
#include "operator/codecs/known_fields.h"
#include "operator/codecs/outbox_codec.h"
#include "reconciler/job/status_limits.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::codecs {
namespace {

// The schema's limit of active, succeeded and failed.
constexpr std::int64_t kMostCounted = 2'147'483'647;

// The schema's default status, before anybody has written one.
bool is_default(const reconciler::Status& status) {
  return status.phase == reconciler::Phase::kPending && status.attempt == 0 && status.waiting &&
         status.waiting->reason == reconciler::Reason::kOperatorAwaited;
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
  if (!status.completed.empty()) json["completedIndexes"] = status.completed.text();
  if (!status.failed.empty()) json["failedIndexes"] = status.failed.text();
}

// The stage that the status names; the first one, if it names none of the job's.
std::size_t current_stage(const std::vector<reconciler::Stage>& stages, const JsonView& status) {
  const std::string name = string_at(status, "stage");
  for (std::size_t position = 0; position < stages.size(); ++position) {
    if (stages[position].name == name) return position;
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
      if (string_at(entry, "name") != stage.name) continue;
      status.stages.back() = api::read<reconciler::StageStatus>(entry);
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

reconciler::Status decode_status(const reconciler::Spec& spec, const JsonView& json) {
  auto status = api::read<reconciler::Status>(json);
  if (is_default(status)) {
    status.phase = reconciler::Phase::kNone;
    status.waiting.reset();
  }
  sort_runs(spec, status);
  decode_ended_runs(spec, json, status);
  decode_outbox(json, status);
  return status;
}

Json encode_status(const reconciler::Spec& spec, const reconciler::Status& status) {
  Json json = api::write(status);
  if (!status.stages.empty()) json["stage"] = status.stages[status.stage].name;
  for (const auto& stage : status.stages) json["stages"].push_back(api::write(stage));
  encode_ended_runs(spec, status, json);
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
  cached.job.fixed_shard =
      reconciler::fixed_shard_key(label.size() <= kMostShardLabel ? label : "",
                                  cached.owner_uid.empty() ? cached.uid : cached.owner_uid);
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
  api::JobSpec read = decode_job_spec(spec);
  job.cancel = read.first.cancel;
  job.queue = std::move(read.queue);
  job.notify = std::move(read.notify);
  job.stages = stages_of(read);
  job.unknown = unknown_in_spec(KnownKind::kDurableJob, spec);
  if (const std::string lists = unreadable_indexes(spec); !lists.empty()) {
    job.unknown += (job.unknown.empty() ? "" : ", ") + lists;
  }
  job.spec = job.stages.empty() ? std::move(read.first)
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
  JsonView place = spec;
  for (const JsonView one : at(spec, "stages")) {
    if (string_at(one, "name") == stage) place = one;
  }
  const JsonView pod_template = at(place, "template");
  // While a policy is missing, a job may be made that has neither template nor workerPool. No pod
  // can be made from an empty template, and the job ends with that reason.
  const bool is_empty = spec.is_object() && !at(place, "workerPool").is_object();
  const char* const none = is_empty ? "{}" : "";
  JobTexts texts{pod_template.is_object() ? std::string(pod_template.text()) : std::string(none),
                 shared_metadata(at(json, "metadata"))};
  texts.unknown = unknown_in_status(KnownKind::kDurableJob, at(json, "status"));
  if (!is_terminal(api::known_phase(at(json, "status")))) return texts;
  if (const JobPtr whole = decode_job(json)) {
    texts.finished = std::make_shared<const reconciler::Job>(whole->job);
  }
  return texts;
}

reconciler::Status finished_status(reconciler::Status now, const reconciler::Status& decided) {
  now.observed_generation = decided.observed_generation;
  now.outbox = decided.outbox;
  now.settled = decided.settled;
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

}  // namespace holdfast::codecs
