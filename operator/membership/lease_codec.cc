#include "operator/membership/lease_codec.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "client/kube/lease_resource.h"
#include "core/json.h"
#include "core/json_time.h"
#include "reconciler/shards.h"

namespace holdfast::membership {
namespace {

constexpr const char* kShardsAnnotation = "holdfast.dev/shards";
constexpr const char* kAsideAnnotation = "holdfast.dev/steps-aside";
constexpr std::string_view kMemberPrefix = "holdfast-member-";
constexpr std::string_view kShardPrefix = "holdfast-shard-";
constexpr std::int64_t kLongestSeconds = 3600;
// Taking a shard adds one, and the API server accepts an int32 at most.
constexpr std::int64_t kMostTransitions = std::numeric_limits<std::int32_t>::max() - 1;
constexpr std::size_t kMaxNameLength = 253;

// From 0 to the most shards; none: anything else.
std::optional<int> small_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (number < 0 || number > reconciler::kMaxShards) return std::nullopt;
  return number;
}

// Otherwise no member Lease can have this name, so there is no such member.
bool may_be_member(const std::string& holder) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  };
  return member_lease_name(holder).size() <= kMaxNameLength &&
         std::all_of(holder.begin(), holder.end(), fits);
}

std::string lease_body(const LeaseWrite& write, const std::string& name, const char* label,
                       bool with_holder_times) {
  Json meta = {{"name", name},
               {"namespace", write.namespace_},
               {"labels", {{kLeaseLabel, label}}},
               {"annotations", {{kShardsAnnotation, std::to_string(write.shards)}}}};
  if (!write.steps_aside.empty()) meta["annotations"][kAsideAnnotation] = write.steps_aside;
  if (!write.windows.empty()) meta["annotations"][kWindowsAnnotation] = write.windows;
  if (!write.uid.empty()) {
    meta["uid"] = write.uid;
    meta["resourceVersion"] = std::to_string(write.version);
  }
  Json spec = {{"holderIdentity", write.holder},
               {"leaseDurationSeconds",
                std::chrono::duration_cast<std::chrono::seconds>(write.duration).count()},
               {"leaseTransitions", write.transitions}};
  spec["renewTime"] = format_time_micros(write.now);
  if (with_holder_times)
    spec["acquireTime"] = format_time_micros(write.acquired.value_or(write.now));
  const Json body = {{"apiVersion", "coordination.k8s.io/v1"},
                     {"kind", "Lease"},
                     {"metadata", std::move(meta)},
                     {"spec", std::move(spec)}};
  return body.dump();
}

}  // namespace

LeasePtr decode_lease(const JsonView& json) {
  auto lease = std::make_shared<CachedLease>();
  if (!kube::decode_meta(json, *lease)) return nullptr;
  const JsonView meta = at(json, "metadata");
  const std::string label = string_at(at(meta, "labels"), kLeaseLabel);
  if (label == kShardLease && lease->name.starts_with(kShardPrefix)) {
    const auto number = small_number(std::string_view(lease->name).substr(kShardPrefix.size()));
    // "holdfast-shard-07" is a foreign Lease, not shard 7's.
    if (!number || lease->name != shard_lease_name(*number)) return nullptr;
    lease->kind = CachedLease::Kind::kShard;
    lease->shard = *number;
  } else if (label != kMemberLease || !lease->name.starts_with(kMemberPrefix)) {
    return nullptr;
  }
  lease->shards = small_number(string_at(at(meta, "annotations"), kShardsAnnotation)).value_or(0);
  const JsonView spec = at(json, "spec");
  if (lease->kind == CachedLease::Kind::kMember) {
    // The Lease's name identifies the member, even if somebody changed the field.
    lease->holder = lease->name.substr(kMemberPrefix.size());
    lease->steps_aside = string_at(at(meta, "annotations"), kAsideAnnotation);
  } else if (std::string holder = string_at(spec, "holderIdentity"); may_be_member(holder)) {
    lease->holder = std::move(holder);
  }
  // Bounded for any content of the field, so that a dead member is always found.
  lease->duration = std::chrono::seconds(
      std::clamp<std::int64_t>(int_at(spec, "leaseDurationSeconds", 1), 1, kLongestSeconds));
  lease->transitions =
      std::clamp<std::int64_t>(int_at(spec, "leaseTransitions"), 0, kMostTransitions);
  lease->acquired = time_at(spec, "acquireTime");
  lease->windows = string_at(at(meta, "annotations"), kWindowsAnnotation);
  return lease;
}

kube::Kind lease_kind(std::string label_selector) {
  kube::Kind kind;
  kind.name = "leases";
  kind.group_path = kube::kLeaseGroupPath;
  kind.plural = kube::kLeasePlural;
  kind.label_selector = std::move(label_selector);
  kind.decode = decode_lease;
  return kind;
}

std::string member_lease_name(const std::string& member) {
  return std::string(kMemberPrefix) + member;
}

std::string shard_lease_name(int shard) {
  return std::string(kShardPrefix) + std::to_string(shard);
}

std::string member_lease_body(const LeaseWrite& write, const std::string& member) {
  return lease_body(write, member_lease_name(member), kMemberLease, write.uid.empty());
}

std::string shard_lease_body(const LeaseWrite& write, int shard) {
  return lease_body(write, shard_lease_name(shard), kShardLease, !write.holder.empty());
}

}  // namespace holdfast::membership
