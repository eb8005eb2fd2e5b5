// Member and shard Leases between their JSON and what the membership reads of them. Pure.
//
//   holdfast-member-<id>-<random>   holderIdentity <id>-<random>; renewed while that process lives
//                                   annotated holdfast.dev/steps-aside with the reason while it is
//                                   to be given no shards
//   holdfast-shard-<number>         holderIdentity: the member that works on the shard's jobs
//
// Both carry the label holdfast.dev/lease and, in the annotation holdfast.dev/shards, the number of
// shards that the installation has. A shard's may say in holdfast.dev/windows what its holder has
// seen of silent subjects (window_codec.h).
#pragma once

#include <optional>
#include <string>

#include "client/kube/object.h"
#include "core/time.h"

namespace holdfast::controller {

inline constexpr const char* kLeaseLabel = "holdfast.dev/lease";
inline constexpr const char* kMemberLease = "member";
inline constexpr const char* kShardLease = "shard";

struct CachedLease : kube::Object {
  enum class Kind { kMember, kShard };
  Kind kind = Kind::kMember;
  int shard = 0;   // of a shard's Lease
  int shards = 0;  // of the installation; 0: the annotation is missing or no number
  std::string holder;
  std::string steps_aside;  // of a member: why; empty: it does not
  Duration duration{0};
  std::int64_t transitions = 0;
  std::optional<Time> acquired;
  std::string windows;
};

// Null when it is neither, by its label and name.
kube::ObjectPtr decode_lease(const JsonView& json);

// Both, or those of one of them: kLeaseLabel, with "=" and a value or without.
kube::Kind lease_kind(std::string label_selector);

std::string member_lease_name(const std::string& member);
std::string shard_lease_name(int shard);

// What is written. `uid` and `version` are those that were read: without a uid a PUT on a Lease
// that is gone would create it anew. Empty and 0: a create.
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
  std::optional<Time> acquired;  // none: now, where there is a holder
  std::string windows;           // of a shard's Lease
};
std::string member_lease_body(const LeaseWrite& write, const std::string& member);
std::string shard_lease_body(const LeaseWrite& write, int shard);

}  // namespace holdfast::controller
