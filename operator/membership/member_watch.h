// The Leases of all members, as the watch shows them: who lives, and who is dead. Loop only.
//
// A member is dead if its Lease has not changed for its duration. The duration counts on our steady
// clock, and only while the watch is live and our renewals succeed (reconciler::LiveClock). The
// watch may lag, so a live read must confirm it before a shard is taken over.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "client/cache/view.h"
#include "operator/membership/lease_requests.h"
#include "operator/membership/ownership_report.h"
#include "operator/membership/silence.h"
#include "reconciler/staleness.h"

namespace holdfast::membership {

class MemberWatch {
 public:
  MemberWatch(LeaseRequests& requests, cache::View<CachedLease> cached);

  // The watch may have opened or closed. Call it before each question.
  void update();
  // A renewal of ours has just succeeded.
  void proof() { clock_.proof(loop_.now()); }
  // A member's Lease has changed.
  void changed(const cache::View<CachedLease>::Change& change);

  // The members as decide_shards() needs them, without shards. `aside`: of ourselves.
  reconciler::ShardsView view(const std::string& self, bool acting, bool aside);
  // The other members that miss renewals. `has_held`: this replica has held a shard.
  std::set<std::string> soon_dead(const std::string& self, bool has_held);
  // False if a live read fails, or shows a change that the watch has not shown.
  Task<bool> is_dead(std::string member, kube::CallOptions options);
  // Deletes the Lease of a dead member, if that is due. Members in `keep` stay.
  void tidy(const std::set<std::string>& keep, const kube::CallOptions& options);
  std::vector<OwnershipReport::Member> report();

 private:
  std::optional<Duration> silence_of(const std::string& lease);
  Duration silent_for(const CachedLease& member);
  template <typename Visit>
  void for_each_member(Visit visit);
  Task<void> remove(LeasePtr lease, kube::CallOptions options);

  LeaseRequests& requests_;
  const cache::View<CachedLease> cached_;
  Loop& loop_;
  reconciler::LiveClock clock_;
  reconciler::RecordTracker tracker_;
  std::set<std::string> deleting_;  // Leases
};

}  // namespace holdfast::membership
