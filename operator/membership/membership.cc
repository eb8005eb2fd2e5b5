#include "operator/membership/membership.h"

#include <utility>

namespace holdfast::membership {

Membership::Membership(const Dependencies& dependencies, Config config, Handlers handlers)
    : requests_(dependencies.client, std::move(config), dependencies.log),
      leases_({dependencies.loop, dependencies.client, dependencies.random, dependencies.log},
              lease_kind(kLeaseLabel), {requests_.config().namespace_}),
      cached_(leases_),
      shard_count_(requests_, cached_, std::move(handlers.refuse)),
      watch_(requests_, cached_),
      member_(requests_, dependencies.random, watch_, shard_count_,
              {std::move(handlers.refresh), std::move(handlers.unseen), std::move(handlers.proof),
               [this] { shards_.tick(); }, [this] { shards_.evaluate_soon(); },
               [this](const char* why) { shards_.drop_all(why); }}),
      shards_(requests_, cached_, watch_, member_,
              {std::move(handlers.gained), std::move(handlers.kept), std::move(handlers.lost),
               std::move(handlers.draining), std::move(handlers.wanted), std::move(handlers.record),
               std::move(handlers.recorded)}) {
  cached_.on_change([this](const auto& change) { on_lease(change); });
  leases_.on_progress([this] {
    watch_.update();
    shards_.evaluate_soon();
  });
}

void Membership::on_lease(const cache::View<CachedLease>::Change& change) {
  watch_.update();
  const CachedLease& lease = change.latest();
  if (lease.kind == CachedLease::Kind::kMember) {
    watch_.changed(change);
  } else {
    shards_.changed(change);
  }
  // Check shard 0 only: a misconfigured newcomer rejects itself.
  if (change.after && lease.name == shard_lease_name(0)) shard_count_.refuses(lease);
}

int Membership::shard_of(const std::string& key) const {
  return reconciler::shard_of(key, requests_.config().shards);
}

std::optional<int> Membership::labelled(const std::string& label) const {
  return reconciler::labelled_shard(label, shards());
}

std::string Membership::shard_label(int shard) const {
  return reconciler::shard_label(shard, requests_.config().shards);
}

void Membership::time_travelled() {
  shards_.time_travelled();
  // The caches are listed again one by one. Until all are listed, they show different times.
  member_.lapse("the API server's data was set back");
}

OwnershipReport Membership::report() {
  OwnershipReport report;
  const MemberLease& ours = member_.lease();
  report.self = ours.name();
  report.state = member_.state();
  report.renew_deadline = requests_.config().timings.renew_deadline;
  report.renewal_age = ours.age();
  watch_.update();
  report.members = watch_.report();
  report.shards = shards_.report();
  return report;
}

}  // namespace holdfast::membership
