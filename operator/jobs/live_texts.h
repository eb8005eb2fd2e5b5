// The texts of a job that a write needs. They come from the cache, or else from a live read.
// kConflict: the job or its spec is another one by now. Creations of one job that are in flight
// together share one read, through the job's memory. The client outlives the tasks. Loop only.
#pragma once

#include <memory>

#include "client/kube/client.h"
#include "core/result.h"
#include "core/task.h"
#include "operator/jobs/executor_setting.h"
#include "reconciler/job/decide.h"

namespace holdfast::jobs {

enum class TextsNeeded { kMetadata, kTemplateToo };
Task<Result<codecs::JobTexts>> job_texts(kube::Client& client, const WriteSetting& setting,
                                         TextsNeeded needs, kube::CallOptions options);

// For the creation of a pod.
Task<Result<std::shared_ptr<const codecs::JobTexts>>> shared_texts(kube::Client& client,
                                                                   const WriteSetting& setting,
                                                                   kube::CallOptions options);

// Pods are created after this write of the status, and the cache has no template: the answer brings
// it.
bool needs_template(const reconciler::WriteStatus& write, const codecs::CachedJob& job);

// Keeps the texts of that answer for the creations.
void keep_texts(codecs::JobTexts texts, const reconciler::WriteStatus& write, JobMemory& memory);

}  // namespace holdfast::jobs
