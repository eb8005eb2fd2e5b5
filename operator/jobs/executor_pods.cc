#include "operator/jobs/executor_pods.h"

#include <algorithm>
#include <utility>

#include "core/json.h"
#include "operator/jobs/writes.h"
#include "reconciler/names.h"

namespace holdfast::jobs {
namespace {

// A refused deletion is tried again after this time. A job with many runs decides ten times a
// second.
constexpr std::chrono::seconds kRefusedDeletionPause{30};

// A patch with a UID met another object of the same name: a 422 that names metadata.uid. Other
// writes answer 409 then.
bool met_another_object(const Error& error) {
  return error.http_status == 422 && error.cause_fields == std::vector<std::string>{"metadata.uid"};
}

}  // namespace

Task<Result<WriteOutcome>> PodWriter::stop(const reconciler::DeletePod& write,
                                           const WriteSetting& setting) {
  auto task = delete_pod(write, setting);
  const Result<> done = co_await task;
  if (done) co_return WriteOutcome{};
  if (!may_go_on_without(write.name, done.error(), setting.memory)) co_return done.error();
  co_return WriteOutcome{.later = done.error()};
}

Task<Result<>> PodWriter::delete_pod(const reconciler::DeletePod& write,
                                     const WriteSetting& setting) {
  JobMemory& memory = setting.memory;
  const auto stays = memory.deletions.stay_until.find(write.name);
  if (stays != memory.deletions.stay_until.end() && loop_.now() < stays->second) co_return Unit{};
  const SteadyTime began = loop_.now();
  auto del = writer_.del(setting.claim, pod_path(setting.job.namespace_, write.name),
                         controller::preconditions(write.uid, write.version));
  const Result<JsonDocument> answer = co_await del;
  const bool is_gone = !answer && answer.error().code == ErrorCode::kNotFound;
  if (answer) controller::raise(memory.own.pod, *answer);
  if (answer || is_gone) {
    memory.deletions.failing_since.erase(write.name);
    memory.deletions.troubles.erase(write.name);
    co_return Unit{};
  }
  const Error& error = answer.error();
  if (error.code == ErrorCode::kConflict) {
    auto task = shown_as_it_is(write, setting);
    const bool is_current = co_await task;
    if (!is_current) co_return error;
  }
  // A policy forbids the deletion, or it fails again and again. The pod is fenced anyway, so the
  // next attempt must not wait for its deletion.
  const bool refused = reconciler::deletion_is_refused(error);
  memory.deletions.troubles[write.name] = {refused, error.message};
  if (!refused) memory.deletions.failing_since.try_emplace(write.name, began);
  const auto event =
      reconciler::deletion_event(error, may_go_on_without(write.name, error, memory));
  if (!event) co_return error;
  if (refused) memory.deletions.stay_until[write.name] = loop_.now() + kRefusedDeletionPause;
  setting.log.warn("a fenced pod cannot be deleted",
                   {{"pod", write.name}, {"error", error.message}});
  record(events_, setting.job.job, *event);
  if (!refused) co_return error;
  co_return Unit{};
}

// True if the pod still has the version on which its deletion met a conflict. Otherwise wait for
// the watch, or replace it.
Task<bool> PodWriter::shown_as_it_is(const reconciler::DeletePod& write,
                                     const WriteSetting& setting) {
  JobMemory& memory = setting.memory;
  auto get = client_.get(pod_path(setting.job.namespace_, write.name), ownership_.in_time());
  const Result<JsonDocument> answer = co_await get;
  kube::Object meta;
  if (!answer || !kube::decode_meta(*answer, meta) || meta.uid != write.uid) co_return false;
  memory.own.pod = std::max(memory.own.pod, meta.version);
  const bool is_current = meta.version == write.version;
  if (!is_current) memory.deletions.failing_since.erase(write.name);
  co_return is_current;
}

bool PodWriter::may_go_on_without(const std::string& pod, const Error& error,
                                  const JobMemory& memory) const {
  const auto since = memory.deletions.failing_since.find(pod);
  if (error.code == ErrorCode::kCancelled || since == memory.deletions.failing_since.end())
    return false;
  return reconciler::may_start_beside_old_pod(loop_.now() - since->second);
}

Task<Result<WriteOutcome>> PodWriter::release(const reconciler::ReleasePod& write,
                                              const WriteSetting& setting) {
  auto task =
      release(setting.job.namespace_, write.name, write.uid, setting.claim, &setting.memory);
  const Result<> done = co_await task;
  if (!done) co_return done.error();
  co_return WriteOutcome{};
}

Task<Result<>> PodWriter::release(std::string namespace_, std::string name, std::string uid,
                                  membership::Ownership::Claim claim, JobMemory* memory) {
  // A strategic merge patch removes one value from the list and keeps all others. The UID in it is
  // a precondition.
  Json body = {{"metadata",
                {{"uid", uid},
                 {"$deleteFromPrimitiveList/finalizers", Json::array({reconciler::kFinalizer})}}}};
  // The attempt of the operator's own pod is over. One empty entry in managedFields makes the API
  // server drop its record of field owners, so the pod's later writes and its deletion cost less.
  if (memory) body["metadata"]["managedFields"] = Json::array({Json::object()});
  auto patch = writer_.patch(claim, pod_path(namespace_, name), body.dump(),
                             for_its_version("application/strategic-merge-patch+json"));
  const Result<JsonDocument> answer = co_await patch;
  if (answer) {
    if (memory) controller::raise(memory->own.pod, *answer);
    co_return Unit{};
  }
  const ErrorCode code = answer.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) co_return Unit{};
  if (met_another_object(answer.error())) co_return Unit{};
  co_return answer.error();
}

