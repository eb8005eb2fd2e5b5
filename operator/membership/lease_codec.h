// Converts member and shard Leases between JSON and the fields that the membership uses. Pure.
//
//   holdfast-member-<id>-<random>   holderIdentity <id>-<random>; renewed while that process lives.
//                                   Annotation holdfast.dev/steps-aside: the reason, while the
//                                   member wants no shards.
//   holdfast-shard-<number>         holderIdentity: the member that works on the shard's jobs
//
// Both have the label holdfast.dev/lease, and the number of the installation's shards in the
// annotation holdfast.dev/shards. A shard's annotation holdfast.dev/windows may record which
// subjects its holder has found silent (window_codec.h).
#pragma once

#include <optional>
#include <string>

#include "client/kube/object.h"
#include "core/time.h"

namespace holdfast::membership {

inline constexpr const char* kLeaseLabel = "holdfast.dev/lease";
inline constexpr const char* kMemberLease = "member";
inline constexpr const char* kShardLease = "shard";
inline constexpr const char* kWindowsAnnotation = "holdfast.dev/windows";

struct CachedLease : kube::Object {
  enum class Kind { kMember, kShard };
  Kind kind = Kind::kMember;
  int shard = 0;   // shard Leases only
  int shards = 0;  // the installation's; 0: the annotation is missing or not a number
  std::string holder;
  std::string steps_aside;  // member Leases only: why; empty: it does not
  Duration duration{0};
  std::int64_t transitions = 0;
  std::optional<Time> acquired;
  std::string windows;
};
using LeasePtr = std::shared_ptr<const CachedLease>;

// Null if label and name show neither kind.
LeasePtr decode_lease(const JsonView& json);

// Leases with this selector: kLeaseLabel for both kinds, or kLeaseLabel=<value> for one.
kube::Kind lease_kind(std::string label_selector);

std::string member_lease_name(const std::string& member);
std::string shard_lease_name(int shard);

// The content of a write. `uid` and `version` come from the last read; empty and 0: a create. The
// uid matters: without it, a PUT on a deleted Lease would create it again.
struct LeaseWrite {
  std::string namespace_;
  std::string uid;
  std::uint64_t version = 0;
  std::string holder;
  std::string steps_aside;
  int shards = 0;
  Duration duration{0};
  std::int64_t transitions = 0;
  Time now{};
  std::optional<Time> acquired;  // none: now, if there is a holder
  std::string windows;           // shard Leases only
};
std::string member_lease_body(const LeaseWrite& write, const std::string& member);
std::string shard_lease_body(const LeaseWrite& write, int shard);

}  // namespace holdfast::membership
