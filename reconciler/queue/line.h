// All jobs of one queue that matter to it: those that hold a permit, and those that wait, in their
// order. A change costs O(log n) for n jobs, and so does the next job that may be admitted. Pure.
//
// Order: priority, the highest first; then creation, the earliest first; then UID. A job whose key
// is full is skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "reconciler/queue/queue.h"

namespace holdfast::reconciler {

// A job as its queue sees it. It has not ended and is not being deleted.
struct QueuedJob {
  std::string uid;
  std::string name;
  std::string key;
  std::int64_t priority = 0;
  Time created{};
  std::int64_t attempt = 0;
  bool holds = false;  // its recorded phase says that it holds a permit
  bool waits = false;  // it could start if it were admitted
  Time since{};        // when it began to wait
};

class Line {
 public:
  // In builds with assertions each change of a line of so many jobs is checked. Each check costs
  // O(n).
  static constexpr std::size_t kCheckedJobs = 100;

  // The job as it is now.
  void put(QueuedJob job);
  // It is gone, has ended or is being deleted.
  void erase(const std::string& uid);
  // The admissions in the queue's status. Each is open until its job has a higher attempt.
  void set_admissions(const std::vector<Admission>& admissions);
  // Costs O(keys with permits) if it changes.
  void limit_keys(std::optional<std::int64_t> limit);

  // Permits that are held, or given to a job that has not been seen to move.
  std::int64_t used() const { return used_; }
  // The next job that may be admitted, as far as keys go; null: none.
  const QueuedJob* next() const;
  // Gives the waiting job a permit, for the attempt after its current one.
  void admit(const std::string& uid);
  // Those whose jobs have not been seen to move.
  std::vector<Admission> open_admissions() const;

  std::int64_t waiting() const { return static_cast<std::int64_t>(order_.size()); }
  std::optional<Time> oldest_since() const;
  std::vector<std::string> head(std::size_t most) const;
  const QueuedJob* find(const std::string& uid) const;
  bool empty() const { return jobs_.empty(); }
  // Throws if the sums do not agree with the jobs (core/invariant.h).
  void check() const;
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& [uid, entry] : jobs_) visit(entry.job);
  }

 private:
  struct Entry {
    QueuedJob job;
    bool uses = false;   // counted in `used_`
    bool lines = false;  // in the order
  };
  struct Before {
    bool operator()(const Entry* a, const Entry* b) const;
  };
  using Order = std::set<const Entry*, Before>;
  struct Key {
    std::int64_t used = 0;
    Order waiting;
  };

  bool is_admitted(const QueuedJob& job) const;
  void enter(Entry& entry);
  void leave(Entry& entry);
  // Changes the key, and keeps `ready_` right.
  template <class Change>
  void change_key(const std::string& name, Change change);
  bool is_sound() const;
  bool has_room(const Key& key) const { return !key_limit_ || key.used < *key_limit_; }

  std::unordered_map<std::string, Entry> jobs_;  // by UID; entries stay where they are
  std::unordered_map<std::string, std::int64_t> admissions_;
  std::unordered_map<std::string, Key> keys_;
  std::set<std::string> used_keys_;  // the keys with permits
  Order order_;                      // all that wait
  Order ready_;                      // the first of each key that has room
  std::multiset<Time> since_;
  std::optional<std::int64_t> key_limit_;
  std::int64_t used_ = 0;
};

}  // namespace holdfast::reconciler
