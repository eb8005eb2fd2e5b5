#include "operator/jobs/executor_job.h"

#include <algorithm>

#include "operator/codecs/at_rest.h"
#include "operator/jobs/live_texts.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"

namespace holdfast::jobs {

Task<Result<WriteOutcome>> JobWriter::write(const reconciler::WriteStatus& write,
                                            const WriteSetting& setting) {
  for (const reconciler::Run& run : write.status.runs) {
    // Recorded before the request, to recognise the intent if the answer is lost.
    const bool is_new = run.open() && run.attempt > setting.job.job.status.attempt;
    if (is_new) setting.memory.attempts[run.attempt].add_intent(run.start_time);
  }
  const codecs::CachedJob& job = setting.job;
  auto read = job_texts(client_, setting, TextsNeeded::kMetadata, ownership_.in_time());
  const Result<codecs::JobTexts> current = co_await read;
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
      finished ? codecs::status_update_body(*finished, *current,
                                            codecs::finished_status(finished->status, write.status))
               : codecs::status_update_body(job.job, *current, write.status),
      ownership_.in_time(needs_template(write, job) ? kube::CallOptions() : for_its_version()));
  setting.memory.leaving.status_is_sent = true;
  const Result<JsonDocument> answer = co_await put;
  setting.memory.leaving.status_is_sent = false;
  if (!answer) co_return answer.error();
  if (write.status.settled && !job.job.status.settled) {
    const std::string text = string_at(at(*answer, "metadata"), "resourceVersion");
    std::uint64_t version = 0;
    if (kube::parse_version(text, version)) {
      setting.memory.leaving.left = codecs::settled_job(job, write.status, version);
    }
  }
  if (needs_template(write, job)) keep_texts(codecs::decode_texts(*answer), write, setting.memory);
  controller::raise(setting.memory.own.job, *answer);
  setting.memory.last_write = loop_.now();
  ++setting.memory.status_writes;
  report(write, setting);
  // The pods of the next stage are created in the same reconcile as their intents are recorded:
  // between two, the shard may be handed over.
  co_return WriteOutcome{.decide_again = write.status.stage != job.job.status.stage};
}

Task<Result<WriteOutcome>> JobWriter::release(const WriteSetting& setting) {
  const codecs::CachedJob& job = setting.job;
  auto read = job_texts(client_, setting, TextsNeeded::kMetadata, ownership_.in_time());
  const Result<codecs::JobTexts> current = co_await read;
  if (!current) co_return current.error();
  auto patch = client_.patch(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                               job.namespace_, job.name),
                             codecs::job_release_body(job.job, current->metadata),
                             ownership_.in_time(for_its_version("application/merge-patch+json")));
  const Result<JsonDocument> answer = co_await patch;
  if (answer) controller::raise(setting.memory.own.job, *answer);
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  co_return WriteOutcome{};
}

Task<Result<WriteOutcome>> JobWriter::remove(const WriteSetting& setting) {
  const codecs::CachedJob& job = setting.job;
  auto del = client_.del(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                           job.namespace_, job.name),
                         controller::preconditions(job.uid, job.version), ownership_.in_time());
  const Result<JsonDocument> answer = co_await del;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  co_return WriteOutcome{};
}

void JobWriter::report(const reconciler::WriteStatus& write, const WriteSetting& setting) {
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
  for (const reconciler::Ended& ended : write.ended) report_end(ended, after, setting);
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
    const reconciler::StageStatus& stage = after.stages[ended.position];
    telemetry_.stage_ended(to_string(ended.phase),
                           stage.start_time && stage.completion_time
                               ? std::optional<Duration>(*stage.completion_time - *stage.start_time)
                               : std::nullopt);
  }
  for (const std::string& target : write.dropped_for) telemetry_.notification_dropped(target);
  for (const reconciler::Event& event : write.events) record(events_, job, event);
}

void JobWriter::report_end(const reconciler::Ended& ended, const reconciler::Status& after,
                           const WriteSetting& setting) {
  const reconciler::Job& job = setting.job.job;
  if (ended.outcome) telemetry_.attempt_ended(job.namespace_, to_string(*ended.outcome));
  if (ended.orphan_class == reconciler::OrphanClass::kNone) return;
  // The recovery ends with the next attempt's pod, if that attempt is recorded by this write.
  const auto run = std::find_if(after.runs.begin(), after.runs.end(),
                                [&](const auto& one) { return one.index == ended.index; });
  if (run == after.runs.end() || run->attempt <= job.status.attempt) {
    telemetry_.recovered(job.namespace_, ended.orphan_class, ended.trouble_for);
    return;
  }
  AttemptMemory& next = setting.memory.attempts[run->attempt];
  next.recovers_from = ended.orphan_class;
  next.trouble_began = loop_.now() - ended.trouble_for;
}

}  // namespace holdfast::jobs
