// A Lease of a warm worker, as its agent or anybody else who may write Leases wrote it: what is
// read is bounded, and the operator's next write of it keeps what it must.
#include "operator/pools/worker_leases.h"

#include "tests/fuzz/fuzz.h"
#include "tests/support/json_document.h"

using namespace holdfast;
using pools::CachedWorkerLease;
using reconciler::WorkerIs;

namespace {

CachedWorkerLease read_again(const CachedWorkerLease& lease, const std::string& text) {
  const Result<Json> body = parse_json(text);
  FUZZ_REQUIRE(body.ok());
  const kube::ObjectPtr object = pools::decode_worker_lease(document(*body));
  FUZZ_REQUIRE(object);
  const auto& again = static_cast<const CachedWorkerLease&>(*object);
  FUZZ_REQUIRE(again.refused.empty());
  FUZZ_REQUIRE(again.name == lease.name && again.namespace_ == lease.namespace_);
  FUZZ_REQUIRE(again.uid == lease.uid && again.version == lease.version);
  FUZZ_REQUIRE(again.owner_uid == lease.owner_uid && again.pool_name == lease.pool_name);
  FUZZ_REQUIRE(again.duration == lease.duration);
  return again;
}

void check_words(const CachedWorkerLease& before, const CachedWorkerLease& after) {
  FUZZ_REQUIRE(after.words == before.words);
  FUZZ_REQUIRE(after.report.answers.size() == before.report.answers.size());
  FUZZ_REQUIRE(after.report.life == before.report.life);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Result<JsonDocument> json = JsonDocument::parse(fuzz::Input(data, size).rest());
  if (!json.ok()) return 0;
  const kube::ObjectPtr object = pools::decode_worker_lease(*json);
  if (!object) return 0;
  const auto& lease = static_cast<const CachedWorkerLease&>(*object);
  FUZZ_REQUIRE(!lease.pod_uid.empty());
  FUZZ_REQUIRE(lease.words.size() <= kMaxProtocolBytes);
  if (!lease.refused.empty() || !lease.error.empty()) {
    FUZZ_REQUIRE(lease.report.answers.empty() && lease.work.entries.empty());
  }
  if (!lease.refused.empty()) return 0;
  // Shorter than any pool allows, if somebody else wrote it.
  FUZZ_REQUIRE(lease.duration >= std::chrono::seconds(1));
  FUZZ_REQUIRE(lease.duration <= std::chrono::seconds(reconciler::kMaxLeaseSeconds));
  if (lease.is_work) {
    const CachedWorkerLease next = read_again(
        lease, work_lease_body(
                   lease, "0-of-1",
                   reconciler::marked(lease.work, true, PodEnd{Time{}, std::chrono::seconds(30)})
                       .value_or(lease.work),
                   Time{}));
    FUZZ_REQUIRE(next.work.draining && next.work.entries.size() == lease.work.entries.size());
    return 0;
  }
  const CachedWorkerLease revoked = read_again(lease, revoked_lease_body(lease, "0-of-1"));
  FUZZ_REQUIRE(revoked.is() == WorkerIs::kRevoked);
  check_words(lease, revoked);
  const CachedWorkerLease cut_off =
      read_again(lease, cut_off_lease_body(lease, "0-of-1", "WorkerLost", "was silent"));
  FUZZ_REQUIRE(cut_off.is() == WorkerIs::kCutOff);
  check_words(lease, cut_off);
  return 0;
}
