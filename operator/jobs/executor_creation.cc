#include "operator/jobs/executor_creation.h"

#include <algorithm>

#include "operator/codecs/pod_codec.h"
#include "operator/injection/pod_body.h"
#include "operator/jobs/live_texts.h"
#include "operator/jobs/writes.h"
#include "reconciler/run/running.h"

namespace holdfast::jobs {

using reconciler::CreationRefusal;
using reconciler::kCreationLimit;

kube::CallOptions PodCreator::options_for(std::int64_t attempt, const JobMemory& memory) const {
  kube::CallOptions options = ownership_.in_time(for_its_version());
  const AttemptMemory* const known = memory.find_attempt(attempt);
  if (known && known->refusals.any()) options.timeout = kCreationLimit;
  if (known && known->creation) options.cancellation = known->creation->request;
  return options;
}

void PodCreator::pod_created(std::int64_t attempt, const JsonView& pod, JobMemory& memory) {
  AttemptMemory& known = memory.attempts[attempt];
  known.refusals = {};
  const JsonView meta = at(pod, "metadata");
  pod_exists(string_at(meta, "namespace"), attempt, string_at(meta, "uid"), memory);
  controller::raise(known.requests.created_version, pod);
  known.requests.created_at = loop_.now();
}

void PodCreator::pod_exists(const std::string& namespace_, std::int64_t attempt,
                            const std::string& uid, JobMemory& memory) {
  AttemptMemory* const known = memory.find_attempt(attempt);
  memory.texts.fresh.reset();
  if (!known || known->pod_existed || known->is_stranger(uid)) return;
  known->pod_existed = true;
  known->pod_uid = uid;
  if (known->recovers_from == reconciler::OrphanClass::kNone) return;
  telemetry_.recovered(namespace_, known->recovers_from, loop_.now() - known->trouble_began);
  known->recovers_from = reconciler::OrphanClass::kNone;
}

WriteOutcome PodCreator::refuse(const reconciler::CreatePod& write, CreationRefusal::Kind kind,
                                const Error& error, const WriteSetting& setting) {
  // The recorded refusal may be an earlier process's.
  const bool on_record = kind == CreationRefusal::Kind::kTemplateRefused &&
                         reconciler::template_doubted_until(setting.job.job.status);
  setting.memory.texts.fresh.reset();
  setting.memory.attempts[write.attempt].refusals.add(kind, error, on_record, loop_.now());
  setting.log.warn("the pod could not be created", {{"pod", write.name}, {"error", error.message}});
  record(events_, setting.job.job, reconciler::creation_event(kind, error));
  return WriteOutcome{true};
}

Task<Result<WriteOutcome>> PodCreator::create(const reconciler::CreatePod& write,
                                              const WriteSetting& setting) {
  const codecs::CachedJob& job = setting.job;
  if (job.job.spec.heartbeat && agent_image_.empty()) {
    co_return refuse(
        write, CreationRefusal::Kind::kRefused,
        make_error(ErrorCode::kInvalid,
                   "spec.heartbeat needs the agent's image, but the operator has none: "
                   "start it with --agent-image"),
        setting);
  }
  auto read = shared_texts(client_, setting, options_for(write.attempt, setting.memory));
  const Result<std::shared_ptr<const codecs::JobTexts>> current = co_await read;
  if (!current) {
    const Error& error = current.error();
    if (error.code == ErrorCode::kCancelled) co_return give_up(write, setting);
    // The next decision waits for the job's new version.
    if (error.code == ErrorCode::kConflict) co_return error;
    co_return refuse(write, CreationRefusal::Kind::kRefused, error, setting);
  }
  const Result<std::string> body =
      injection::pod_body(job.job, (*current)->pod_template, write, agent_image_,
                          ownership_.shard_label(setting.claim.shard));
  if (!body) {
    co_return refuse(write, CreationRefusal::Kind::kTemplateInvalid, body.error(), setting);
  }
  AttemptMemory& known = setting.memory.attempts[write.attempt];
  const SteadyTime asked_at = loop_.now();
  known.requests.asked_at = asked_at;
  known.requests.comes_no_more = false;
  auto post = client_.post(kube::collection_path("/api/v1", "pods", job.namespace_), *body,
                           options_for(write.attempt, setting.memory));
  const Result<JsonDocument> answer = co_await post;
  known.requests.asked_at.reset();
  if (!answer && reconciler::may_still_create(answer.error())) {
    known.requests.add_unanswered(asked_at, kCreationLimit);
  }
  if (answer) {
    pod_created(write.attempt, *answer, setting.memory);
    co_return WriteOutcome{};
  }
  const Error& error = answer.error();
  if (error.code == ErrorCode::kCancelled) co_return give_up(write, setting);
  if (error.code == ErrorCode::kAlreadyExists) {
    auto task = on_name_taken(write, setting);
    co_return co_await task;
  }
  auto kind = refusal_kind(error, *body, setting);
  const CreationRefusal::Kind refused = co_await kind;
  co_return refuse(write, refused, error, setting);
}

// Recorded as a refusal, this costs no attempt. The next holder of the shard creates the pod again,
// after a live read shows that it does not exist.
Result<WriteOutcome> PodCreator::give_up(const reconciler::CreatePod& write,
                                         const WriteSetting& setting) {
  const AttemptMemory* const known = setting.memory.find_attempt(write.attempt);
  const Creation* const creation = known && known->creation ? &*known->creation : nullptr;
  if (!creation || !creation->handed_over || !ownership_.holds(setting.claim)) {
    return make_error(ErrorCode::kCancelled, "the creation was given up");
  }
  return refuse(write, CreationRefusal::Kind::kRefused,
                make_error(ErrorCode::kCancelled,
                           "the API server had not answered yet when the job went to another "
                           "replica of the operator"),
                setting);
}

// A mutating webhook that breaks pods looks like a wrong template. The API server's answer on the
// bare template shows which it is, because no webhook for pods sees that.
Task<CreationRefusal::Kind> PodCreator::refusal_kind(Error error, std::string body,
                                                     const WriteSetting& setting) {
  if (!reconciler::puts_template_in_doubt(error)) co_return CreationRefusal::Kind::kRefused;
  auto post = client_.post(
      kube::collection_path("/api/v1", "podtemplates", setting.job.namespace_) + "?dryRun=All",
      injection::bare_template_body(body), ownership_.in_time());
  const Result<JsonDocument> answer = co_await post;
  co_return !answer && reconciler::confirms_doubt(answer.error())
      ? CreationRefusal::Kind::kTemplateInvalid
      : CreationRefusal::Kind::kTemplateRefused;
}

Task<Result<WriteOutcome>> PodCreator::on_name_taken(const reconciler::CreatePod& write,
                                                     const WriteSetting& setting) {
  const codecs::CachedJob& job = setting.job;
  auto get = client_.get(pod_path(job.namespace_, write.name));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) {
    if (answer.error().code == ErrorCode::kCancelled) co_return answer.error();
    co_return refuse(write, CreationRefusal::Kind::kRefused, answer.error(), setting);
  }
  // Created before, but the answer was lost: the pod has the mark of this intent.
  const auto pod = codecs::decode_pod(*answer);
  AttemptMemory& known = setting.memory.attempts[write.attempt];
  const bool is_the_same = pod && pod->owner_uid == job.uid && pod->pod.intent == write.intent &&
                           !known.is_stranger(pod->uid);
  if (is_the_same && write.intent) {
    pod_created(write.attempt, *answer, setting.memory);
    co_return WriteOutcome{};
  }
  // Whatever its owner or its mark says later.
  if (pod) known.add_stranger(pod->uid);
  co_return refuse(
      write, CreationRefusal::Kind::kNameTaken,
      make_error(ErrorCode::kAlreadyExists,
                 "a pod that is not the attempt's is called " + write.name + "; delete it"),
      setting);
}

}  // namespace holdfast::jobs
