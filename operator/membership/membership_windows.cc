// Records silent subjects for a shard's next holder.
#include "operator/membership/membership.h"

namespace holdfast::controller {
namespace {

// How often a shard's record is written.
constexpr std::chrono::seconds kRecordEvery{10};

}  // namespace

// What to write into the Lease that stands as `before` (null: none).
std::string Membership::windows_of(int shard, const CachedLease* before) const {
  if (!handlers_.record) return "";
  std::optional<std::string> seen = handlers_.record(shard);
  if (seen) return std::move(*seen);
  return before ? before->windows : "";
}

// Writes nothing if there is nothing to record and no old record to remove.
void Membership::keep_records() {
  if (!handlers_.record || state_ != State::kActing || time_left() <= Duration::zero()) return;
  const SteadyTime now = loop_.now();
  for (int shard = 0; shard < config_.shards; ++shard) {
    const Shard& ours = shards_[static_cast<std::size_t>(shard)];
    if (!ours.held || ours.draining || ours.pending) continue;
    if (now - ours.recorded_at < kRecordEvery) continue;
    const auto lease = shard_lease(shard);
    if (!lease || lease->holder != self_) continue;
    std::string windows = windows_of(shard, lease.get());
    if (windows != lease->windows && room()) spawn(write_record(shard, lease, std::move(windows)));
  }
}

// A compare-and-swap on the Lease that names us: a replica that has taken the shard meanwhile also
// has the record. Failures need no handling: the next tick writes it again.
Task<void> Membership::write_record(int shard, LeasePtr before, std::string windows) {
  Shard& ours = shards_[static_cast<std::size_t>(shard)];
  ours.pending = true;
  LeaseWrite write = lease_write(self_, config_.timings.lease_duration);
  write.uid = before->uid;
  write.version = before->version;
  write.transitions = before->transitions;
  write.acquired = before->acquired;
  write.windows = std::move(windows);
  auto put = client_.put(path(before->name), shard_lease_body(write, shard), within_time());
  const Result<JsonDocument> answer = co_await put;
  ours.pending = false;
  heed_shards(answer);
  if (answer) {
    note_written(ours, *answer);
    evaluate_soon();
  }
}

}  // namespace holdfast::controller
