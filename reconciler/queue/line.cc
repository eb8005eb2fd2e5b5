#include "reconciler/queue/line.h"

#include <algorithm>
#include <cassert>
#include <tuple>
#include <utility>

#include "core/invariant.h"

namespace holdfast::reconciler {

bool Line::Before::operator()(const Entry* a, const Entry* b) const {
  return std::tie(b->job.priority, a->job.created, a->job.uid) <
         std::tie(a->job.priority, b->job.created, b->job.uid);
}

bool Line::is_admitted(const QueuedJob& job) const {
  const auto found = admissions_.find(job.uid);
  // The cache may be older than the admission.
  return found != admissions_.end() && found->second >= job.attempt;
}

template <class Change>
void Line::change_key(const std::string& name, Change change) {
  Key& key = keys_[name];
  if (!key.waiting.empty()) ready_.erase(*key.waiting.begin());
  change(key);
  if (!key.waiting.empty() && has_room(key)) ready_.insert(*key.waiting.begin());
  if (key.used > 0) {
    used_keys_.insert(name);
  } else {
    used_keys_.erase(name);
  }
  if (key.used == 0 && key.waiting.empty()) keys_.erase(name);
}

void Line::enter(Entry& entry) {
  entry.uses = entry.job.holds || is_admitted(entry.job);
  entry.lines = entry.job.waits && !entry.uses;
  if (entry.uses) ++used_;
  if (entry.lines) {
    order_.insert(&entry);
    since_.insert(entry.job.since);
  }
  if (!entry.uses && !entry.lines) return;
  change_key(entry.job.key, [&](Key& key) {
    if (entry.uses) ++key.used;
    if (entry.lines) key.waiting.insert(&entry);
  });
}

void Line::leave(Entry& entry) {
  if (entry.uses) --used_;
  if (entry.lines) {
    order_.erase(&entry);
    since_.erase(since_.find(entry.job.since));
  }
  if (!entry.uses && !entry.lines) return;
  change_key(entry.job.key, [&](Key& key) {
    if (entry.uses) --key.used;
    if (entry.lines) key.waiting.erase(&entry);
  });
  entry.uses = entry.lines = false;
}

void Line::put(QueuedJob job) {
  Entry& entry = jobs_[job.uid];
  leave(entry);
  entry.job = std::move(job);
  enter(entry);
  assert(is_sound());
}

void Line::erase(const std::string& uid) {
  const auto found = jobs_.find(uid);
  if (found == jobs_.end()) return;
  leave(found->second);
  jobs_.erase(found);
  assert(is_sound());
}

void Line::set_admissions(const std::vector<Admission>& admissions) {
  const auto before = std::exchange(admissions_, {});
  for (const Admission& admission : admissions) {
    std::int64_t& attempt = admissions_.try_emplace(admission.uid, 0).first->second;
    attempt = std::max(attempt, admission.attempt);
  }
  const auto again = [&](const auto& changed) {
    for (const auto& [uid, attempt] : changed) {
      const auto found = jobs_.find(uid);
      if (found == jobs_.end()) continue;
      leave(found->second);
      enter(found->second);
    }
  };
  again(before);
  again(admissions_);
  assert(is_sound());
}

void Line::limit_keys(std::optional<std::int64_t> limit) {
  if (std::exchange(key_limit_, limit) == limit) return;
  // A key without permits has room under any limit.
  for (const std::string& name : std::vector(used_keys_.begin(), used_keys_.end())) {
    change_key(name, [](Key&) {});
  }
  assert(is_sound());
}

const QueuedJob* Line::next() const { return ready_.empty() ? nullptr : &(*ready_.begin())->job; }

void Line::admit(const std::string& uid) {
  Entry& entry = jobs_.at(uid);
  invariant(entry.lines, "only a job that waits is admitted");
  leave(entry);
  admissions_[uid] = entry.job.attempt;
  enter(entry);
  assert(is_sound());
}

void Line::check() const {
  std::int64_t used = 0;
  std::size_t waiting = 0;
  for (const auto& [uid, entry] : jobs_) {
    invariant(entry.uses == (entry.job.holds || is_admitted(entry.job)),
              "a job uses a permit if it holds one or is admitted");
    invariant(entry.lines == (entry.job.waits && !entry.uses),
              "a job that waits is in the order until it uses a permit");
    used += entry.uses ? 1 : 0;
    waiting += entry.lines ? 1 : 0;
  }
  invariant(used == used_, "the permits in use are those of the jobs");
  invariant(order_.size() == waiting && since_.size() == waiting,
            "the order has each job that waits, once");
  std::int64_t used_by_key = 0;
  std::size_t waiting_by_key = 0, ready = 0, used_keys = 0;
  for (const auto& [name, key] : keys_) {
    const bool is_ready = !key.waiting.empty() && has_room(key);
    invariant(!is_ready || ready_.count(*key.waiting.begin()) == 1,
              "the first job of a key with room is ready");
    invariant(key.used == 0 || used_keys_.count(name) == 1, "a key with permits is a used key");
    used_by_key += key.used;
    waiting_by_key += key.waiting.size();
    ready += is_ready ? 1 : 0;
    used_keys += key.used > 0 ? 1 : 0;
  }
  invariant(used_by_key == used_ && waiting_by_key == waiting, "the keys add up to the line");
  invariant(ready == ready_.size() && used_keys == used_keys_.size(),
            "no other job is ready, and no other key is used");
}

bool Line::is_sound() const {
  if (jobs_.size() <= kCheckedJobs) check();
  return true;
}

std::vector<Admission> Line::open_admissions() const {
  std::vector<Admission> open;
  for (const auto& [uid, attempt] : admissions_) {
    const auto found = jobs_.find(uid);
    if (found != jobs_.end() && is_admitted(found->second.job)) open.push_back({uid, attempt});
  }
  std::sort(open.begin(), open.end(),
            [](const Admission& a, const Admission& b) { return a.uid < b.uid; });
  return open;
}

std::optional<Time> Line::oldest_since() const {
  return since_.empty() ? std::nullopt : std::optional(*since_.begin());
}

std::vector<std::string> Line::head(std::size_t most) const {
  std::vector<std::string> names;
  names.reserve(std::min(most, order_.size()));
  for (const Entry* const entry : order_) {
    if (names.size() == most) break;
    names.push_back(entry->job.name);
  }
  return names;
}

const QueuedJob* Line::find(const std::string& uid) const {
  const auto found = jobs_.find(uid);
  return found == jobs_.end() ? nullptr : &found->second.job;
}

}  // namespace holdfast::reconciler
