#include "operator/membership/shards.h"

#include <utility>

namespace holdfast::membership {

using reconciler::ShardAction;

Shards::Shards(LeaseRequests& requests, cache::View<CachedLease> cached, MemberWatch& watch,
               const Member& member, Handlers handlers)
    : loop_(requests.loop()),
      requests_(requests),
      watch_(watch),
      member_(member),
      handlers_(std::move(handlers)),
      shards_(requests_.config().shards),
      leases_(requests, cached, watch, member, shards_,
              {[this](int shard) { handlers_.gained(shard); }, [this] { evaluate_soon(); },
               handlers_.record}) {}

std::optional<Shards::Claim> Shards::claim(int shard) const {
  const KnownShard& ours = shards_[shard];
  const Claim claim{shard, ours.tenure};
  if (!holds(claim) || ours.draining || takes_no_more_ ||
      member_.state() != MembershipState::kActing) {
    return std::nullopt;
  }
  return claim;
}

bool Shards::holds(const Claim& claim) const {
  const KnownShard& ours = shards_[claim.shard];
  return ours.tenure == claim.tenure && holds(claim.shard);
}

bool Shards::holds(int shard) const {
  return shards_[shard].held && member_.lease().time_left() > Duration::zero();
}

std::set<int> Shards::held() const {
  std::set<int> held;
  for (int shard = 0; shard < shards_.size(); ++shard) {
    if (holds(shard)) held.insert(shard);
  }
  return held;
}

std::shared_ptr<void> Shards::keep(int shard) {
  int& kept = shards_[shard].kept;
  ++kept;
  return std::shared_ptr<void>(&kept, [this, shard](int* count) {
    if (--*count == 0 && shards_[shard].draining) evaluate_soon();
  });
}

void Shards::changed(const cache::View<CachedLease>::Change& change) {
  const CachedLease& lease = change.latest();
  if (lease.shard < shards_.size() && !change.after) {
    shards_[lease.shard].written.reset();
  } else if (lease.holder != member_.lease().name() && !lease.windows.empty() &&
             handlers_.recorded) {
    handlers_.recorded(lease.windows);
  }
}

void Shards::time_travelled() {
  for (int shard = 0; shard < shards_.size(); ++shard) shards_[shard].written.reset();
}

void Shards::evaluate_soon() {
  if (!member_.takes_part() || std::exchange(evaluating_, true)) return;
  loop_.post([this] {
    evaluating_ = false;
    evaluate();
  });
}

void Shards::tick() {
  evaluate_soon();
  leases_.keep_records();
  tidy();
}

reconciler::ShardsView Shards::view() {
  const MemberLease& ours = member_.lease();
  reconciler::ShardsView view =
      watch_.view(ours.name(), member_.acts(), !ours.steps_aside().empty());
  for (int shard = 0; shard < shards_.size(); ++shard) {
    const KnownShard& known = shards_[shard];
    const LeasePtr lease = leases_.get(shard);
    view.shards.push_back({lease ? lease->holder : "", known.held, known.kept > 0, known.pending});
  }
  return view;
}

void Shards::evaluate() {
  if (!member_.takes_part() || takes_no_more_) return;
  watch_.update();
  const std::vector<reconciler::ShardDecision> decisions = decide_shards(view());
  for (int shard = 0; shard < shards_.size(); ++shard) {
    const reconciler::ShardDecision& decision = decisions[static_cast<std::size_t>(shard)];
    shards_[shard].why = decision.why;
    shards_[shard].planned = decision.owner;
    carry_out(shard, decision.action);
  }
  report_wanted(decisions);
}

// What the wanted shards need is then ready when they are.
void Shards::report_wanted(const std::vector<reconciler::ShardDecision>& decisions) {
  const std::set<int> wanted = wanted_shards(
      view(), decisions, watch_.soon_dead(member_.lease().name(), shards_.has_ever_held()));
  if (wanted == wanted_) return;
  wanted_ = wanted;
  if (handlers_.wanted) handlers_.wanted(wanted);
}

void Shards::carry_out(int shard, ShardAction action) {
  KnownShard& ours = shards_[shard];
  const bool goes = action == ShardAction::kDrain || action == ShardAction::kRelease;
  // No other member could take it before its Lease is written.
  if (goes && ours.held && requests_.must_wait()) action = ShardAction::kNone;
  switch (action) {
    case ShardAction::kNone:
      if (std::exchange(ours.draining, false) && ours.held) handlers_.kept(shard);
      return;
    case ShardAction::kDrain:
      if (!std::exchange(ours.draining, true) && handlers_.draining) handlers_.draining(shard);
      return;
    case ShardAction::kDrop:
      return drop(shard, "taken");
    case ShardAction::kTake:
      if (leases_.has_room()) spawn(leases_.take(shard, leases_.get(shard)));
      return;
    case ShardAction::kTakeOver:
      if (leases_.has_room()) spawn(leases_.take_over(shard));
      return;
    case ShardAction::kRelease:
      if (!leases_.has_room()) return;
      if (ours.held) drop(shard, "handed_over");
      spawn(leases_.release(shard));
      return;
  }
}

void Shards::drop(int shard, const char* why) {
  shards_[shard].held = false;
  shards_[shard].draining = false;
  handlers_.lost(shard, why);
}

void Shards::drop_all(const char* why) {
  for (int shard = 0; shard < shards_.size(); ++shard) {
    if (shards_[shard].held) drop(shard, why);
  }
}

void Shards::tidy() {
  if (member_.state() != MembershipState::kActing || requests_.must_wait()) return;
  std::set<std::string> needed = {member_.lease().name()};
  for (int shard = 0; shard < shards_.size(); ++shard) {
    if (const LeasePtr lease = leases_.get(shard)) needed.insert(lease->holder);
  }
  watch_.tidy(needed, member_.lease().within_time());
}

std::vector<OwnershipReport::Shard> Shards::report() const {
  std::vector<OwnershipReport::Shard> report;
  for (int shard = 0; shard < shards_.size(); ++shard) {
    const KnownShard& known = shards_[shard];
    const LeasePtr lease = leases_.get(shard);
    report.push_back({lease ? lease->holder : "", known.planned, known.held, known.why});
  }
  return report;
}

}  // namespace holdfast::membership
