#include "operator/jobs/live_texts.h"

#include <utility>

#include "operator/jobs/writes.h"
#include "reconciler/names.h"

namespace holdfast::jobs {

Task<Result<codecs::JobTexts>> job_texts(kube::Client& client, const WriteSetting& setting,
                                         TextsNeeded needs, kube::CallOptions options) {
  const codecs::CachedJob& job = setting.job;
  const bool is_enough =
      job.texts && (needs == TextsNeeded::kMetadata || !job.texts->pod_template.empty());
  if (is_enough) co_return *job.texts;
  options.answer_with_metadata = false;  // a creation's options ask for no more
  auto get = client.get(kube::object_path(reconciler::kJobGroupPath, reconciler::kJobPlural,
                                          job.namespace_, job.name),
                        std::move(options));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  controller::raise(setting.memory.own.job, *answer);
  const auto live = codecs::decode_job(*answer);
  if (!live || live->uid != job.uid || live->job.generation != job.job.generation ||
      live->job.status.stage != job.job.status.stage) {
    co_return make_error(ErrorCode::kConflict, "the job has changed since it was cached");
  }
  co_return codecs::decode_texts(*answer);
}

Task<Result<std::shared_ptr<const codecs::JobTexts>>> shared_texts(kube::Client& client,
                                                                   const WriteSetting& setting,
                                                                   kube::CallOptions options) {
  JobMemory& memory = setting.memory;
  const std::pair key(setting.job.job.generation, setting.job.job.status.stage);
  auto shared = memory.texts.of == key ? memory.texts.shared.lock() : nullptr;
  if (shared) co_return shared;
  auto read = job_texts(client, setting, TextsNeeded::kTemplateToo, std::move(options));
  Result<codecs::JobTexts> current = co_await read;
  if (!current) co_return current.error();
  shared = std::make_shared<const codecs::JobTexts>(std::move(*current));
  memory.texts.shared = shared;
  memory.texts.of = key;
  co_return shared;
}

bool needs_template(const reconciler::WriteStatus& write, const codecs::CachedJob& job) {
  const bool starts = write.status.attempt > job.job.status.attempt &&
                      write.status.phase == reconciler::Phase::kRunning;
  return starts && job.texts && job.texts->pod_template.empty();
}

void keep_texts(codecs::JobTexts texts, const reconciler::WriteStatus& write, JobMemory& memory) {
  if (texts.pod_template.empty()) return;  // the server answered with less than was asked for
  memory.texts.fresh = std::make_shared<const codecs::JobTexts>(std::move(texts));
  memory.texts.shared = memory.texts.fresh;
  memory.texts.of = {write.status.observed_generation, write.status.stage};
}

}  // namespace holdfast::jobs
