#include "operator/codecs/heartbeat_codec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "core/agent_protocol.h"
#include "core/json.h"
#include "core/json_time.h"
#include "core/utf8.h"
#include "reconciler/names.h"

namespace holdfast::codecs {
namespace {

// The schema's limit for status.run().progress.
constexpr std::size_t kMessageLimit = 256;
constexpr std::size_t kMaxLabelBytes = 63;
constexpr double kLongestAge = 366.0 * 24 * 3600;

// Seconds, with or without a fraction. A worker wrote the text, so it may be anything.
Duration decode_age(const std::string& text) {
  double age = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), age);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(age)) {
    return Duration::zero();
  }
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(age, 0.0, kLongestAge)));
}

// A worker wrote this text too.
std::int64_t decode_count(const std::string& text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size()) return 0;
  return std::clamp<std::int64_t>(count, 0, reconciler::kCountLimit);
}

}  // namespace

std::string lease_name(const reconciler::Job& job, std::int64_t run) {
  return reconciler::heartbeat_lease_name(job.uid,
                                          job.spec.many_runs() ? std::optional(run) : std::nullopt);
}

std::string name_of_lease_over(const reconciler::Job& job, std::int64_t run) {
  return reconciler::heartbeat_lease_name(
      job.uid, run == reconciler::kSingleLease ? std::nullopt : std::optional(run));
}

std::string lease_name(const reconciler::Job& job, const reconciler::WriteLease& write) {
  return write.over ? name_of_lease_over(job, write.run) : lease_name(job, write.run);
}

std::optional<std::int64_t> run_in_lease_name(const std::string& job_uid, const std::string& name) {
  const std::string prefix = reconciler::heartbeat_lease_name(job_uid) + "-";
  if (!name.starts_with(prefix)) return std::nullopt;
  std::int64_t run = 0;
  const char* const end = name.data() + name.size();
  const auto [stop, error] = std::from_chars(name.data() + prefix.size(), end, run);
  const bool is_number = error == std::errc() && stop == end && run >= 0;
  const bool is_ours = is_number && name == reconciler::heartbeat_lease_name(job_uid, run);
  return is_ours ? std::optional(run) : std::nullopt;
}

HeartbeatPtr decode_heartbeat(const JsonView& json) {
  auto cached = std::make_shared<CachedHeartbeat>();
  if (!kube::decode_meta(json, *cached)) return nullptr;
  const JsonView meta = at(json, "metadata");
  for (const JsonView owner : at(meta, "ownerReferences")) {
    if (string_at(owner, "kind") != reconciler::kJobKind ||
        string_at(owner, "apiVersion") != reconciler::kJobApiVersion) {
      continue;
    }
    cached->job_name = string_at(owner, "name");
    cached->owner_uid = string_at(owner, "uid");
  }
  if (cached->job_name.empty()) return nullptr;
  const JsonView spec = at(json, "spec");
  const JsonView annotations = at(meta, "annotations");
  reconciler::LeaseView& lease = cached->lease;
  lease.uid = cached->uid;
  lease.version = cached->version;
  lease.holder = string_at(spec, "holderIdentity");
  lease.attempt = int_at(spec, "leaseTransitions");
  // Somebody removed the annotation: nobody knows who was granted the Lease.
  lease.granted = string_at(annotations, kGrantedAnnotation, "unknown");
  lease.acquired = time_at(spec, "acquireTime");
  lease.renewed = at(spec, "renewTime").is_string();
  lease.renewed_at = time_at(spec, "renewTime");
  lease.ended = at(annotations, kEndedAnnotation).is_string();
  lease.progress_age = decode_age(string_at(annotations, kProgressAgeAnnotation));
  lease.progress_message =
      clean_text(string_at(annotations, kProgressMessageAnnotation), kMessageLimit);
  lease.checkpoint = string_at(annotations, kCheckpointAnnotation);
  if (lease.checkpoint.size() > kMaxCheckpointBytes) lease.checkpoint.clear();
  lease.stage = string_at(annotations, reconciler::kStageLabel);
  lease.deferrals = decode_count(string_at(annotations, kDeferralsAnnotation));
  cached->mark = string_at(annotations, kProgressAnnotation);
  cached->shard_label = string_at(at(meta, "labels"), reconciler::kShardLabel);
  if (cached->shard_label.size() > kMaxLabelBytes) cached->shard_label.clear();
  return cached;
}

std::string heartbeat_body(const reconciler::Job& job, const reconciler::WriteLease& write,
                           Time now, const std::string& shard_label) {
  Json meta = {
      {"name", lease_name(job, write)},
      {"namespace", job.namespace_},
      {"labels", {{reconciler::kJobNameLabel, job.name}, {reconciler::kJobUidLabel, job.uid}}},
      {"annotations", {{kGrantedAnnotation, write.granted}}},
      {"ownerReferences", Json::array({{{"apiVersion", reconciler::kJobApiVersion},
                                        {"kind", reconciler::kJobKind},
                                        {"name", job.name},
                                        {"uid", job.uid},
                                        {"controller", true}}})}};
  if (!shard_label.empty()) meta["labels"][reconciler::kShardLabel] = shard_label;
  if (!write.stage.empty()) meta["annotations"][reconciler::kStageLabel] = write.stage;
  if (!write.checkpoint.empty()) meta["annotations"][kCheckpointAnnotation] = write.checkpoint;
  if (!write.uid.empty()) {
    meta["uid"] = write.uid;
    meta["resourceVersion"] = std::to_string(write.version);
  }
  const auto duration = job.spec.heartbeat.value_or(reconciler::Heartbeat{}).lease_duration;
  Json spec = {{"leaseDurationSeconds", duration.count()}, {"leaseTransitions", write.attempt}};
  if (!write.holder.empty()) {
    spec["holderIdentity"] = write.holder;
    spec["acquireTime"] = format_time_micros(now);
    // Makes the API server drop its record of field owners, as at renewals (agent/wire/lease_body.cc). This
    // does not work at a creation.
    if (!write.uid.empty()) meta["managedFields"] = Json::array({Json::object()});
  }
  const Json body = {{"apiVersion", "coordination.k8s.io/v1"},
                     {"kind", "Lease"},
                     {"metadata", std::move(meta)},
                     {"spec", std::move(spec)}};
  // A worker wrote the checkpoint.
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::codecs
