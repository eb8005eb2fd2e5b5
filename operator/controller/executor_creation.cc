// The executor's creations of pods: what a refusal means, and whose the name is.
#include "operator/controller/executor.h"
#include "operator/controller/pod_codec.h"
#include "operator/controller/writes.h"

namespace holdfast::controller {
namespace {

using reconciler::CreationRefusal;

// 422 whose causes all name a field, and 413: the template can never work. A policy's or webhook's
// refusal names none.
bool template_is_invalid(const Error& error) {
  if (error.http_status == 413) return true;
  return error.http_status == 422 && error.cause_count > 0 &&
         static_cast<int>(error.cause_fields.size()) == error.cause_count;
}

}  // namespace

void Executor::pod_created(std::int64_t attempt, const JsonView& pod, JobMemory& memory) {
  memory.pod_attempt = attempt;
  memory.refused_attempt = 0;
  memory.refusals = 0;
  raise(memory.pod_version, pod);
  if (memory.orphan_class.empty()) return;
  telemetry_.recovered(memory.orphan_class, loop_.now() - memory.trouble_began);
  memory.orphan_class.clear();
}

Executor::Outcome Executor::refuse(const reconciler::CreatePod& write, CreationRefusal::Kind kind,
                                   const Error& error, const Setting& setting) {
  JobMemory& memory = setting.memory;
  if (memory.refused_attempt != write.attempt) memory.refusals = 0;
  memory.refused_attempt = write.attempt;
  memory.refusal = CreationRefusal{kind, error.message, Duration::zero()};
  memory.retry_at = loop_.now() + retry_delay(memory.refusals++);
  heed(error, loop_.now(), memory.retry_at);
  setting.log.warn("the pod could not be created", {{"pod", write.name}, {"error", error.message}});
  if (kind != CreationRefusal::Kind::kTemplateInvalid) {
    events_.record(reference(setting.job.job), true, "PodRejected", "CreatePod", error.message);
  }
  return Outcome{true};
}

Task<Result<Executor::Outcome>> Executor::apply(const reconciler::CreatePod& write,
                                                const Setting& setting) {
  setting.begin_creation(write);
  co_return Outcome{};
}

Task<Result<Executor::Outcome>> Executor::create_pod(const CachedJob& job, Ownership::Claim claim,
                                                     const reconciler::CreatePod& write,
                                                     JobMemory& memory, Log log) {
  const BeginCreation none;
  const Setting setting{job, claim, memory, log, none};
  const Status allowed = may_write(claim);
  if (!allowed) co_return allowed.error();
  auto task = post_pod(write, setting);
  co_return co_await task;
}

Task<Result<Executor::Outcome>> Executor::post_pod(const reconciler::CreatePod& write,
                                                   const Setting& setting) {
  const CachedJob& job = setting.job;
  if (job.job.spec.heartbeat && agent_image_.empty()) {
    co_return refuse(
        write, CreationRefusal::Kind::kRefused,
        make_error(ErrorCode::kInvalid,
                   "spec.heartbeat needs the agent's image, and the operator was not told of it: "
                   "start it with --agent-image"),
        setting);
  }
  const Result<std::string> body =
      pod_body(job.job, job.pod_template, write.name, write.attempt, agent_image_);
  if (!body) {
    co_return refuse(write, CreationRefusal::Kind::kTemplateInvalid, body.error(), setting);
  }
  auto post =
      client_.post(kube::object_path("/api/v1", "pods", job.namespace_), *body, for_its_version());
  const Result<JsonDocument> answer = co_await post;
  if (answer) {
    pod_created(write.attempt, *answer, setting.memory);
    co_return Outcome{};
  }
  const Error& error = answer.error();
  if (error.code == ErrorCode::kCancelled) co_return error;
  if (error.code == ErrorCode::kAlreadyExists) {
    auto task = on_name_taken(write, setting);
    co_return co_await task;
  }
  co_return refuse(write,
                   template_is_invalid(error) ? CreationRefusal::Kind::kTemplateInvalid
                                              : CreationRefusal::Kind::kRefused,
                   error, setting);
}

Task<Result<Executor::Outcome>> Executor::on_name_taken(const reconciler::CreatePod& write,
                                                        const Setting& setting) {
  const CachedJob& job = setting.job;
  auto get = client_.get(pod_path(job.namespace_, write.name));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) {
    if (answer.error().code == ErrorCode::kCancelled) co_return answer.error();
    co_return refuse(write, CreationRefusal::Kind::kRefused, answer.error(), setting);
  }
  kube::Object meta;
  if (kube::decode_meta(*answer, meta) && meta.owner_uid == job.uid) {
    pod_created(write.attempt, *answer, setting.memory);
    co_return Outcome{};
  }
  co_return refuse(write, CreationRefusal::Kind::kNameTaken,
                   make_error(ErrorCode::kAlreadyExists,
                              "another owner's pod is called " + write.name + "; delete it"),
                   setting);
}

}  // namespace holdfast::controller
