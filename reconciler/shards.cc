#include "reconciler/shards.h"

#include <algorithm>
#include <charconv>
#include <tuple>

#include "core/invariant.h"
#include "reconciler/names.h"
#include "reconciler/staleness.h"

namespace holdfast::reconciler {
namespace {

std::uint64_t weight(const std::string& member, int shard) {
  return mixed(hash64(member + "/" + std::to_string(shard)));
}

ShardDecision decide_one(const ShardsView& view, const ShardState& shard,
                         const std::string& owner) {
  const auto decision = [&owner](ShardAction action, std::string why) {
    return ShardDecision{action, owner, std::move(why)};
  };
  const bool planned = owner == view.self;
  if (shard.held && shard.holder != view.self) {
    return decision(ShardAction::kDrop, shard.holder.empty()
                                            ? "its Lease was emptied"
                                            : "its Lease was taken by " + shard.holder);
  }
  if (shard.pending) return decision(ShardAction::kNone, "a write of its Lease is in progress");
  if (shard.held && planned) return decision(ShardAction::kNone, "held, as planned");
  if (shard.held) {
    return shard.busy
               ? decision(ShardAction::kDrain, "goes to " + owner + " after the work in hand")
               : decision(ShardAction::kRelease, "goes to " + owner);
  }
  if (shard.holder == view.self) {
    return planned ? decision(ShardAction::kTake, "ours from an earlier tenure")
                   : decision(ShardAction::kRelease, "goes to " + owner);
  }
  if (!planned) return decision(ShardAction::kNone, "planned for " + owner);
  if (shard.holder.empty()) return decision(ShardAction::kTake, "free");
  const auto holder = view.members.find(shard.holder);
  if (holder == view.members.end()) {
    return decision(ShardAction::kTakeOver,
                    "its holder " + shard.holder + " is no longer a member");
  }
  if (!holder->second.alive) {
    return decision(ShardAction::kTakeOver,
                    "its holder " + shard.holder + " does not renew its member Lease");
  }
  return decision(ShardAction::kNone, "waits until " + shard.holder + " hands it over");
}

// A replica that does not act holds nothing. It gives up shards that still name it once it has
// stepped aside. Before that, it will soon act again.
ShardDecision decide_idle(const ShardsView& view, const ShardState& shard,
                          const std::string& owner) {
  const auto self = view.members.find(view.self);
  const bool aside = self != view.members.end() && self->second.aside;
  if (!aside || shard.holder != view.self || shard.busy || shard.pending || owner == view.self) {
    return {ShardAction::kNone, owner, "this replica does not act"};
  }
  return {ShardAction::kRelease, owner, "this replica does not act; goes to " + owner};
}

std::vector<std::string> planned_members(const ShardsView& view) {
  std::vector<std::string> alive;
  std::vector<std::string> seated;
  for (const auto& [name, member] : view.members) {
    if (!member.alive && name != view.self) continue;
    alive.push_back(name);
    if (!member.aside) seated.push_back(name);
  }
  return seated.empty() ? alive : seated;
}

}  // namespace

std::string shard_key(const Job& job) {
  return fixed_shard_key(job.status.shard, own_shard_key(job));
}

const std::string& own_shard_key(const Job& job) {
  if (job.queue || job.has_pool) return job.namespace_;
  return job.fixed_shard.empty() ? job.uid : job.fixed_shard;
}

bool belongs_elsewhere(const Job& job, int shards) {
  if (!job.queue && !job.has_pool) return false;
  if (is_terminal(job.status.phase) || job.deleting) return false;
  return shard_of(shard_key(job), shards) != shard_of(own_shard_key(job), shards);
}

std::string fixed_shard_key(const std::string& label, const std::string& own) {
  return label.empty() ? own : label + "/" + own;
}

int shard_of(const std::string& key, int shards) {
  const std::size_t slash = key.find('/');
  if (slash != std::string::npos) {
    const std::optional<int> labelled = labelled_shard(key.substr(0, slash), shards);
    return labelled ? *labelled : shard_of(key.substr(slash + 1), shards);
  }
  return static_cast<int>(mixed(hash64(key)) % static_cast<std::uint64_t>(shards));
}

std::string shard_label(int shard, int shards) {
  return std::to_string(shard) + "-of-" + std::to_string(shards);
}

int shard_of_pods(const Job& job, int shards) {
  return shard_of(belongs_elsewhere(job, shards) ? own_shard_key(job) : shard_key(job), shards);
}

std::string due_shard_label(const Job& job, const std::string& label, int shards) {
  const int right = shard_of_pods(job, shards);
  const int looks = labelled_shard(label, shards).value_or(shard_of(job.uid, shards));
  return looks == right ? "" : shard_label(right, shards);
}

bool names_another_shard(const std::string& label, const std::string& ours) {
  const std::size_t end = label.find('-');
  const bool is_alike =
      end != std::string::npos && label.substr(end) == ours.substr(ours.find('-'));
  return is_alike && label != ours;
}

std::optional<int> labelled_shard(const std::string& label, int shards) {
  int shard = 0;
  const char* const end = label.data() + label.size();
  if (std::from_chars(label.data(), end, shard).ec != std::errc()) return std::nullopt;
  if (shard < 0 || shard >= shards || label != shard_label(shard, shards)) return std::nullopt;
  return shard;
}

std::vector<std::string> plan_shards(int shards, const std::vector<std::string>& members) {
  std::vector<std::string> plan(static_cast<std::size_t>(shards));
  if (members.empty()) return plan;
  // The strongest wish first. A member with its share stops wishing. The remainder of the division
  // says how many members get one shard more.
  struct Wish {
    std::uint64_t weight;
    int shard;
    std::size_t member;
  };
  std::vector<std::string> names = members;
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<Wish> wishes;
  wishes.reserve(plan.size() * names.size());
  for (int shard = 0; shard < shards; ++shard) {
    for (std::size_t member = 0; member < names.size(); ++member) {
      wishes.push_back({weight(names[member], shard), shard, member});
    }
  }
  std::sort(wishes.begin(), wishes.end(), [](const Wish& a, const Wish& b) {
    return std::tie(b.weight, a.shard, a.member) < std::tie(a.weight, b.shard, b.member);
  });
  const std::size_t share = plan.size() / names.size();
  std::size_t extras = plan.size() % names.size();
  std::vector<std::size_t> has(names.size(), 0);
  for (const Wish& wish : wishes) {
    std::string& owner = plan[static_cast<std::size_t>(wish.shard)];
    std::size_t& count = has[wish.member];
    if (!owner.empty() || count > share || (count == share && extras == 0)) continue;
    if (count == share) --extras;
    ++count;
    owner = names[wish.member];
  }
  return plan;
}

std::vector<ShardDecision> decide_shards(const ShardsView& view) {
  const int shards = static_cast<int>(view.shards.size());
  const std::vector<std::string> plan = plan_shards(shards, planned_members(view));
  std::vector<ShardDecision> decisions;
  for (std::size_t shard = 0; shard < view.shards.size(); ++shard) {
    const auto decide = view.acting ? decide_one : decide_idle;
    decisions.push_back(decide(view, view.shards[shard], plan[shard]));
  }
  return decisions;
}

std::set<int> wanted_shards(const ShardsView& view, const std::vector<ShardDecision>& decisions,
                            const std::set<std::string>& soon_dead) {
  const int shards = static_cast<int>(view.shards.size());
  std::vector<std::string> then(view.shards.size());
  if (!soon_dead.empty()) {
    ShardsView soon = view;
    for (const std::string& member : soon_dead) soon.members[member].alive = false;
    then = plan_shards(shards, planned_members(soon));
  }
  std::set<int> wanted;
  for (int shard = 0; shard < shards; ++shard) {
    const auto index = static_cast<std::size_t>(shard);
    if (view.shards[index].held || decisions[index].owner == view.self ||
        then[index] == view.self) {
      wanted.insert(shard);
    }
  }
  return wanted;
}

bool lives_elsewhere(const ShardsView& view, const std::string& holder) {
  const auto member = view.members.find(holder);
  return holder != view.self && member != view.members.end() && member->second.alive;
}

void check_take(const ShardsView& view, const std::string& holder) {
  invariant(!lives_elsewhere(view, holder), "a shard is taken only if its holder is not alive");
}

std::string misfit(const MemberTimings& timings) {
  using std::chrono::milliseconds;
  using std::chrono::seconds;
  if (timings.lease_duration < seconds(1) || timings.lease_duration > std::chrono::hours(1) ||
      timings.lease_duration % seconds(1) != Duration::zero()) {
    return "--lease-duration must be whole seconds from 1s to 1h: a Lease counts in seconds";
  }
  if (timings.retry_period < milliseconds(100)) return "--retry-period must be at least 100ms";
  // The clocks that judge who is alive run only while our own renewals succeed without a gap.
  if (timings.retry_period > kGapLimit - seconds(1)) {
    return "--retry-period must be at most 4s: a renewal older than 5s counts as an outage";
  }
  if (timings.lease_duration <= timings.renew_deadline) {
    return "--lease-duration must be longer than --renew-deadline: a replica must stop acting "
           "before another may take over";
  }
  if (timings.renew_deadline * 10 <= timings.retry_period * 12) {
    return "--renew-deadline must be longer than 1.2 times --retry-period, so that one lost "
           "renewal does not end a tenure";
  }
  return "";
}

}  // namespace holdfast::reconciler