Task<Result<WriteOutcome>> PodWriter::relabel(const reconciler::RelabelPod& write,
                                              const WriteSetting& setting) {
  const codecs::CachedJob& job = setting.job;
  const Json body = {{"metadata",
                      {{"uid", write.uid},
                       {"labels",
                        {{reconciler::kJobNameLabel, job.name},
                         {reconciler::kJobUidLabel, job.uid},
                         {reconciler::kShardLabel, ownership_.shard_label(setting.claim.shard)},
                         {reconciler::kAttemptLabel, std::to_string(write.attempt)}}}}}};
  auto patch = writer_.patch(setting.claim, pod_path(job.namespace_, write.name), body.dump(),
                             for_its_version("application/merge-patch+json"));
  const Result<JsonDocument> answer = co_await patch;
  if (!answer) {
    if (met_another_object(answer.error())) co_return WriteOutcome{};
    co_return answer.error();
  }
  controller::raise(setting.memory.own.pod, *answer);
  co_return WriteOutcome{};
}

Task<Result<>> PodWriter::relabel(std::string namespace_, std::string name, std::string uid,
                                  std::string job_name, std::string job_uid,
                                  membership::Ownership::Claim claim) {
  auto task = write_labels(
      pod_path(namespace_, name),
      {{"uid", uid},
       {"labels", {{reconciler::kJobNameLabel, job_name}, {reconciler::kJobUidLabel, job_uid}}}},
      claim);
  co_return co_await task;
}

Task<Result<>> PodWriter::give_to_shard(codecs::PodPtr pod, std::string shard_label,
                                        membership::Ownership::Claim claim) {
  auto task = write_labels(pod_path(pod->namespace_, pod->name),
                           {{"uid", pod->uid},
                            {"resourceVersion", std::to_string(pod->version)},
                            {"labels", {{reconciler::kShardLabel, shard_label}}}},
                           claim);
  co_return co_await task;
}

Task<Result<>> PodWriter::write_labels(std::string path, Json metadata,
                                       membership::Ownership::Claim claim) {
  auto patch = writer_.patch(claim, path, Json{{"metadata", std::move(metadata)}}.dump(),
                             for_its_version("application/merge-patch+json"));
  const Result<JsonDocument> answer = co_await patch;
  if (answer || met_another_object(answer.error())) co_return Unit{};
  const ErrorCode code = answer.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) co_return Unit{};
  co_return answer.error();
}

}  // namespace holdfast::jobs
