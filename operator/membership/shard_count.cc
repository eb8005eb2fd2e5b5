#include "operator/membership/shard_count.h"

#include <utility>

namespace holdfast::membership {

ShardCount::ShardCount(LeaseRequests& requests, cache::View<CachedLease> cached,
                       std::function<void(Error error)> refuse)
    : requests_(requests), cached_(cached), refuse_(std::move(refuse)) {}

Task<Result<>> ShardCount::check() {
  const std::string name = shard_lease_name(0);
  if (!cached_.get(requests_.key(name))) {
    auto post = requests_.create(shard_lease_body(requests_.write(""), 0));
    const LeaseRequests::Answer created = co_await post;
    if (created) co_return Unit{};
    if (created.error().code != ErrorCode::kAlreadyExists) co_return created.error();
  }
  auto get = requests_.get(name);
  const LeaseRequests::Answer answer = co_await get;
  if (!answer) co_return answer.error();
  const std::string which = "Lease " + name + " in namespace " + requests_.config().namespace_;
  const auto lease = decode_lease(*answer);
  if (!lease) {
    co_return make_error(ErrorCode::kTerminal, which + " is not Holdfast's: delete it");
  }
  if (refuses(*lease)) {
    co_return make_error(ErrorCode::kCancelled, "another number of shards");
  }
  if (lease->shards == 0) {
    co_return make_error(ErrorCode::kTerminal,
                         which +
                             " does not say how many shards the installation has: annotate it "
                             "with holdfast.dev/shards=NUMBER, or, when no replica runs, "
                             "delete it");
  }
  co_return Unit{};
}

bool ShardCount::refuses(const CachedLease& lease) {
  const MembershipConfig& config = requests_.config();
  // Somebody removed the annotation. That does not mean another number.
  if (lease.shards == 0) return false;
  if (lease.shards == config.shards || lease.kind != CachedLease::Kind::kShard) return false;
  const std::string ours = std::to_string(config.shards);
  const std::string theirs = std::to_string(lease.shards);
  refuse_(make_error(
      ErrorCode::kInvalid,
      "this installation has " + theirs + " shards (Lease " + lease.name + " in namespace " +
          config.namespace_ + " says so), and --shards is " + ours + ": start with --shards " +
          theirs + ", or, to change it, stop all replicas, run `kubectl delete leases -n " +
          config.namespace_ + " -l " + kLeaseLabel + "`, and start them with --shards " + ours));
  return true;
}

}  // namespace holdfast::membership
