#include "operator/codecs/at_rest.h"

#include <algorithm>

#include "api/at_rest.h"
#include "client/kube/packed.h"
#include "core/pack.h"
#include "operator/codecs/pod_codec.h"
#include "operator/codecs/pod_protobuf.h"
#include "reconciler/names.h"

namespace holdfast::codecs {
namespace {

// The reasons of losses of events, which must not be overwritten.
constexpr const char* kKeptCondition = "NotificationFailed";

// ---- Jobs.

// Which pods were the job's.
template <class Io>
void pass_pod_name(Io& io, reconciler::HistoryEntry& entry, const reconciler::Job& job) {
  const std::string usual = reconciler::pod_name(job.name, job.uid, entry.attempt);
  bool is_usual = entry.pod_name == usual;
  io(is_usual);
  if (!is_usual) return io(entry.pod_name);
  entry.pod_name = usual;
}

template <class Io>
void pass(Io& io, reconciler::Job& job) {
  io(job.generation);
  io(job.created);
  io(job.deleting);
  io(job.deletion);
  io(job.holds_outbox);
  io(job.orphans);
  io(job.fixed_shard);
  io(job.has_pool);
  io(job.message);
  io(job.cancel);
  // What holds for pods, Leases and permits that are left. Limits and policies decide no more.
  api::AtRest<Io> rest(io);
  rest.pass(job.queue);
  rest.pass(job.notify);
  rest.pass(job.spec);
  rest.pass(job.stages);
  rest.pass(job.status);
  for (reconciler::HistoryEntry& entry : job.status.history) pass_pod_name(io, entry, job);
}

void take_identity(const kube::Object& from, reconciler::Job& job) {
  job.namespace_ = from.namespace_;
  job.name = from.name;
  job.uid = from.uid;
  job.version = from.version;
}

kube::ObjectPtr unpack_job(const kube::PackedObject& packed) {
  auto cached = std::make_shared<CachedJob>();
  static_cast<kube::Object&>(*cached) = packed;
  take_identity(packed, cached->job);
  Unpack in(packed.bytes);
  pass(in, cached->job);
  return cached;
}

// ---- Pods.

// Up to eight at a time, in a number.
template <class Io, class... Flags>
void pass_flags(Io& io, Flags&... flags) {
  unsigned bits = 0;
  unsigned place = 0;
  ((bits |= static_cast<unsigned>(flags) << place++), ...);
  io(bits);
  place = 0;
  ((flags = (bits >> place++ & 1U) != 0), ...);
}

template <class Io>
void pass(Io& io, reconciler::Terminated& end) {
  io(end.exit_code);
  io(end.reason);
  io(end.message);
  io(end.started);
  io(end.finished);
  pass_flags(io, end.was_seen, end.out_of_memory);
}

template <class Io>
void pass(Io& io, std::optional<reconciler::Terminated>& end) {
  bool has = end.has_value();
  io(has);
  if (!has) return end.reset();
  if (!end) end.emplace();
  pass(io, *end);
}

template <class Io>
void pass(Io& io, reconciler::ContainerView& container) {
  io(container.name);
  pass_flags(io, container.init, container.worker, container.sidecar, container.may_restart,
             container.started, container.being_created);
  io(container.started_at);
  pass(io, container.terminated);
  io(container.waiting_reason);
  io(container.waiting_message);
}

template <class Io>
void pass(Io& io, reconciler::PolicyRule::PodCondition& condition) {
  io(condition.type);
  io(condition.status);
}

template <class Io>
void pass(Io& io, reconciler::PodView& pod) {
  bool has_owners_label = pod.job_uid_label == pod.owner_uid;
  pass_flags(io, has_owners_label, pod.out_of_time, pod.has_finalizer, pod.disruption_target,
             pod.ready);
  if (!has_owners_label) io(pod.job_uid_label);
  if (has_owners_label) pod.job_uid_label = pod.owner_uid;
  io(pod.shard_label);
  io(pod.attempt);
  io(pod.intent);
  io(pod.node_name);
  io(pod.phase);
  io(pod.reason);
  io(pod.message);
  io(pod.created);
  io(pod.deletion);
  io(pod.deletion_grace);
  io(pod.disruption_reason);
  io(pod.gates);
  io(pod.unschedulable);
  io(pod.scheduler);
  io(pod.placed);
  io.list(pod.containers,
          [](Io& to, reconciler::ContainerView& container) { pass(to, container); });
  io.list(pod.conditions,
          [](Io& to, reconciler::PolicyRule::PodCondition& condition) { pass(to, condition); });
}

// A pod's name begins with its job's, but for a pod that somebody else made.
template <class Io>
void pass(Io& io, CachedPod& cached) {
  pass(io, cached.pod);
  std::size_t prefix = cached.name.starts_with(cached.job_name) ? cached.job_name.size() : 0;
  io(prefix);
  if (prefix == 0) return io(cached.job_name);
  cached.job_name = cached.name.substr(0, prefix);
}

kube::ObjectPtr unpack_pod(const kube::PackedObject& packed) {
  auto cached = std::make_shared<CachedPod>();
  static_cast<kube::Object&>(*cached) = packed;
  cached->pod.name = packed.name;
  cached->pod.uid = packed.uid;
  cached->pod.version = packed.version;
  cached->pod.owner_uid = packed.owner_uid;
  Unpack in(packed.bytes);
  pass(in, *cached);
  return cached;
}

template <class Cached, class Content>
kube::ObjectPtr packed(const Cached& cached, Content content, kube::PackedObject::Unpack unpack) {
  Pack out;
  pass(out, content);
  return std::make_shared<kube::PackedObject>(cached, std::string(out.bytes()), unpack);
}

kube::ObjectPtr rest_of(const CachedJob& cached) {
  // The batch/v1 Job that it runs mirrors its conditions and counts. Its time to live is that
  // Job's.
  if (!cached.source.empty()) {
    auto whole = std::make_shared<CachedJob>(cached);
    whole->texts.reset();
    for (reconciler::HistoryEntry& entry : whole->job.status.history) {
      std::string().swap(entry.message);
    }
    return whole;
  }
  reconciler::Job rest = cached.job;
  std::erase_if(rest.status.conditions, [](const reconciler::Condition& condition) {
    return condition.type != kKeptCondition;
  });
  return packed(cached, std::move(rest), unpack_job);
}

}  // namespace

kube::ObjectPtr decode_cached_job(const JsonView& json) {
  JobPtr object = decode_job(json);
  if (!object) return nullptr;
  const CachedJob& cached = *object;
  return is_terminal(cached.job.status.phase) ? rest_of(cached) : object;
}

kube::ObjectPtr settled_job(const CachedJob& job, const reconciler::Status& status,
                            std::uint64_t version) {
  CachedJob settled = job;
  settled.version = settled.job.version = version;
  settled.job.status = status;
  return rest_of(settled);
}

kube::ObjectPtr decode_cached_pod(const JsonView& json) {
  PodPtr object = decode_pod(json);
  if (!object) return nullptr;
  const CachedPod& cached = *object;
  if (!is_settled(cached.pod)) return object;
  return packed(cached, cached, unpack_pod);
}

kube::Kind job_kind() {
  kube::Kind kind;
  kind.name = "durablejobs";
  kind.group_path = reconciler::kJobGroupPath;
  kind.plural = reconciler::kJobPlural;
  kind.field_selector = kUnsettled;
  kind.decode = decode_cached_job;
  return kind;
}

kube::Kind pod_kind() {
  kube::Kind kind;
  kind.name = "pods";
  kind.group_path = "/api/v1";
  kind.plural = "pods";
  kind.label_selector = reconciler::kJobUidLabel;
  kind.protobuf = &kPodProtobuf;
  kind.decode = decode_cached_pod;
  return kind;
}

}  // namespace holdfast::codecs
