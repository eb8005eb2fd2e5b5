#include "operator/controller/executor.h"

#include <algorithm>

#include "operator/controller/heartbeat_codec.h"
#include "operator/controller/lease_codec.h"
#include "operator/controller/pod_codec.h"
#include "reconciler/names.h"

namespace holdfast::controller {
namespace {

using reconciler::CreationRefusal;

constexpr std::chrono::seconds kFirstRetry{5};
constexpr std::chrono::seconds kLastRetry{30};
// The old pod is told to go before the next one is asked for, unless that fails for so long.
constexpr std::chrono::seconds kStopPatience{5};

// After so many refusals before this one.
Duration retry_delay(int refusals) {
  return std::min<Duration>(kFirstRetry * (1 << std::min(refusals, 3)), kLastRetry);
}

std::uint64_t version_of(const JsonView& object) {
  kube::Object meta;
  return kube::decode_meta(object, meta) ? meta.version : 0;
}

void raise(std::uint64_t& mark, const JsonView& object) {
  mark = std::max(mark, version_of(object));
}

ObjectReference reference(const reconciler::Job& job) {
  ObjectReference reference;
  reference.namespace_ = job.namespace_;
  reference.name = job.name;
  reference.uid = job.uid;
  return reference;
}

std::string preconditions(const std::string& uid, std::uint64_t version) {
  const Json body = {
      {"apiVersion", "v1"},
      {"kind", "DeleteOptions"},
      {"propagationPolicy", "Background"},
      {"preconditions", {{"uid", uid}, {"resourceVersion", std::to_string(version)}}}};
  return body.dump();
}

std::string pod_path(const std::string& namespace_, const std::string& name) {
  return kube::object_path("/api/v1", "pods", namespace_, name);
}

// In a long outage the first try or the last is the one that may have been applied.
void remember_intent(const reconciler::Status& status, JobMemory& memory) {
  constexpr std::size_t kMostStamps = 16;
  if (memory.intent_attempt != status.attempt) memory.intent_stamps.clear();
  memory.intent_attempt = status.attempt;
  if (!status.attempt_start_time) return;
  if (memory.intent_stamps.size() == kMostStamps) memory.intent_stamps.pop_back();
  memory.intent_stamps.push_back(*status.attempt_start_time);
}

// 422 whose causes all name a field, and 413: the template can never work. A policy's or webhook's
// refusal names none.
bool template_is_invalid(const Error& error) {
  if (error.http_status == 413) return true;
  return error.http_status == 422 && error.cause_count > 0 &&
         static_cast<int>(error.cause_fields.size()) == error.cause_count;
}

// A patch that carries a UID met another object of the same name: 422 that names metadata.uid,
// where other writes answer 409.
bool met_another_object(const Error& error) {
  return error.http_status == 422 && error.cause_fields == std::vector<std::string>{"metadata.uid"};
}

}  // namespace

Executor::Executor(Loop& loop, kube::Client& client, const Ownership& ownership,
                   Telemetry& telemetry, EventSink& events, std::string agent_image)
    : loop_(loop),
      client_(client),
      ownership_(ownership),
      telemetry_(telemetry),
      events_(events),
      agent_image_(std::move(agent_image)) {}

Status Executor::may_write(const Ownership::Claim& claim) const {
  if (ownership_.holds(claim)) return Unit{};
  return make_error(ErrorCode::kCancelled, "the job's shard is not ours any more");
}

kube::CallOptions Executor::within_time() const {
  kube::CallOptions options;
  options.timeout = std::min(options.timeout, ownership_.time_left());
  return options;
}

// What was written is shown by the watch; of the answer only the version counts.
kube::CallOptions Executor::for_its_version() const {
  kube::CallOptions options = within_time();
  options.answer_with_metadata = true;
  return options;
}

Task<Result<Executor::Outcome>> Executor::perform(const CachedJob& job, Ownership::Claim claim,
                                                  const reconciler::Decision& decision,
                                                  JobMemory& memory, Log log) {
  Outcome outcome;
  const auto stops = [](const reconciler::Write& write) {
    return std::holds_alternative<reconciler::DeletePod>(write);
  };
  if (std::none_of(decision.writes.begin(), decision.writes.end(), stops)) {
    memory.stop_failing_since.reset();
  }
  for (const reconciler::Write& write : decision.writes) {
    Status done = may_write(claim);
    if (!done) co_return done.error();
    if (const auto* const status = std::get_if<reconciler::WriteStatus>(&write)) {
      auto task = write_status(job, *status, memory, log);
      done = co_await task;
    } else if (const auto* const create = std::get_if<reconciler::CreatePod>(&write)) {
      auto task = create_pod(job, *create, memory, log);
      Result<Outcome> created = co_await task;
      if (!created || created->decide_again) co_return created;
    } else if (const auto* const stop = std::get_if<reconciler::DeletePod>(&write)) {
      auto task = delete_pod(job, *stop, memory, log);
      done = co_await task;
      if (!done && may_go_on_without(done.error(), memory)) {
        outcome.later = done.error();
        done = Unit{};
      }
    } else if (const auto* const release = std::get_if<reconciler::ReleasePod>(&write)) {
      auto task = release_pod(job.namespace_, release->name, release->uid, claim, &memory);
      done = co_await task;
    } else if (const auto* const relabel = std::get_if<reconciler::RelabelPod>(&write)) {
      auto task = relabel_pod(job, *relabel, memory);
      done = co_await task;
    } else if (const auto* const lease = std::get_if<reconciler::WriteLease>(&write)) {
      auto task = write_lease(job, *lease, memory, log);
      Result<Outcome> written = co_await task;
      if (!written || written->decide_again) co_return written;
    } else {
      auto task = delete_job(job);
      done = co_await task;
    }
    if (!done) co_return done.error();
  }
  co_return outcome;
}

Task<Status> Executor::write_status(const CachedJob& job, const reconciler::WriteStatus& write,
                                    JobMemory& memory, Log log) {
  if (write.status.attempt > job.job.status.attempt) {
    // Before it is sent: if the answer is lost, this is how the intent is known again.
    remember_intent(write.status, memory);
  }
  auto put =
      client_.put(kube::object_path(kJobGroupPath, kJobPlural, job.namespace_, job.name, "status"),
                  status_update_body(job.job, write.status), for_its_version());
  const Result<JsonDocument> answer = co_await put;
  if (!answer) co_return answer.error();
  raise(memory.job_version, *answer);
  memory.last_write = loop_.now();
  tell(job, write, memory, log);
  co_return Unit{};
}

void Executor::tell(const CachedJob& job, const reconciler::WriteStatus& write, JobMemory& memory,
                    const Log& log) {
  const reconciler::Status& before = job.job.status;
  const reconciler::Status& after = write.status;
  if (before.phase != after.phase || before.attempt != after.attempt) {
    Log::Fields fields = {{"from", to_string(before.phase)}, {"to", to_string(after.phase)}};
    if (write.ended) {
      fields.emplace_back("outcome", to_string(*write.ended));
      fields.emplace_back("reason", after.history.back().reason);
    }
    if (after.attempt != before.attempt) {
      fields.emplace_back("next_attempt", std::to_string(after.attempt));
    }
    log.info("job moved", fields);
  }
  if (write.ended) telemetry_.attempt_ended(to_string(*write.ended));
  if (!write.orphan_class.empty()) {
    if (after.attempt > before.attempt) {
      memory.orphan_class = write.orphan_class;
      memory.trouble_began = loop_.now() - write.trouble_for;
    } else {
      telemetry_.recovered(write.orphan_class, write.trouble_for);
    }
  }
  for (const reconciler::Event& event : write.events) {
    events_.record(reference(job.job), event.warning, event.reason, event.action, event.note);
  }
}

void Executor::pod_created(const CachedJob&, std::int64_t attempt, const JsonView& pod,
                           JobMemory& memory) {
  memory.pod_attempt = attempt;
  memory.refused_attempt = 0;
  memory.refusals = 0;
  raise(memory.pod_version, pod);
  if (memory.orphan_class.empty()) return;
  telemetry_.recovered(memory.orphan_class, loop_.now() - memory.trouble_began);
  memory.orphan_class.clear();
}

Executor::Outcome Executor::refuse(const CachedJob& job, const reconciler::CreatePod& write,
                                   CreationRefusal::Kind kind, const std::string& message,
                                   JobMemory& memory, const Log& log) {
  if (memory.refused_attempt != write.attempt) memory.refusals = 0;
  memory.refused_attempt = write.attempt;
  memory.refusal = CreationRefusal{kind, message, Duration::zero()};
  memory.retry_at = loop_.now() + retry_delay(memory.refusals++);
  log.warn("the pod could not be created", {{"pod", write.name}, {"error", message}});
  if (kind != CreationRefusal::Kind::kTemplateInvalid) {
    events_.record(reference(job.job), true, "PodRejected", "CreatePod", message);
  }
  return Outcome{true};
}

Task<Result<Executor::Outcome>> Executor::create_pod(const CachedJob& job,
                                                     const reconciler::CreatePod& write,
                                                     JobMemory& memory, Log log) {
  if (job.job.spec.heartbeat && agent_image_.empty()) {
    co_return refuse(job, write, CreationRefusal::Kind::kRefused,
                     "spec.heartbeat needs the agent's image, and the operator was not told of it: "
                     "start it with --agent-image",
                     memory, log);
  }
  const Result<std::string> body =
      pod_body(job.job, job.pod_template, write.name, write.attempt, agent_image_);
  if (!body) {
    co_return refuse(job, write, CreationRefusal::Kind::kTemplateInvalid, body.error().message,
                     memory, log);
  }
  auto post =
      client_.post(kube::object_path("/api/v1", "pods", job.namespace_), *body, for_its_version());
  const Result<JsonDocument> answer = co_await post;
  if (answer) {
    pod_created(job, write.attempt, *answer, memory);
    co_return Outcome{};
  }
  const Error& error = answer.error();
  if (error.code == ErrorCode::kCancelled) co_return error;
  if (error.code == ErrorCode::kAlreadyExists) {
    auto task = on_name_taken(job, write, memory, log);
    co_return co_await task;
  }
  co_return refuse(job, write,
                   template_is_invalid(error) ? CreationRefusal::Kind::kTemplateInvalid
                                              : CreationRefusal::Kind::kRefused,
                   error.message, memory, log);
}

Task<Result<Executor::Outcome>> Executor::on_name_taken(const CachedJob& job,
                                                        const reconciler::CreatePod& write,
                                                        JobMemory& memory, Log log) {
  auto get = client_.get(pod_path(job.namespace_, write.name));
  const Result<JsonDocument> answer = co_await get;
  if (!answer) {
    if (answer.error().code == ErrorCode::kCancelled) co_return answer.error();
    co_return refuse(job, write, CreationRefusal::Kind::kRefused, answer.error().message, memory,
                     log);
  }
  kube::Object meta;
  if (kube::decode_meta(*answer, meta) && meta.owner_uid == job.uid) {
    pod_created(job, write.attempt, *answer, memory);
    co_return Outcome{};
  }
  co_return refuse(job, write, CreationRefusal::Kind::kNameTaken,
                   "another owner's pod is called " + write.name + "; delete it", memory, log);
}

Task<Status> Executor::delete_pod(const CachedJob& job, const reconciler::DeletePod& write,
                                  JobMemory& memory, Log log) {
  const SteadyTime began = loop_.now();
  auto del = client_.del(pod_path(job.namespace_, write.name),
                         preconditions(write.uid, write.version), within_time());
  const Result<JsonDocument> answer = co_await del;
  if (answer) {
    raise(memory.pod_version, *answer);
    memory.stop_failing_since.reset();
    co_return Unit{};
  }
  const Error& error = answer.error();
  if (error.code == ErrorCode::kNotFound) {
    memory.stop_failing_since.reset();
    co_return Unit{};
  }
  if (error.code == ErrorCode::kConflict) {
    auto task = shown_as_it_is(job, write, memory);
    const bool is_current = co_await task;
    if (!is_current) co_return error;
  }
  // It was told to go and something forbids it, or fails without end. It is fenced all the same,
  // and a job must not wait for that.
  const bool refused = error.code == ErrorCode::kForbidden || error.code == ErrorCode::kInvalid;
  if (!refused && !memory.stop_failing_since) memory.stop_failing_since = began;
  if (!refused && !may_go_on_without(error, memory)) co_return error;
  log.warn("a fenced pod cannot be deleted", {{"pod", write.name}, {"error", error.message}});
  events_.record(reference(job.job), true, "PodDeletionRefused", "DeletePod", error.message);
  if (!refused) co_return error;
  co_return Unit{};
}

// Whether the pod still is at the version that a deletion met a conflict on. Else the watch is
// waited for, or replaced.
Task<bool> Executor::shown_as_it_is(const CachedJob& job, const reconciler::DeletePod& write,
                                    JobMemory& memory) {
  auto get = client_.get(pod_path(job.namespace_, write.name), within_time());
  const Result<JsonDocument> answer = co_await get;
  kube::Object meta;
  if (!answer || !kube::decode_meta(*answer, meta) || meta.uid != write.uid) co_return false;
  memory.pod_version = std::max(memory.pod_version, meta.version);
  const bool is_current = meta.version == write.version;
  if (!is_current) memory.stop_failing_since.reset();
  co_return is_current;
}

bool Executor::may_go_on_without(const Error& error, const JobMemory& memory) const {
  return error.code != ErrorCode::kCancelled && memory.stop_failing_since &&
         loop_.now() - *memory.stop_failing_since >= kStopPatience;
}

Task<Status> Executor::release_pod(std::string namespace_, std::string name, std::string uid,
                                   Ownership::Claim claim, JobMemory* memory) {
  const Status allowed = may_write(claim);
  if (!allowed) co_return allowed.error();
  // A strategic merge patch takes one value off the list, whatever else stands there by now; a UID
  // in it is a precondition.
  const Json body = {
      {"metadata",
       {{"uid", uid},
        {"$deleteFromPrimitiveList/finalizers", Json::array({reconciler::kFinalizer})}}}};
  kube::CallOptions options = for_its_version();
  options.content_type = "application/strategic-merge-patch+json";
  auto patch = client_.patch(pod_path(namespace_, name), body.dump(), options);
  const Result<JsonDocument> answer = co_await patch;
  if (answer) {
    if (memory) raise(memory->pod_version, *answer);
    co_return Unit{};
  }
  const ErrorCode code = answer.error().code;
  if (code == ErrorCode::kNotFound || code == ErrorCode::kConflict) co_return Unit{};
  if (met_another_object(answer.error())) co_return Unit{};
  co_return answer.error();
}

Task<Status> Executor::relabel_pod(const CachedJob& job, const reconciler::RelabelPod& write,
                                   JobMemory& memory) {
  const Json body = {{"metadata",
                      {{"uid", write.uid},
                       {"labels",
                        {{reconciler::kJobNameLabel, job.name},
                         {reconciler::kJobUidLabel, job.uid},
                         {reconciler::kAttemptLabel, std::to_string(write.attempt)}}}}}};
  kube::CallOptions options = for_its_version();
  options.content_type = "application/merge-patch+json";
  auto patch = client_.patch(pod_path(job.namespace_, write.name), body.dump(), options);
  const Result<JsonDocument> answer = co_await patch;
  if (!answer) {
    if (met_another_object(answer.error())) co_return Unit{};
    co_return answer.error();
  }
  raise(memory.pod_version, *answer);
  co_return Unit{};
}

// What a person must mend holds up nothing else: verdicts and their times stand, and the job says
// what it waits for.
Task<Result<Executor::Outcome>> Executor::write_lease(const CachedJob& job,
                                                      const reconciler::WriteLease& write,
                                                      JobMemory& memory, Log log) {
  auto task = send_lease(job, write, memory, log);
  const Status done = co_await task;
  if (done) {
    memory.lease_refusal.clear();
    memory.lease_refusals = 0;
    co_return Outcome{};
  }
  const Error& error = done.error();
  if (error.code != ErrorCode::kForbidden && error.code != ErrorCode::kInvalid) co_return error;
  memory.lease_refusal = error.message.empty() ? "the API server refused it" : error.message;
  memory.lease_retry_at = loop_.now() + retry_delay(memory.lease_refusals++);
  log.warn("the job's Lease could not be written", {{"error", error.message}});
  events_.record(reference(job.job), true, "LeaseRefused", "WriteLease", memory.lease_refusal);
  co_return Outcome{true};
}

Task<Status> Executor::send_lease(const CachedJob& job, const reconciler::WriteLease& write,
                                  JobMemory& memory, Log log) {
  const std::string body = heartbeat_body(job.job, write, client_.server_clock().now(loop_.now()));
  const std::string name = write.uid.empty() ? "" : reconciler::heartbeat_lease_name(job.uid);
  const std::string path = kube::object_path(kLeaseGroupPath, kLeasePlural, job.namespace_, name);
  auto call = write.uid.empty() ? client_.post(path, body, for_its_version())
                                : client_.put(path, body, for_its_version());
  const Result<JsonDocument> answer = co_await call;
  if (answer) {
    raise(memory.lease_version, *answer);
    log.info(write.holder.empty() ? "the job's Lease was taken" : "the job's Lease was granted",
             {{"holder", write.holder}, {"lease_attempt", std::to_string(write.attempt)}});
    co_return Unit{};
  }
  if (answer.error().code == ErrorCode::kAlreadyExists) {
    auto task = on_lease_exists(job, write, memory);
    co_return co_await task;
  }
  co_return answer.error();
}

// The cache does not show it: it is new, or somebody took the label off.
Task<Status> Executor::on_lease_exists(const CachedJob& job, const reconciler::WriteLease& write,
                                       JobMemory& memory) {
  const std::string path = kube::object_path(kLeaseGroupPath, kLeasePlural, job.namespace_,
                                             reconciler::heartbeat_lease_name(job.uid));
  auto get = client_.get(path);
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  kube::Object meta;
  if (!kube::decode_meta(*answer, meta) || meta.owner_uid != job.uid) {
    const std::string message = "a Lease that is not the job's is called " +
                                reconciler::heartbeat_lease_name(job.uid) + "; delete it";
    co_return make_error(ErrorCode::kForbidden, message);
  }
  memory.lease_version = std::max(memory.lease_version, meta.version);
  const JsonView labels = at(at(*answer, "metadata"), "labels");
  if (string_at(labels, reconciler::kJobUidLabel) == job.uid) {
    co_return make_error(ErrorCode::kConflict, "the job's Lease is there and not cached yet");
  }
  reconciler::WriteLease again = write;
  again.uid = meta.uid;
  again.version = meta.version;
  again.holder.clear();
  again.granted = "unknown";
  auto put = client_.put(
      path, heartbeat_body(job.job, again, client_.server_clock().now(loop_.now())), within_time());
  const Result<JsonDocument> labelled = co_await put;
  if (!labelled) co_return labelled.error();
  raise(memory.lease_version, *labelled);
  co_return Unit{};
}

Task<Status> Executor::delete_job(const CachedJob& job) {
  auto del = client_.del(kube::object_path(kJobGroupPath, kJobPlural, job.namespace_, job.name),
                         preconditions(job.uid, job.version), within_time());
  const Result<JsonDocument> answer = co_await del;
  if (!answer && answer.error().code != ErrorCode::kNotFound) co_return answer.error();
  co_return Unit{};
}

}  // namespace holdfast::controller
