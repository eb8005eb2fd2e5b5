// Chooses the worker of a pool for an attempt, by rendezvous hashing. A key goes to the same worker
// while that has a free slot. A worker that comes or goes moves only its own keys. The load is
// bounded. No worker gets more than 1.25 times the mean, rounded up, while another one with less
// has a free slot. (Mirrokni, Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads".)
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace holdfast::reconciler {

class SlotPlacement {
 public:
  // A worker that takes attempts: alive, and not draining. `used`: attempts that it has.
  void add(const std::string& uid, int slots, int used);

  // The worker for the next attempt with this key, the job's UID or `workerPool.key`. It has one
  // free slot less then. None: no worker has a free slot.
  std::optional<std::string> place(const std::string& key);

  std::int64_t free() const { return free_; }

 private:
  struct Worker {
    std::string uid;
    std::uint64_t hash = 0;
    int slots = 0;
    int used = 0;
  };
  std::vector<Worker> workers_;
  std::int64_t used_ = 0;
  std::int64_t free_ = 0;
};

}  // namespace holdfast::reconciler
