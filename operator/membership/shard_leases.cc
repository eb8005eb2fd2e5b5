#include "operator/membership/shard_leases.h"

#include <utility>

namespace holdfast::membership {
namespace {

// The most writes of shard Leases in progress at a time.
constexpr int kMostPending = 16;
// The watch shows a new Lease before this many tries to create it.
constexpr int kUnseenIsForeign = 3;
// How often a shard's record is written.
constexpr std::chrono::seconds kRecordEvery{10};

}  // namespace

ShardLeases::ShardLeases(LeaseRequests& requests, cache::View<CachedLease> cached,
                         MemberWatch& watch, const Member& member, ShardTable& shards,
                         Handlers handlers)
    : requests_(requests),
      cached_(cached),
      watch_(watch),
      member_(member),
      shards_(shards),
      handlers_(std::move(handlers)) {}

LeasePtr ShardLeases::get(int shard) const {
  const LeasePtr cached = cached_.get(requests_.key(shard_lease_name(shard)));
  const LeasePtr& written = shards_[shard].written;
  return written && (!cached || cached->version < written->version) ? written : cached;
}

bool ShardLeases::has_room() const {
  if (requests_.must_wait()) return false;
  return shards_.pending() < kMostPending;
}

Task<void> ShardLeases::take(int shard, LeasePtr before) {
  KnownShard& ours = shards_[shard];
  const MemberLease& member = member_.lease();
  reconciler::check_take(watch_.view(member.name(), member_.acts(), false),
                         before ? before->holder : "");
  ours.pending = true;
  const std::uint64_t tenure = member_.tenure();
  LeaseWrite write =
      before ? requests_.write(member.name(), *before) : requests_.write(member.name());
  if (before) write.transitions = before->transitions + 1;
  write.windows = windows_of(shard, before.get());
  std::string body = shard_lease_body(write, shard);
  auto call = before ? requests_.replace(before->name, std::move(body), member.within_time())
                     : requests_.create(std::move(body), member.within_time());
  const LeaseRequests::Answer answer = co_await call;
  ours.pending = false;
  requests_.heed(answer);
  if (!answer) {
    take_failed(shard, answer.error());
    co_return;
  }
  ours.unseen = 0;
  note_written(ours, *answer);
  // An answer from before a lapse proves nothing about the time after it.
  if (ours.written && tenure == member_.tenure() && member_.acts()) {
    ours.held = true;
    ++ours.tenure;
    handlers_.gained(shard);
  }
  handlers_.written();
}

void ShardLeases::take_failed(int shard, const Error& error) {
  const std::string& member = member_.lease().name();
  KnownShard& ours = shards_[shard];
  if (error.code != ErrorCode::kAlreadyExists) {
    ours.unseen = 0;
    if (error.code == ErrorCode::kConflict) return;
    requests_.report("a shard's Lease could not be taken", member, error);
    return;
  }
  if (++ours.unseen != kUnseenIsForeign) return;
  requests_.log().warn(
      "a shard's Lease could not be taken; nobody works on its jobs",
      {{"member", member},
       {"lease", shard_lease_name(shard)},
       {"error", "it exists without the label " + std::string(kLeaseLabel) + "=" + kShardLease},
       {"what_to_do", "delete it in the namespace " + requests_.config().namespace_ +
                          "; Holdfast then creates it again"}});
}

Task<void> ShardLeases::take_over(int shard) {
  KnownShard& ours = shards_[shard];
  ours.pending = true;
  const LeasePtr lease = get(shard);
  const std::uint64_t tenure = member_.tenure();
  auto ask = watch_.is_dead(lease->holder, member_.lease().within_time());
  const bool dead = co_await ask;
  ours.pending = false;
  if (!dead || tenure != member_.tenure()) co_return;
  // The live read may be older than what the watch has shown meanwhile.
  const reconciler::ShardsView view = watch_.view(member_.lease().name(), member_.acts(), false);
  if (reconciler::lives_elsewhere(view, lease->holder)) co_return;
  requests_.log().info("a shard is taken over",
                       {{"shard", std::to_string(shard)}, {"from", lease->holder}});
  // Only on the version that was judged, because the holder may have given it to somebody since.
  auto task = take(shard, lease);
  co_await task;
}

Task<void> ShardLeases::release(int shard) {
  KnownShard& ours = shards_[shard];
  const LeasePtr lease = get(shard);
  if (!lease) co_return;
  ours.pending = true;
  LeaseWrite write = requests_.write("", *lease);
  write.transitions = lease->transitions;
  write.windows = windows_of(shard, lease.get());
  auto put =
      requests_.replace(lease->name, shard_lease_body(write, shard), member_.lease().within_time());
  const LeaseRequests::Answer answer = co_await put;
  ours.pending = false;
  requests_.heed(answer);
  if (!answer) co_return;
  note_written(ours, *answer);
  handlers_.written();
}

void ShardLeases::note_written(KnownShard& ours, const JsonView& answer) {
  ours.written = decode_lease(answer);
  ours.recorded_at = requests_.loop().now();
}

// ---- Records of silent subjects, for a shard's next holder.

// What to write into the Lease that stands as `before` (null: none).
std::string ShardLeases::windows_of(int shard, const CachedLease* before) const {
  if (!handlers_.record) return "";
  std::optional<std::string> seen = handlers_.record(shard);
  if (seen) return std::move(*seen);
  return before ? before->windows : "";
}

void ShardLeases::keep_records() {
  if (!handlers_.record || !member_.acts()) return;
  const SteadyTime now = requests_.loop().now();
  for (int shard = 0; shard < shards_.size(); ++shard) {
    const KnownShard& ours = shards_[shard];
    if (!ours.held || ours.draining || ours.pending) continue;
    if (now - ours.recorded_at < kRecordEvery) continue;
    const LeasePtr lease = get(shard);
    if (!lease || lease->holder != member_.lease().name()) continue;
    std::string windows = windows_of(shard, lease.get());
    if (windows == lease->windows || !has_room()) continue;
    spawn(write_record(shard, lease, std::move(windows)));
  }
}

// A compare-and-swap on the Lease that names us: a replica that has taken the shard meanwhile also
// has the record.
Task<void> ShardLeases::write_record(int shard, LeasePtr before, std::string windows) {
  KnownShard& ours = shards_[shard];
  ours.pending = true;
  LeaseWrite write = requests_.write(member_.lease().name(), *before);
  write.transitions = before->transitions;
  write.acquired = before->acquired;
  write.windows = std::move(windows);
  auto put = requests_.replace(before->name, shard_lease_body(write, shard),
                               member_.lease().within_time());
  const LeaseRequests::Answer answer = co_await put;
  ours.pending = false;
  requests_.heed(answer);
  if (!answer) co_return;
  note_written(ours, *answer);
  handlers_.written();
}

}  // namespace holdfast::membership
