#include "operator/membership/member_watch.h"

#include <utility>

namespace holdfast::membership {

MemberWatch::MemberWatch(LeaseRequests& requests, cache::View<CachedLease> cached)
    : requests_(requests), cached_(cached), loop_(requests.loop()) {}

void MemberWatch::update() { clock_.watch(cached_->synced() && cached_->live(), loop_.now()); }

void MemberWatch::changed(const cache::View<CachedLease>::Change& change) {
  if (change.after) {
    tracker_.seen(change.after->name, change.after->version, clock_.read(loop_.now()));
  } else {
    tracker_.gone(change.before->name);
  }
}

template <typename Visit>
void MemberWatch::for_each_member(Visit visit) {
  cached_.for_each([&](const LeasePtr& lease) {
    if (lease->kind == CachedLease::Kind::kMember) visit(lease);
  });
}

std::optional<Duration> MemberWatch::silence_of(const std::string& lease) {
  const Duration live = clock_.read(loop_.now());
  return tracker_.silent_for(lease, live, clock_.epoch());
}

Duration MemberWatch::silent_for(const CachedLease& member) {
  return silence_of(member.name).value_or(Duration::zero());
}

reconciler::ShardsView MemberWatch::view(const std::string& self, bool acting, bool aside) {
  reconciler::ShardsView view;
  view.self = self;
  view.acting = acting;
  for_each_member([&](const LeasePtr& lease) {
    if (lease->holder.empty()) return;
    view.members[lease->holder] = {is_alive(silent_for(*lease), lease->duration),
                                   !lease->steps_aside.empty()};
  });
  if (acting) view.members[self].alive = true;
  view.members[self].aside = aside;
  return view;
}

std::set<std::string> MemberWatch::soon_dead(const std::string& self, bool has_held) {
  std::set<std::string> members;
  for_each_member([&](const LeasePtr& lease) {
    if (lease->holder == self || lease->holder.empty()) return;
    if (is_soon_dead(silent_for(*lease), lease->duration, has_held)) members.insert(lease->holder);
  });
  return members;
}

Task<bool> MemberWatch::is_dead(std::string member, kube::CallOptions options) {
  const std::string name = member_lease_name(member);
  const LeasePtr judged = cached_.get(requests_.key(name));
  auto get = requests_.get(name, options);
  const LeaseRequests::Answer answer = co_await get;
  requests_.heed(answer);
  if (!answer) co_return answer.error().code == ErrorCode::kNotFound;
  const LeasePtr live = decode_lease(*answer);
  kube::Object bare;
  if (!live && kube::decode_meta(*answer, bare)) {
    // Somebody removed its label, so the watch does not show it. Live reads like this one do.
    tracker_.seen(name, bare.version, clock_.read(loop_.now()));
    const Duration silent = silence_of(name).value_or(Duration::zero());
    co_return !is_alive(silent, requests_.config().timings.lease_duration);
  }
  if (live && judged && live->uid == judged->uid && live->version == judged->version) {
    co_return true;
  }
  const LeasePtr cached = cached_.get(requests_.key(name));
  if (live && (!cached || cached->version < live->version)) {
    tracker_.seen(name, live->version, clock_.read(loop_.now()));
    cached_->watch_lags(requests_.config().namespace_, {{"member", member}});
  }
  co_return false;
}

void MemberWatch::tidy(const std::set<std::string>& keep, const kube::CallOptions& options) {
  std::vector<SilentLease> idle;
  for_each_member([&](const LeasePtr& lease) {
    if (keep.count(lease->holder) != 0 || deleting_.count(lease->name) != 0) return;
    const std::optional<Duration> silent = silence_of(lease->name);
    if (silent) idle.push_back({lease, *silent});
  });
  if (LeasePtr lease = lease_to_delete(idle)) spawn(remove(std::move(lease), options));
}

Task<void> MemberWatch::remove(LeasePtr lease, kube::CallOptions options) {
  deleting_.insert(lease->name);
  auto del = requests_.remove(lease->name, lease->uid, lease->version, options);
  const LeaseRequests::Answer answer = co_await del;
  deleting_.erase(lease->name);
  requests_.heed(answer);
  if (!answer) co_return;
  requests_.log().info("deleted the member Lease of a dead replica", {{"lease", lease->name}});
}

std::vector<OwnershipReport::Member> MemberWatch::report() {
  std::vector<OwnershipReport::Member> members;
  for_each_member([&](const LeasePtr& lease) {
    const Duration silent = silent_for(*lease);
    members.push_back(
        {lease->holder, is_alive(silent, lease->duration), lease->steps_aside, silent});
  });
  return members;
}

}  // namespace holdfast::membership
