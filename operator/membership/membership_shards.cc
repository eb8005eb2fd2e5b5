// Carries out the reconciler's decisions about shards.
#include <algorithm>

#include "core/pause.h"
#include "operator/membership/membership.h"

namespace holdfast::controller {
namespace {

using reconciler::ShardAction;

// The most writes of shard Leases in progress at a time.
constexpr int kMostPending = 16;
// The watch shows a new Lease before this many tries to create it.
constexpr int kUnseenIsForeign = 3;
// A member Lease that is stale for this many of its durations, and holds nothing, is deleted. Soon:
// a replica that joins later counts its holder as alive for one duration, because it has not seen
// the silence before. Its plan then differs from the others'. A holder that is back joins as new.
constexpr int kTidyDurations = 2;
// A replica that is killed often never lives that long, so more dead Leases than this are also
// deleted.
constexpr int kMostDead = 16;

}  // namespace

int Membership::shard_of(const std::string& key) const {
  return reconciler::shard_of(key, config_.shards);
}

int Membership::shard_of_pod(const std::string& label, const std::string& job_uid) const {
  const auto labelled = reconciler::labelled_shard(label, config_.shards);
  return labelled ? *labelled : shard_of(job_uid);
}

std::string Membership::shard_label(int shard) const {
  return reconciler::shard_label(shard, config_.shards);
}

std::optional<Ownership::Claim> Membership::claim(const std::string& key) const {
  return claim_shard(shard_of(key));
}

std::optional<Ownership::Claim> Membership::claim_shard(int shard) const {
  const Shard& ours = shards_[static_cast<std::size_t>(shard)];
  const Claim claim{shard, ours.tenure};
  if (!holds(claim) || ours.draining || takes_no_more_ || state_ != State::kActing) {
    return std::nullopt;
  }
  return claim;
}

bool Membership::holds(const Claim& claim) const {
  const Shard& ours = shards_[static_cast<std::size_t>(claim.shard)];
  return ours.held && ours.tenure == claim.tenure && time_left() > Duration::zero();
}

bool Membership::holds(const std::string& key) const { return holds_shard(shard_of(key)); }

bool Membership::holds_shard(int shard) const {
  return shards_[static_cast<std::size_t>(shard)].held && time_left() > Duration::zero();
}

bool Membership::is_draining(int shard) const {
  return shards_[static_cast<std::size_t>(shard)].draining;
}

void Membership::time_travelled() {
  for (Shard& shard : shards_) shard.written.reset();
  // The caches are listed again one by one. Until all are listed, they show different times.
  lapse("the API server's data was set back");
}

int Membership::shards_held() const {
  return static_cast<int>(
      std::count_if(shards_.begin(), shards_.end(), [](const Shard& shard) { return shard.held; }));
}

void Membership::update_clock() { clock_.watch(leases_.synced() && leases_.live(), loop_.now()); }

void Membership::on_lease(const cache::View<CachedLease>::Change& change) {
  update_clock();
  const LeasePtr& lease = change.after ? change.after : change.before;
  if (lease->kind == CachedLease::Kind::kMember) {
    if (change.after) {
      tracker_.seen(lease->name, lease->version, clock_.read(loop_.now()));
    } else {
      tracker_.gone(lease->name);
    }
  } else if (lease->shard < config_.shards && !change.after) {
    shards_[static_cast<std::size_t>(lease->shard)].written.reset();
  } else if (lease->holder != self_ && !lease->windows.empty() && handlers_.recorded) {
    handlers_.recorded(lease->windows);
  }
  // Check shard 0 only: a misconfigured newcomer rejects itself.
  if (change.after && lease->name == shard_lease_name(0)) refuse_wrong_number(*lease);
}

std::shared_ptr<void> Membership::keep(int shard) {
  int& kept = shards_[static_cast<std::size_t>(shard)].kept;
  ++kept;
  return std::shared_ptr<void>(&kept, [this, shard](int* count) {
    if (--*count == 0) work_ended(shard);
  });
}

void Membership::work_ended(int shard) {
  if (shards_[static_cast<std::size_t>(shard)].draining) evaluate_soon();
}

void Membership::evaluate_soon() {
  if (!evaluates() || std::exchange(evaluating_, true)) return;
  loop_.post([this] {
    evaluating_ = false;
    evaluate();
  });
}

LeasePtr Membership::shard_lease(int shard) {
  const auto cached = cached_.get(config_.namespace_ + "/" + shard_lease_name(shard));
  const auto& written = shards_[static_cast<std::size_t>(shard)].written;
  return written && (!cached || cached->version < written->version) ? written : cached;
}

bool Membership::member_alive(const CachedLease& member) {
  return silent_for(member) < member.duration;
}

// No other is silent for so long while a server hangs and all members only wait for it. Who has
// never held a shard has no changes of pods to miss. It asks sooner, because its life may be short.
bool Membership::is_soon_dead(const CachedLease& member) {
  const bool has_held = std::any_of(shards_.begin(), shards_.end(),
                                    [](const Shard& shard) { return shard.tenure > 0; });
  const Duration silent = silent_for(member);
  return silent >= member.duration / (has_held ? 2 : 3) && silent < member.duration;
}

Duration Membership::silent_for(const CachedLease& member) {
  const Duration live = clock_.read(loop_.now());
  return tracker_.silent_for(member.name, live, clock_.epoch()).value_or(Duration::zero());
}

reconciler::ShardsView Membership::view() {
  reconciler::ShardsView view;
  view.self = self_;
  view.acting = state_ == State::kActing && time_left() > Duration::zero();
  cached_.for_each([&](const LeasePtr& lease) {
    if (lease->kind != CachedLease::Kind::kMember || lease->holder.empty()) return;
    view.members[lease->holder] = {member_alive(*lease), !lease->steps_aside.empty()};
  });
  if (view.acting) view.members[self_].alive = true;
  view.members[self_].aside = !aside_.empty();
  for (int shard = 0; shard < config_.shards; ++shard) {
    const Shard& ours = shards_[static_cast<std::size_t>(shard)];
    const auto lease = shard_lease(shard);
    view.shards.push_back({lease ? lease->holder : "", ours.held, ours.kept > 0, ours.pending});
  }
  return view;
}

// While it reads, it may still have shards to give up.
bool Membership::evaluates() const {
  return state_ == State::kActing || (state_ == State::kReading && !aside_.empty());
}

void Membership::evaluate() {
  if (!evaluates() || takes_no_more_) return;
  update_clock();
  const std::vector<reconciler::ShardDecision> decisions = decide_shards(view());
  for (int shard = 0; shard < config_.shards; ++shard) {
    const reconciler::ShardDecision& decision = decisions[static_cast<std::size_t>(shard)];
    Shard& ours = shards_[static_cast<std::size_t>(shard)];
    ours.why = decision.why;
    ours.planned = decision.owner;
    carry_out(shard, decision);
  }
  tell_wanted();
}

// With the shards that would be ours if the members that miss renewals were dead. What they need is
// then ready when they are.
void Membership::tell_wanted() {
  reconciler::ShardsView soon = view();
  bool is_other = false;
  cached_.for_each([&](const LeasePtr& lease) {
    const auto member = soon.members.find(lease->holder);
    if (lease->kind != CachedLease::Kind::kMember || member == soon.members.end()) return;
    if (lease->holder == self_ || !is_soon_dead(*lease)) return;
    member->second.alive = false;
    is_other = true;
  });
  std::vector<reconciler::ShardDecision> then;
  if (is_other) then = decide_shards(soon);
  std::set<int> wanted;
  for (int shard = 0; shard < config_.shards; ++shard) {
    const auto index = static_cast<std::size_t>(shard);
    const Shard& ours = shards_[index];
    const bool comes = is_other && then[index].owner == self_;
    if (ours.held || ours.planned == self_ || comes) wanted.insert(shard);
  }
  if (wanted == wanted_) return;
  wanted_ = wanted;
  if (handlers_.wanted) handlers_.wanted(wanted);
}

bool Membership::shards_wait() const { return loop_.now() < shards_not_before_; }

void Membership::heed_shards(const Result<JsonDocument>& answer) {
  if (!answer) heed(answer.error(), loop_.now(), shards_not_before_);
}

bool Membership::room() const {
  if (shards_wait()) return false;
  return std::count_if(shards_.begin(), shards_.end(),
                       [](const Shard& shard) { return shard.pending; }) < kMostPending;
}

void Membership::carry_out(int shard, const reconciler::ShardDecision& decision) {
  Shard& ours = shards_[static_cast<std::size_t>(shard)];
  // No other member could take it before its Lease is written.
  const bool stays =
      ours.held && shards_wait() &&
      (decision.action == ShardAction::kDrain || decision.action == ShardAction::kRelease);
  switch (stays ? ShardAction::kNone : decision.action) {
    case ShardAction::kNone:
      if (std::exchange(ours.draining, false) && ours.held) handlers_.kept(shard);
      return;
    case ShardAction::kDrain:
      if (!std::exchange(ours.draining, true) && handlers_.draining) handlers_.draining(shard);
      return;
    case ShardAction::kDrop:
      return drop(shard, "taken");
    case ShardAction::kTake:
      if (room()) spawn(take(shard, shard_lease(shard)));
      return;
    case ShardAction::kTakeOver:
      if (room()) spawn(take_over(shard));
      return;
    case ShardAction::kRelease:
      if (room()) spawn(release(shard));
      return;
  }
}

void Membership::drop(int shard, const char* why) {
  Shard& ours = shards_[static_cast<std::size_t>(shard)];
  ours.held = false;
  ours.draining = false;
  handlers_.lost(shard, why);
}

Task<void> Membership::take(int shard, LeasePtr before) {
  Shard& ours = shards_[static_cast<std::size_t>(shard)];
  reconciler::check_take(view(), before ? before->holder : "");
  ours.pending = true;
  const std::uint64_t tenure = tenure_;
  LeaseWrite write = lease_write(self_, config_.timings.lease_duration);
  write.windows = windows_of(shard, before.get());
  Result<JsonDocument> answer = JsonDocument();
  if (before) {
    write.uid = before->uid;
    write.version = before->version;
    write.transitions = before->transitions + 1;
    auto put = client_.put(path(before->name), shard_lease_body(write, shard), within_time());
    answer = co_await put;
  } else {
    auto post = client_.post(path(), shard_lease_body(write, shard), within_time());
    answer = co_await post;
  }
  ours.pending = false;
  heed_shards(answer);
  if (answer) {
    note_written(ours, *answer);
    // An answer from before a lapse proves nothing about the time after it.
    if (ours.written && tenure == tenure_ && state_ == State::kActing &&
        time_left() > Duration::zero()) {
      ours.held = true;
      ++ours.tenure;
      handlers_.gained(shard);
    }
    evaluate_soon();
  }
  if (!answer && answer.error().code == ErrorCode::kAlreadyExists) {
    if (++ours.unseen == kUnseenIsForeign) tell_of_foreign(shard);
    co_return;
  }
  ours.unseen = 0;
  if (!answer && answer.error().code != ErrorCode::kConflict) {
    tell("a shard's Lease could not be taken", answer.error());
  }
  // After a failure the watch or the next tick retries. An immediate retry would be a hot loop.
}

void Membership::tell_of_foreign(int shard) {
  log_.warn(
      "a shard's Lease could not be taken; nobody works on its jobs",
      {{"member", self_},
       {"lease", shard_lease_name(shard)},
       {"error", "it exists without the label " + std::string(kLeaseLabel) + "=" + kShardLease},
       {"what_to_do",
        "delete it in the namespace " + config_.namespace_ + "; Holdfast then creates it again"}});
}

Task<void> Membership::take_over(int shard) {
  Shard& ours = shards_[static_cast<std::size_t>(shard)];
  ours.pending = true;
  const auto lease = shard_lease(shard);
  const std::uint64_t tenure = tenure_;
  auto ask = holder_is_dead(lease->holder);
  const bool dead = co_await ask;
  ours.pending = false;
  if (!dead || tenure != tenure_) co_return;
  // The live read may be older than what the watch has shown meanwhile.
  if (reconciler::lives_elsewhere(view(), lease->holder)) co_return;
  log_.info("a shard is taken over", {{"shard", std::to_string(shard)}, {"from", lease->holder}});
  // Only on the version that was judged, because the holder may have given it to somebody since.
  auto task = take(shard, lease);
  co_await task;
}

// The watch may lag, so read the verdict's evidence again.
Task<bool> Membership::holder_is_dead(std::string holder) {
  const std::string name = member_lease_name(holder);
  const auto judged = cached_.get(config_.namespace_ + "/" + name);
  auto get = client_.get(path(name), within_time());
  const Result<JsonDocument> answer = co_await get;
  heed_shards(answer);
  if (!answer) co_return answer.error().code == ErrorCode::kNotFound;
  const auto live = decode_lease(*answer);
  kube::Object bare;
  if (!live && kube::decode_meta(*answer, bare)) {
    // Somebody removed its label, so the watch does not show it. Live reads like this one do.
    const Duration now = clock_.read(loop_.now());
    tracker_.seen(name, bare.version, now);
    const auto silent = tracker_.silent_for(name, now, clock_.epoch());
    const bool dead = silent.value_or(Duration::zero()) >= config_.timings.lease_duration;
    co_return dead;
  }
  if (live && judged && live->uid == judged->uid && live->version == judged->version) {
    co_return true;
  }
  const auto cached = cached_.get(config_.namespace_ + "/" + name);
  if (live && (!cached || cached->version < live->version)) {
    tracker_.seen(name, live->version, clock_.read(loop_.now()));
    leases_.watch_lags(config_.namespace_, {{"member", holder}});
  }
  co_return false;
}

Task<void> Membership::release(int shard) {
  Shard& ours = shards_[static_cast<std::size_t>(shard)];
  if (ours.held) drop(shard, "handed_over");
  const auto lease = shard_lease(shard);
  if (!lease) co_return;
  ours.pending = true;
  LeaseWrite write = lease_write("", config_.timings.lease_duration);
  write.uid = lease->uid;
  write.version = lease->version;
  write.transitions = lease->transitions;
  write.windows = windows_of(shard, lease.get());
  auto put = client_.put(path(lease->name), shard_lease_body(write, shard), within_time());
  const Result<JsonDocument> answer = co_await put;
  ours.pending = false;
  heed_shards(answer);
  if (answer) {
    note_written(ours, *answer);
    evaluate_soon();
  }
}

void Membership::note_written(Shard& ours, const JsonView& answer) {
  ours.written = decode_lease(answer);
  ours.recorded_at = loop_.now();
}

// Every killed process leaves a member Lease behind, and nobody else deletes it.
void Membership::tidy() {
  if (state_ != State::kActing || shards_wait()) return;
  std::set<std::string> holders;
  for (int shard = 0; shard < config_.shards; ++shard) {
    if (const auto lease = shard_lease(shard)) holders.insert(lease->holder);
  }
  const Duration live = clock_.read(loop_.now());
  LeasePtr stale, dead;
  int dead_count = 0;
  cached_.for_each([&](const LeasePtr& lease) {
    if (lease->kind != CachedLease::Kind::kMember || lease->holder == self_) return;
    if (holders.count(lease->holder) != 0 || deleting_.count(lease->name) != 0) return;
    const auto silent = tracker_.silent_for(lease->name, live, clock_.epoch());
    if (silent && *silent >= kTidyDurations * lease->duration) stale = lease;
    if (!silent || *silent < lease->duration) return;
    ++dead_count;
    if (!dead || lease->version < dead->version) dead = lease;
  });
  if (!stale && dead_count > kMostDead) stale = dead;
  if (stale) spawn(delete_member(stale->name, stale->uid, stale->version));
}

Task<void> Membership::delete_member(std::string name, std::string uid, std::uint64_t version) {
  deleting_.insert(name);
  const Json body = {
      {"apiVersion", "v1"},
      {"kind", "DeleteOptions"},
      {"preconditions", {{"uid", uid}, {"resourceVersion", std::to_string(version)}}}};
  auto del = client_.del(path(name), body.dump(), within_time());
  const Result<JsonDocument> answer = co_await del;
  deleting_.erase(name);
  heed_shards(answer);
  if (answer) log_.info("deleted the member Lease of a dead replica", {{"lease", name}});
}

OwnershipReport Membership::report() {
  OwnershipReport report;
  report.self = self_;
  report.state = state_;
  report.renew_deadline = config_.timings.renew_deadline;
  if (renewed_at_ != SteadyTime{}) report.renewal_age = loop_.now() - renewed_at_;
  update_clock();
  const Duration live = clock_.read(loop_.now());
  cached_.for_each([&](const LeasePtr& lease) {
    if (lease->kind != CachedLease::Kind::kMember) return;
    const auto silent = tracker_.silent_for(lease->name, live, clock_.epoch());
    report.members.push_back(
        {lease->holder, member_alive(*lease), lease->steps_aside, silent.value_or(Duration{0})});
  });
  for (int shard = 0; shard < config_.shards; ++shard) {
    const Shard& ours = shards_[static_cast<std::size_t>(shard)];
    const auto lease = shard_lease(shard);
    report.shards.push_back({lease ? lease->holder : "", ours.planned, ours.held, ours.why});
  }
  return report;
}

}  // namespace holdfast::controller
