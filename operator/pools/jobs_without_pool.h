// The jobs whose pool is not in the cache. They are looked at once it is there, or once this
// replica knows that it does not exist. Loop only.
#pragma once

#include <set>
#include <string>
#include <unordered_map>

#include "core/loop.h"
#include "operator/pools/pool_caches.h"
#include "operator/pools/pool_looks.h"

namespace holdfast::pools {

class JobsWithoutPool {
 public:
  JobsWithoutPool(Loop& loop, const PoolCaches& caches, PoolLooks& looks)
      : loop_(loop), caches_(caches), looks_(looks) {}

  void begin() { began_ = loop_.now(); }
  // As for queues: pools that could not be read within kReadingTime count as missing.
  bool has_read(const std::string& ns) const;

  // `was_read`: has_read(), when the job asked.
  void add(const codecs::CachedJob& job, const std::string& pool_key, bool was_read);
  void erase(const codecs::CachedJob& job, const std::string& pool_key);
  void look_at(const std::string& pool_key);
  // A cache has advanced.
  void on_progress();

 private:
  struct Jobs {
    bool was_read = false;  // it was known by then that there is no such pool
    std::set<std::string> keys;
  };

  Loop& loop_;
  const PoolCaches& caches_;
  PoolLooks& looks_;
  std::unordered_map<std::string, Jobs> jobs_;  // by the pool's key
  SteadyTime began_{};
};

}  // namespace holdfast::pools
