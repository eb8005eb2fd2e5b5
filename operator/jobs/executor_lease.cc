#include "operator/jobs/executor_lease.h"

#include <algorithm>
#include <utility>

#include "client/kube/lease_resource.h"
#include "core/agent_protocol.h"
#include "operator/codecs/heartbeat_codec.h"
#include "operator/jobs/writes.h"
#include "operator/membership/lease_codec.h"
#include "reconciler/names.h"

namespace holdfast::jobs {
namespace {

// Rights do not change often.
constexpr std::chrono::minutes kRefusedOver{5};

}  // namespace

// An error that only a human can fix delays nothing else. Verdicts and their times stay, and the
// job says what it waits for.
Task<Result<WriteOutcome>> LeaseWriter::write(const reconciler::WriteLease& write,
                                              const WriteSetting& setting) {
  JobMemory& memory = setting.memory;
  if (write.over && loop_.now() < memory.leases_stay_until) co_return WriteOutcome{};
  RunMemory& run = memory.runs[write.run];
  // Recorded before the request, because a lost answer may have been a grant.
  const bool asked_before = std::exchange(memory.attempts[write.attempt].lease_asked, true);
  auto task = send(write, setting);
  const Result<> done = co_await task;
  if (done) {
    run.lease_refusal.clear();
    run.lease_refusals = 0;
    co_return WriteOutcome{};
  }
  const Error& error = done.error();
  const std::optional<reconciler::Event> event = reconciler::lease_event(error);
  if (!event) co_return error;
  memory.attempts[write.attempt].lease_asked = asked_before;
  if (write.over) memory.leases_stay_until = loop_.now() + kRefusedOver;
  run.lease_refusal = event->note;
  run.lease_retry_at = loop_.now() + reconciler::retry_delay(run.lease_refusals++);
  setting.log.warn("the job's Lease could not be written", {{"error", error.message}});
  record(events_, setting.job.job, *event);
  co_return WriteOutcome{true};
}

// A run that is over needs no Lease any more.
Task<Result<WriteOutcome>> LeaseWriter::remove(const reconciler::DeleteLease& write,
                                               const WriteSetting& setting) {
  const codecs::CachedJob& job = setting.job;
  if (loop_.now() < setting.memory.leases_stay_until) co_return WriteOutcome{};
  auto del =
      client_.del(kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural, job.namespace_,
                                    codecs::name_of_lease_over(job.job, write.run)),
                  controller::preconditions(write.uid, write.version), ownership_.in_time());
  const Result<JsonDocument> answer = co_await del;
  if (answer) controller::raise(setting.memory.own.lease, *answer);
  if (answer || answer.error().code == ErrorCode::kNotFound) co_return WriteOutcome{};
  if (!reconciler::lease_is_refused(answer.error().code)) co_return answer.error();
  // The Lease goes with its job at the latest.
  setting.memory.leases_stay_until = loop_.now() + kRefusedOver;
  co_return WriteOutcome{};
}

Task<Result<>> LeaseWriter::send(const reconciler::WriteLease& write, const WriteSetting& setting) {
  const codecs::CachedJob& job = setting.job;
  const std::string body =
      codecs::heartbeat_body(job.job, write, client_.server_clock().now(loop_.now()),
                             ownership_.shard_label(setting.claim.shard));
  const std::string path =
      write.uid.empty()
          ? kube::collection_path(kube::kLeaseGroupPath, kube::kLeasePlural, job.namespace_)
          : kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural, job.namespace_,
                              codecs::lease_name(job.job, write));
  const kube::CallOptions options = ownership_.in_time(for_its_version());
  auto call =
      write.uid.empty() ? client_.post(path, body, options) : client_.put(path, body, options);
  const Result<JsonDocument> answer = co_await call;
  if (answer) {
    controller::raise(setting.memory.own.lease, *answer);
    setting.log.info(
        write.holder.empty() ? "the job's Lease was taken" : "the job's Lease was granted",
        {{"holder", write.holder}, {"lease_attempt", std::to_string(write.attempt)}});
    co_return Unit{};
  }
  if (answer.error().code == ErrorCode::kAlreadyExists) {
    auto task = on_exists(write, setting);
    co_return co_await task;
  }
  co_return answer.error();
}

// The cache does not show the Lease: it is new, or somebody removed its label.
Task<Result<>> LeaseWriter::on_exists(const reconciler::WriteLease& write,
                                      const WriteSetting& setting) {
  const codecs::CachedJob& job = setting.job;
  JobMemory& memory = setting.memory;
  const std::string path = kube::object_path(kube::kLeaseGroupPath, kube::kLeasePlural,
                                             job.namespace_, codecs::lease_name(job.job, write));
  auto get = client_.get(path);
  const Result<JsonDocument> answer = co_await get;
  if (!answer) co_return answer.error();
  kube::Object meta;
  if (!kube::decode_meta(*answer, meta) || meta.owner_uid != job.uid) {
    const std::string message = "a Lease that is not the job's is called " +
                                codecs::lease_name(job.job, write) + "; delete it";
    co_return make_error(ErrorCode::kForbidden, message);
  }
  memory.own.lease = std::max(memory.own.lease, meta.version);
  const JsonView labels = at(at(*answer, "metadata"), "labels");
  if (string_at(labels, reconciler::kJobUidLabel) == job.uid) {
    co_return make_error(ErrorCode::kConflict, "the job's Lease exists but is not cached yet");
  }
  reconciler::WriteLease again = write;
  again.uid = meta.uid;
  again.version = meta.version;
  again.holder.clear();
  again.granted = "unknown";
  const JsonView annotations = at(at(*answer, "metadata"), "annotations");
  if (string_at(annotations, reconciler::kStageLabel) == again.stage) {
    again.checkpoint = string_at(annotations, kCheckpointAnnotation);
  }
  auto put =
      client_.put(path,
                  codecs::heartbeat_body(job.job, again, client_.server_clock().now(loop_.now()),
                                         ownership_.shard_label(setting.claim.shard)),
                  ownership_.in_time());
  const Result<JsonDocument> labelled = co_await put;
  if (!labelled) co_return labelled.error();
  controller::raise(memory.own.lease, *labelled);
  co_return Unit{};
}

}  // namespace holdfast::jobs
