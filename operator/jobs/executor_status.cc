// The executor's writes of a job's status, and their Events and metrics.
#include <algorithm>

#include "operator/jobs/executor.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"

namespace holdfast::controller {
Task<Result<Executor::Outcome>> Executor::apply(const reconciler::WriteStatus& write,
                                                const Setting& setting) {
  for (const reconciler::Run& run : write.status.runs) {
    // Recorded before the request, to recognise the intent if the answer is lost.
    const bool is_new = run.open() && run.attempt > setting.job.job.status.attempt;
    if (is_new) setting.memory.attempts[run.attempt].add_intent(run.start_time);
  }
  const CachedJob& job = setting.job;
  auto read = texts(setting, Needs::kMetadata, within_time());
  const Result<JobTexts> current = co_await read;
  if (!current) co_return current.error();
  // The cache has a part of a finished job's status: the rest must be of the version that was
  // decided on.
  const reconciler::Job* const finished = current->finished.get();
  if (finished && finished->version != job.version) {
    co_return make_error(ErrorCode::kConflict, "the job has changed since it was cached");
  }
  auto put = client_.put(
      kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural, job.namespace_, job.name,
                        "status"),
      finished
          ? status_update_body(*finished, *current, finished_status(finished->status, write.status))
          : status_update_body(job.job, *current, write.status),
      needs_template(write, setting) ? within_time() : for_its_version());
  const Result<JsonDocument> answer = co_await put;
  if (!answer) co_return answer.error();
  if (needs_template(write, setting)) keep_texts(decode_texts(*answer), write, setting.memory);
  raise(setting.memory.job_version, *answer);
  setting.memory.last_write = loop_.now();
  ++setting.memory.status_writes;
  tell(write, setting);
  // The pods of the next stage are created in the same reconcile as their intents are recorded:
  // between two, the shard may be handed over.
  Outcome done;
  done.decide_again = write.status.stage != job.job.status.stage;
  co_return done;
}

// Pods are created next, and the cache has no template.
bool Executor::needs_template(const reconciler::WriteStatus& write, const Setting& setting) {
  const CachedJob& job = setting.job;
  const bool starts = write.status.attempt > job.job.status.attempt &&
                      write.status.phase == reconciler::Phase::kRunning;
  return starts && job.texts && job.texts->pod_template.empty();
}

void Executor::keep_texts(JobTexts texts, const reconciler::WriteStatus& write, JobMemory& memory) {
  if (texts.pod_template.empty()) return;  // the server answered with less than was asked for
  memory.fresh_texts = std::make_shared<const JobTexts>(std::move(texts));
  memory.texts = memory.fresh_texts;
  memory.texts_of = {write.status.observed_generation, write.status.stage};
}

Task<Result<JobTexts>> Executor::texts(const Setting& setting, Needs needs,
                                       kube::CallOptions options) {
  const CachedJob& job = setting.job;
  const bool is_enough =
      job.texts && (needs == Needs::kMetadata || !job.texts->pod_template.empty());
  if (is_enough) co_return *job.texts;
  options.answer_with_metadata = false;  // a creation's options ask for no more
  auto get = client_.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                           job.namespace_, job.name),
                         std::move(options));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  raise(setting.memory.job_version, *answer);
  const auto live = decode_job(*answer);
  if (!live || live->uid != job.uid || live->job.generation != job.job.generation ||
      live->job.status.stage != job.job.status.stage) {
    co_return make_error(ErrorCode::kConflict, "the job has changed since it was cached");
  }
  co_return decode_texts(*answer);
}

void Executor::tell(const reconciler::WriteStatus& write, const Setting& setting) {
  const reconciler::Job& job = setting.job.job;
  const reconciler::Status& before = job.status;
  const reconciler::Status& after = write.status;
  if (before.phase != after.phase || before.attempt != after.attempt) {
    Log::Fields fields = {{"from", to_string(before.phase)}, {"to", to_string(after.phase)}};
    if (!write.ended.empty() && write.ended.back().outcome) {
      fields.emplace_back("outcome", to_string(*write.ended.back().outcome));
      fields.emplace_back("reason", after.history.back().reason.text());
    }
    if (after.attempt != before.attempt) {
      fields.emplace_back("next_attempt", std::to_string(after.attempt));
    }
    setting.log.info("job moved", fields);
  }
  for (const reconciler::Ended& ended : write.ended) {
    if (ended.outcome) telemetry_.attempt_ended(job.namespace_, to_string(*ended.outcome));
    if (ended.orphan_class == reconciler::OrphanClass::kNone) continue;
    // The recovery ends with the next attempt's pod, if that attempt is recorded by this write.
    const auto run = std::find_if(after.runs.begin(), after.runs.end(),
                                  [&](const auto& one) { return one.index == ended.index; });
    if (run == after.runs.end() || run->attempt <= before.attempt) {
      telemetry_.recovered(job.namespace_, ended.orphan_class, ended.trouble_for);
      continue;
    }
    AttemptMemory& next = setting.memory.attempts[run->attempt];
    next.recovers_from = ended.orphan_class;
    next.trouble_began = loop_.now() - ended.trouble_for;
  }
  const bool has_begun = after.attempt > 0 && after.start_time;
  if (has_begun && !before.start_time) {
    telemetry_.job_started(job.namespace_, *after.start_time - job.created);
  }
  if (is_terminal(after.phase) && !is_terminal(before.phase)) {
    telemetry_.job_ended(job.namespace_, to_string(after.phase),
                         has_begun && after.completion_time
                             ? std::optional<Duration>(*after.completion_time - *after.start_time)
                             : std::nullopt);
  }
  for (const reconciler::StageEnded& ended : write.stages_ended) {
    const reconciler::StageStatus& stage = after.stages[ended.place];
    telemetry_.stage_ended(to_string(ended.phase),
                           stage.start_time && stage.completion_time
                               ? std::optional<Duration>(*stage.completion_time - *stage.start_time)
                               : std::nullopt);
  }
  for (const std::string& target : write.dropped_for) telemetry_.notification_dropped(target);
  for (const reconciler::Event& event : write.events) record(event, setting);
}

void Executor::record(const std::optional<reconciler::Event>& event, const Setting& setting) {
  if (!event) return;
  events_.record(reference(setting.job.job), event->warning, event->reason, event->action,
                 event->note);
}

}  // namespace holdfast::controller
