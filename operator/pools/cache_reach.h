// Decisions that wait until a cache is as new as a version. In a busy namespace its watch passes
// the version at once. If not, the cache is compared with the API server.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "core/loop.h"
#include "operator/queues/cache_check.h"

namespace holdfast::controller {

class CacheReach {
 public:
  using Wake = std::function<void(const std::string& key)>;
  CacheReach(Loop& loop, kube::Client& client, cache::Informer& cache, Log log, Wake wake);
  ~CacheReach() { stop(); }

  bool has(const std::string& namespace_, std::uint64_t version) const {
    return check_.shown(namespace_) >= version;
  }
  // The cache has everything of the namespace up to this version. If not, `wake` gets the key once
  // it has. The key begins with "<namespace>/".
  bool has(const std::string& namespace_, std::uint64_t version, const std::string& key);
  // The cache has advanced.
  void on_progress();
  void time_travelled();
  void stop();

 private:
  void look();
  void compare();

  Loop& loop_;
  Wake wake_;
  CacheCheck check_;
  struct Waiting {
    std::uint64_t version = 0;
    SteadyTime since{};
  };
  std::unordered_map<std::string, Waiting> waiting_;  // by key
  TimerId timer_ = 0;
  bool stopped_ = false;
};

}  // namespace holdfast::controller
