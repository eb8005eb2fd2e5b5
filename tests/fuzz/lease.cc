// A member's or a shard's Lease, as anybody who may write Leases wrote it: what is read is bounded,
// and survives being written.
#include "operator/membership/lease_codec.h"

#include "reconciler/shards.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/json_document.h"

using namespace holdfast;
using membership::CachedLease;

namespace {

// As the API server would have it after our write.
std::shared_ptr<const CachedLease> written(const CachedLease& lease) {
  membership::LeaseWrite write;
  write.namespace_ = lease.namespace_;
  write.uid = lease.uid;
  write.version = lease.version;
  write.holder = lease.holder;
  write.shards = lease.shards;
  write.duration = lease.duration;
  write.transitions = lease.transitions;
  write.now = *parse_time("2026-06-01T12:00:00.123456789Z");
  const bool member = lease.kind == CachedLease::Kind::kMember;
  const std::string name =
      member ? lease.name.substr(membership::member_lease_name("").size()) : "";
  const Result<Json> body = parse_json(member ? membership::member_lease_body(write, name)
                                              : membership::shard_lease_body(write, lease.shard));
  FUZZ_REQUIRE(body.ok());
  const std::string renewed = string_at(at(*body, "spec"), "renewTime");
  FUZZ_REQUIRE(renewed == "2026-06-01T12:00:00.123456Z");
  return std::static_pointer_cast<const CachedLease>(membership::decode_lease(document(*body)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<JsonDocument> json = JsonDocument::parse(fuzz::Input(data, size).rest());
  if (!json.ok()) return 0;
  const auto object = membership::decode_lease(*json);
  if (!object) return 0;
  const auto& lease = static_cast<const CachedLease&>(*object);
  FUZZ_REQUIRE(lease.duration >= std::chrono::seconds(1));
  FUZZ_REQUIRE(lease.duration <= std::chrono::hours(1));
  FUZZ_REQUIRE(lease.transitions >= 0);
  FUZZ_REQUIRE(lease.shard >= 0 && lease.shard <= reconciler::kMaxShards);
  FUZZ_REQUIRE(lease.shards >= 0 && lease.shards <= reconciler::kMaxShards);
  const auto again = written(lease);
  FUZZ_REQUIRE(again);
  FUZZ_REQUIRE(again->kind == lease.kind && again->shard == lease.shard);
  // "07" names the shard 7, and our own name for it is another's.
  FUZZ_REQUIRE(again->name == lease.name);
  FUZZ_REQUIRE(again->namespace_ == lease.namespace_ && again->uid == lease.uid);
  FUZZ_REQUIRE(again->version == lease.version && again->holder == lease.holder);
  FUZZ_REQUIRE(again->shards == lease.shards && again->duration == lease.duration);
  FUZZ_REQUIRE(again->transitions == lease.transitions);
  return 0;
}
