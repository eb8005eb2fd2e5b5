// The executor's creations of pods: the meaning of refusals, and the owner of an existing name.
#include <algorithm>

#include "operator/jobs/executor.h"
#include "operator/jobs/pod_codec.h"
#include "operator/jobs/writes.h"

namespace holdfast::controller {
namespace {

using reconciler::CreationRefusal;

// An API server answers within a minute. Until then its admission webhooks may take 30 s each. A
// lost request never gets an answer, so only the second try waits this long.
constexpr std::chrono::seconds kCreationLimit{65};

// A 422 whose causes all name a field: the API server calls the pod invalid. Refusals of policies
// and most webhooks name no field.
bool names_fields(const Error& error) {
  return error.http_status == 422 && error.cause_count > 0 &&
         static_cast<int>(error.cause_fields.size()) == error.cause_count;
}

// The same for 413, which may also come from a proxy.
bool puts_template_in_doubt(const Error& error) {
  return error.http_status == 413 || names_fields(error);
}

// The API server itself refuses the bare template. A webhook for templates may do that too, but its
// message names it.
bool confirms(const Error& error) {
  const auto in_template = [](const std::string& field) { return field.starts_with("template."); };
  return names_fields(error) && !error.message.starts_with("admission webhook") &&
         std::all_of(error.cause_fields.begin(), error.cause_fields.end(), in_template);
}

}  // namespace

kube::CallOptions Executor::for_creation(std::int64_t attempt, const JobMemory& memory) const {
  kube::CallOptions options = for_its_version();
  const bool asked_again = memory.refused_attempt == attempt && memory.refusals > 0;
  if (asked_again) options.timeout = kCreationLimit;
  if (memory.creation) options.cancellation = memory.creation->request;
  return options;
}

void Executor::pod_created(std::int64_t attempt, const JsonView& pod, JobMemory& memory) {
  pod_exists(attempt, string_at(at(pod, "metadata"), "uid"), memory);
  memory.refused_attempt = 0;
  memory.refusals = 0;
  raise(memory.pod_version, pod);
}

void Executor::pod_exists(std::int64_t attempt, const std::string& uid, JobMemory& memory) {
  if (!memory.pod_is_known(attempt, uid) || memory.orphan_class == reconciler::OrphanClass::kNone)
    return;
  telemetry_.recovered(memory.orphan_class, loop_.now() - memory.trouble_began);
  memory.orphan_class = reconciler::OrphanClass::kNone;
}

Executor::Outcome Executor::refuse(const reconciler::CreatePod& write, CreationRefusal::Kind kind,
                                   const Error& error, const Setting& setting) {
  JobMemory& memory = setting.memory;
  if (memory.refused_attempt != write.attempt) memory.refusals = 0;
  if (memory.refusals == 0 || memory.refusal.kind != kind) {
    // The recorded refusal may be an earlier process's.
    const bool on_record = kind == CreationRefusal::Kind::kTemplateRefused &&
                           reconciler::template_doubted_until(setting.job.job.status);
    memory.refused_in_a_row = on_record ? 1 : 0;
  }
  ++memory.refused_in_a_row;
  memory.refused_attempt = write.attempt;
  memory.refused_at = loop_.now();
  memory.refusal = CreationRefusal{kind, error.message, Duration::zero()};
  memory.retry_at = loop_.now() + retry_delay(memory.refusals++);
  heed(error, loop_.now(), memory.retry_at);
  setting.log.warn("the pod could not be created", {{"pod", write.name}, {"error", error.message}});
  const bool refused = error.code != ErrorCode::kCancelled;
  if (refused && kind != CreationRefusal::Kind::kTemplateInvalid) {
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
                   "spec.heartbeat needs the agent's image, but the operator has none: "
                   "start it with --agent-image"),
        setting);
  }
  const Result<std::string> body = pod_body(job.job, job.pod_template, write, agent_image_);
  if (!body) {
    co_return refuse(write, CreationRefusal::Kind::kTemplateInvalid, body.error(), setting);
  }
  auto post = client_.post(kube::collection_path("/api/v1", "pods", job.namespace_), *body,
                           for_creation(write.attempt, setting.memory));
  const Result<JsonDocument> answer = co_await post;
  if (answer) {
    pod_created(write.attempt, *answer, setting.memory);
    co_return Outcome{};
  }
  const Error& error = answer.error();
  if (error.code == ErrorCode::kCancelled) co_return on_given_up(write, setting);
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
Result<Executor::Outcome> Executor::on_given_up(const reconciler::CreatePod& write,
                                                const Setting& setting) {
  const auto& creation = setting.memory.creation;
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
Task<CreationRefusal::Kind> Executor::refusal_kind(Error error, std::string body,
                                                   const Setting& setting) {
  if (!puts_template_in_doubt(error)) co_return CreationRefusal::Kind::kRefused;
  auto post = client_.post(
      kube::collection_path("/api/v1", "podtemplates", setting.job.namespace_) + "?dryRun=All",
      bare_template_body(body), within_time());
  const Result<JsonDocument> answer = co_await post;
  co_return !answer && confirms(answer.error()) ? CreationRefusal::Kind::kTemplateInvalid
                                                : CreationRefusal::Kind::kTemplateRefused;
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
  // Created before, but the answer was lost: the pod has the mark of this intent.
  const auto pod = std::static_pointer_cast<const CachedPod>(decode_pod(*answer));
  const bool is_the_same = pod && pod->owner_uid == job.uid && pod->pod.intent == write.intent;
  if (is_the_same && write.intent) {
    pod_created(write.attempt, *answer, setting.memory);
    co_return Outcome{};
  }
  co_return refuse(
      write, CreationRefusal::Kind::kNameTaken,
      make_error(ErrorCode::kAlreadyExists,
                 "a pod that is not the attempt's is called " + write.name + "; delete it"),
      setting);
}

}  // namespace holdfast::controller
