#include "reconciler/staleness.h"

#include <algorithm>

namespace holdfast::reconciler {
namespace {

constexpr std::size_t kBreakerMinimum = 3;
constexpr std::size_t kBreakerPercent = 55;
constexpr std::size_t kMaxHeldBack = 100'000;
// Far less than half of the shortest window.
constexpr std::chrono::milliseconds kMeasuredFor{100};
constexpr std::size_t kMaxWaiting = 10'000;
// A record is written again each 10 s while its silence lasts.
constexpr std::chrono::minutes kWaits{1};

}  // namespace

Duration agent_first_look(Duration lease_duration) {
  return std::min<Duration>(lease_duration / 2, kFirstLook);
}

bool LiveClock::running(SteadyTime at) const {
  return open_ && proven_ && at - last_proof_ <= kGapLimit;
}

// Counts the live part of (counted_until_, at] and notices a gap that has ended or begun in it.
void LiveClock::settle(SteadyTime at) {
  if (at <= counted_until_) return;
  if (open_ && proven_) {
    // Time beyond the proof's reach does not count, not even after a later proof: nobody could have
    // renewed in between.
    const SteadyTime limit = std::min(at, last_proof_ + kGapLimit);
    if (limit > counted_until_) live_ += limit - counted_until_;
    if (at > limit && !stopped_since_) stopped_since_ = last_proof_;
  }
  counted_until_ = at;
}

void LiveClock::watch(bool open, SteadyTime at) {
  settle(at);
  if (open == open_) return;
  open_ = open;
  if (!open && !stopped_since_) stopped_since_ = at;
  if (open && proven_ && at - last_proof_ <= kGapLimit && stopped_since_) {
    if (at - *stopped_since_ > kGapLimit) {
      epoch_ = live_;
    }
    stopped_since_.reset();
  }
}

void LiveClock::proof(SteadyTime at) {
  settle(at);
  const bool first = !proven_;
  proven_ = true;
  last_proof_ = std::max(last_proof_, at);
  if (!open_ || (!stopped_since_ && !first)) return;
  if (first || (stopped_since_ && at - *stopped_since_ > kGapLimit)) {
    epoch_ = live_;
  }
  stopped_since_.reset();
}

Duration LiveClock::read(SteadyTime at) {
  settle(at);
  return live_;
}

void RecordTracker::seen(const std::string& name, std::uint64_t version, Duration live_now) {
  const auto [found, added] = records_.try_emplace(name, Record{version, live_now, std::nullopt});
  if (added) {
    const auto waiting = waiting_.find(name);
    if (waiting == waiting_.end()) return;
    if (waiting->second.version == version) {
      found->second.carried = waiting->second.silent_at(live_now);
      found->second.carried_at = waiting->second.at;
    }
    waiting_.erase(waiting);
    return;
  }
  if (found->second.version == version) return;
  found->second.version = version;
  found->second.changed = live_now;
  found->second.carried = Duration::zero();
}

void RecordTracker::seen_within(std::size_t limit, const std::string& name, std::uint64_t version,
                                Duration live_now) {
  if (records_.size() >= limit && !knows(name)) records_.clear();
  seen(name, version, live_now);
}

void RecordTracker::gone(const std::string& name) {
  records_.erase(name);
  waiting_.erase(name);
}

void RecordTracker::carry(const std::string& name, std::uint64_t version, Duration silent,
                          LiveTime time, bool counts_on) {
  const auto found = records_.find(name);
  if (found == records_.end()) {
    const auto before = waiting_.find(name);
    const bool is_longer = before != waiting_.end() && before->second.version == version &&
                           before->second.at >= time.epoch &&
                           before->second.silent_at(time.now) > silent;
    if (is_longer) return;
    // Bounded: forgetting only starts windows again.
    if (waiting_.size() >= kMaxWaiting) {
      std::erase_if(waiting_, [&](const auto& one) { return time.now - one.second.at > kWaits; });
    }
    if (waiting_.size() >= kMaxWaiting) waiting_.clear();
    waiting_[name] = Waiting{version, silent, time.now, counts_on};
    return;
  }
  Record& record = found->second;
  const Duration here = seen_here(record, time);
  if (record.version != version || silent <= here + carried(record, time)) return;
  record.carried = silent - here;
  record.carried_at = time.now;
}

std::optional<std::uint64_t> RecordTracker::version(const std::string& name) const {
  if (const auto found = records_.find(name); found != records_.end()) {
    return found->second.version;
  }
  if (const auto found = waiting_.find(name); found != waiting_.end()) {
    return found->second.version;
  }
  return std::nullopt;
}

Duration RecordTracker::seen_here(const Record& record, LiveTime time) {
  const Duration last = std::max(record.changed.value_or(record.first_seen), time.epoch);
  return std::max(Duration::zero(), time.now - last);
}

Duration RecordTracker::carried(const Record& record, LiveTime time) {
  return record.carried_at >= time.epoch ? record.carried : Duration::zero();
}

std::optional<Duration> RecordTracker::silent_for(const std::string& name, Duration live_now,
                                                  Duration epoch) const {
  const auto found = records_.find(name);
  if (found == records_.end()) return std::nullopt;
  const LiveTime time{live_now, epoch};
  return seen_here(found->second, time) + carried(found->second, time);
}

std::optional<Duration> RecordTracker::counted(const std::string& name, Duration window,
                                               Duration first_look, LiveTime time) const {
  const auto found = records_.find(name);
  if (found == records_.end()) return std::nullopt;
  const Duration here = seen_here(found->second, time);
  const Duration all = here + carried(found->second, time);
  const Duration still_to_see = std::min(window, first_look) - here;
  return still_to_see > Duration::zero() ? std::min(all, window - still_to_see) : all;
}

void RecordTracker::for_each_silent(Duration at_least, const ClockOf& clock,
                                    const Visit& visit) const {
  for (const auto& [name, record] : records_) {
    const LiveTime time = clock(name);
    const Duration silent = seen_here(record, time) + carried(record, time);
    if (silent >= at_least) visit(name, record.version, silent);
  }
}

bool RecordTracker::mostly_silent(Tally sum) {
  return sum.silent * 100 > sum.counted * kBreakerPercent;
}

// Only a record that has changed or was carried, since the epoch.
std::optional<Duration> RecordTracker::silence_that_counts(const Record& record, LiveTime time,
                                                           Counting counting) {
  const Duration before = carried(record, time);
  const bool lived = record.changed && *record.changed >= time.epoch;
  const bool is_left_out = counting == Counting::kSeenAlive && !lived;
  if (is_left_out && before == Duration::zero()) return std::nullopt;
  return seen_here(record, time) + before;
}

RecordTracker::AllSilences RecordTracker::measure(const ClockOf& clock, Counting counting) const {
  AllSilences silences;
  for (const auto& [name, record] : records_) {
    const bool is_known = record.changed || record.carried != Duration::zero();
    if (!is_known && counting == Counting::kSeenAlive) continue;
    const auto silence = silence_that_counts(record, clock(name), counting);
    if (silence) silences.all.push_back(*silence);
  }
  std::sort(silences.all.begin(), silences.all.end());
  return silences;
}

std::map<std::string, RecordTracker::Silences> RecordTracker::measure_groups(
    const ClockOf& clock) const {
  std::map<std::string, Silences> groups;
  for (const auto& [name, record] : records_) {
    const auto silence = silence_that_counts(record, clock(name), Counting::kSeenAlive);
    if (silence) groups[group_of_(name)].push_back(*silence);
  }
  for (auto& [group, silences] : groups) std::sort(silences.begin(), silences.end());
  return groups;
}

// Of all records but `name`, which is silent itself.
RecordTracker::Tally RecordTracker::tally(const Silences& silences, const std::string& name,
                                          Duration window, LiveTime time, Counting counting) const {
  const auto up_to = [&](Duration limit) {
    const auto end = std::upper_bound(silences.begin(), silences.end(), limit);
    return static_cast<std::size_t>(end - silences.begin());
  };
  const auto found = records_.find(name);
  const auto own =
      found == records_.end() ? std::nullopt : silence_that_counts(found->second, time, counting);
  const Duration judged = silent_for(name, time.now, time.epoch).value_or(window);
  const Duration over = counting == Counting::kAll ? Duration(kSilentAtFirstLook) : window / 2;
  Tally sum;
  sum.counted = up_to(judged + window);
  sum.silent = sum.counted - up_to(over);
  if (own && sum.counted > 0) --sum.counted;
  if (own && *own > over && sum.silent > 0) --sum.silent;
  return sum;
}

// The groups matter only if all are in doubt.
bool RecordTracker::in_doubt(AllSilences& silences, const std::string& name, Duration window,
                             const ClockOf& clock) const {
  const LiveTime time = clock(name);
  const Tally all = tally(silences.all, name, window, time);
  if (all.counted < kBreakerMinimum) return elsewhere_ && elsewhere_(window);
  if (!mostly_silent(all)) return false;
  if (!group_of_) return true;
  if (!silences.groups) silences.groups = measure_groups(clock);
  const auto group = silences.groups->find(group_of_(name));
  if (group == silences.groups->end()) return true;
  const Tally near = tally(group->second, name, window, time);
  return near.counted < kBreakerMinimum || mostly_silent(near);
}

bool RecordTracker::breaker(const std::string& name, Duration window, const ClockOf& clock) const {
  AllSilences silences = measure(clock);
  return in_doubt(silences, name, window, clock);
}

bool RecordTracker::in_doubt(const std::string& name, Duration window, const ClockOf& clock,
                             SteadyTime now) {
  if (!measured_all_at_ || now - *measured_all_at_ >= kMeasuredFor) {
    measured_all_ = measure(clock, Counting::kAll);
    measured_all_at_ = now;
  }
  const Tally sum = tally(measured_all_.all, name, window, clock(name), Counting::kAll);
  return sum.counted >= kBreakerMinimum && mostly_silent(sum);
}

bool RecordTracker::held_back(const std::string& name, Duration window, const ClockOf& clock,
                              SteadyTime now) {
  const LiveTime time = clock(name);
  const std::optional<Duration> silent = silent_for(name, time.now, time.epoch);
  const auto key = std::pair(name, window);
  if (!silent || *silent < window) {
    held_back_.erase(key);
    return false;
  }
  // The carried silence may grow meanwhile. It is still the same silence.
  const Duration since = time.now - seen_here(records_.at(name), time);
  const auto before = held_back_.find(key);
  const bool goes_on = before != held_back_.end() && before->second == since;
  if (!goes_on && *silent < 2 * window && (!measured_at_ || now - *measured_at_ >= kMeasuredFor)) {
    measured_ = measure(clock);
    measured_at_ = now;
  }
  const bool held = goes_on || (*silent < 2 * window && in_doubt(measured_, name, window, clock));
  if (!held) return false;
  // Bounded: forgetting an entry ends its window at once, or checks the breaker again.
  if (before == held_back_.end() && held_back_.size() >= kMaxHeldBack) held_back_.clear();
  held_back_[key] = since;
  return true;
}

}  // namespace holdfast::reconciler
