#include "operator/pools/worker_leases.h"

#include <algorithm>

#include "core/json.h"
#include "core/json_time.h"
#include "core/utf8.h"
#include "reconciler/names.h"
#include "reconciler/pool/worker.h"

namespace holdfast::pools {
namespace {

constexpr std::string_view kWorkPrefix = "holdfast-work-";
constexpr std::string_view kWorkerPrefix = "holdfast-worker-";

// Why it is none of ours; empty: it is.
std::string why_not_ours(const JsonView& meta, CachedWorkerLease& lease) {
  bool is_owned = false;
  for (const JsonView owner : at(meta, "ownerReferences")) {
    if (!bool_at(owner, "controller")) continue;
    is_owned = string_at(owner, "kind") == reconciler::kPoolKind &&
               string_at(owner, "apiVersion") == reconciler::kJobApiVersion;
    if (is_owned) lease.pool_name = string_at(owner, "name");
  }
  if (!is_owned) return "no WorkerPool owns it";
  if (string_at(at(meta, "labels"), reconciler::kWorkerPoolLabel) != lease.pool_name) {
    return std::string("its label ") + reconciler::kWorkerPoolLabel + " is not " + lease.pool_name +
           ", the pool that owns it";
  }
  if (lease.is_work || lease.holder.empty() || lease.holder == kRevokedHolder) return "";
  const std::string own = "/" + lease.pod_uid;
  return lease.holder.size() > own.size() && lease.holder.ends_with(own)
             ? ""
             : "its holder is not the pod with the UID " + lease.pod_uid;
}

// A text of any length may be there: only what can be understood is kept.
void decode_words(std::string words, CachedWorkerLease& lease) {
  if (words.empty()) return;
  if (lease.is_work) {
    Result<Work> work = decode_work(words);
    if (work.ok()) lease.work = std::move(*work);
    if (!work.ok()) lease.error = work.error().message;
  } else {
    Result<WorkerReport> report = decode_report(words);
    if (report.ok()) lease.report = std::move(*report);
    if (!report.ok()) lease.error = report.error().message;
  }
  if (words.size() <= kMaxProtocolBytes) lease.words = std::move(words);
}

struct Content {
  const char* annotation;
  std::string words;
  std::string holder;
  std::optional<Time> renewed = std::nullopt;
  std::string cut_off = {};
};

constexpr std::size_t kMaxWhyBytes = 512;
constexpr std::string_view kWhyMark = ": ";

// The words of a cut-off. They are ours only while nobody holds the Lease.
void decode_cut_off(const std::string& text, CachedWorkerLease& lease) {
  if (lease.is_work || !lease.holder.empty()) return;
  const std::size_t mark = text.find(kWhyMark);
  if (mark == std::string::npos) return;
  lease.cut_off_why = clean_text(text.substr(mark + kWhyMark.size()), kMaxWhyBytes);
  lease.out_of_memory = text.substr(0, mark) == reconciler::kOutOfMemory;
}

std::string lease_body(Json meta, const WorkerPool& pool, const std::string& shard,
                       const Content& content) {
  meta["namespace"] = pool.namespace_;
  meta["labels"] = {{reconciler::kWorkerPoolLabel, pool.name}, {reconciler::kShardLabel, shard}};
  meta["ownerReferences"] = pool_owner(pool);
  if (!content.words.empty()) meta["annotations"][content.annotation] = content.words;
  if (!content.cut_off.empty()) meta["annotations"][kCutOffAnnotation] = content.cut_off;
  Json spec = {{"leaseDurationSeconds", pool.spec.lease_duration.count()}};
  if (!content.holder.empty()) spec["holderIdentity"] = content.holder;
  if (content.renewed) spec["renewTime"] = format_time_micros(*content.renewed);
  const Json body = {{"apiVersion", "coordination.k8s.io/v1"},
                     {"kind", "Lease"},
                     {"metadata", std::move(meta)},
                     {"spec", std::move(spec)}};
  // A worker wrote its words.
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Fails with 409 on any other version.
std::string next_body(const CachedWorkerLease& lease, const std::string& shard,
                      const Content& content) {
  WorkerPool pool;
  pool.name = lease.pool_name;
  pool.namespace_ = lease.namespace_;
  pool.uid = lease.owner_uid;
  pool.spec.lease_duration = lease.duration;
  Json meta = {{"name", lease.name},
               {"uid", lease.uid},
               {"resourceVersion", std::to_string(lease.version)},
               // Makes the API server drop its record of field owners, as at renewals.
               {"managedFields", Json::array({Json::object()})}};
  return lease_body(std::move(meta), pool, shard, content);
}

std::string held_by(const CachedWorkerLease& lease, const std::string& shard, const char* holder,
                    std::string cut_off = "") {
  return next_body(lease, shard,
                   {kWorkerAnnotation, lease.words, holder, lease.renewed, std::move(cut_off)});
}

}  // namespace

std::string work_lease_name(const std::string& pod_uid) {
  return std::string(kWorkPrefix) + pod_uid;
}

std::string worker_lease_name(const std::string& pod_uid) {
  return std::string(kWorkerPrefix) + pod_uid;
}

std::string pod_uid_in_lease_name(const std::string& name) {
  for (const std::string_view prefix : {kWorkPrefix, kWorkerPrefix}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return "";
}

std::string worker_holder(const std::string& pod_name, const std::string& pod_uid) {
  return pod_name + "/" + pod_uid;
}

reconciler::WorkerIs CachedWorkerLease::is() const {
  if (holder.empty()) return reconciler::WorkerIs::kCutOff;
  return holder == kRevokedHolder ? reconciler::WorkerIs::kRevoked : reconciler::WorkerIs::kLive;
}

kube::Kind worker_lease_kind() {
  kube::Kind kind;
  kind.name = "workerleases";
  kind.group_path = "/apis/coordination.k8s.io/v1";
  kind.plural = "leases";
  kind.label_selector = reconciler::kWorkerPoolLabel;
  kind.decode = decode_worker_lease;
  return kind;
}

WorkerLeasePtr decode_worker_lease(const JsonView& json) {
  auto lease = std::make_shared<CachedWorkerLease>();
  if (!kube::decode_meta(json, *lease)) return nullptr;
  lease->pod_uid = pod_uid_in_lease_name(lease->name);
  if (lease->pod_uid.empty()) return nullptr;
  lease->is_work = lease->name.starts_with(kWorkPrefix);
  const JsonView meta = at(json, "metadata");
  const JsonView spec = at(json, "spec");
  lease->holder = string_at(spec, "holderIdentity");
  // Zero is no duration: such a Lease was changed by somebody else. Whoever revokes it writes the
  // longest one.
  const std::int64_t given = int_at(spec, "leaseDurationSeconds");
  lease->duration = std::chrono::seconds(given < 1 ? reconciler::kMaxLeaseSeconds
                                                   : std::min(given, reconciler::kMaxLeaseSeconds));
  lease->refused = why_not_ours(meta, *lease);
  if (!lease->refused.empty()) return lease;
  lease->renewed = time_at(spec, "renewTime");
  const char* const annotation = lease->is_work ? kWorkAnnotation : kWorkerAnnotation;
  decode_words(string_at(at(meta, "annotations"), annotation), *lease);
  decode_cut_off(string_at(at(meta, "annotations"), kCutOffAnnotation), *lease);
  return lease;
}

std::string new_worker_lease_body(const WorkerPool& pool, const std::string& shard,
                                  const std::string& pod_uid, const std::string& holder) {
  return lease_body({{"name", worker_lease_name(pod_uid)}}, pool, shard,
                    {kWorkerAnnotation, "", holder});
}

std::string new_work_lease_body(const WorkerPool& pool, const std::string& shard,
                                const std::string& pod_uid, const Work& work, Time now) {
  return lease_body({{"name", work_lease_name(pod_uid)}}, pool, shard,
                    {kWorkAnnotation, encode_work(work), "", now});
}

std::string revoked_lease_body(const CachedWorkerLease& lease, const std::string& shard) {
  return held_by(lease, shard, kRevokedHolder);
}

std::string cut_off_lease_body(const CachedWorkerLease& lease, const std::string& shard,
                               const std::string& reason, const std::string& why) {
  return held_by(lease, shard, "", reason + std::string(kWhyMark) + why);
}

std::string work_lease_body(const CachedWorkerLease& lease, const std::string& shard,
                            const Work& work, Time now) {
  return next_body(lease, shard, {kWorkAnnotation, encode_work(work), "", now});
}

}  // namespace holdfast::pools
