// Decisions that wait until a cache has everything that the API server had at a moment. In a busy
// namespace the cache soon has it, and one small request shows that. If not, the cache is compared
// with the API server (CacheCheck).
//
//   // The Leases are as new as this version of the job.
//   leases.has(ns, leases.since(job.uid, job.version), key)
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>

#include "client/cache/cache_check.h"
#include "core/loop.h"

namespace holdfast::cache {

class Reach {
 public:
  using Wake = std::function<void(const std::string& key)>;
  Reach(Loop& loop, kube::Client& client, Informer& cache, Log log, Wake wake);
  ~Reach() { stop(); }

  // The moment when this process first asked about this version of an object of another resource.
  // Forgetting it costs another request.
  Moment since(const std::string& uid, std::uint64_t version);
  Moment now() { return moments_.next(); }

  bool has(const std::string& namespace_, Moment moment) const {
    return check_.shown(namespace_) >= moment;
  }
  // The cache has everything of the namespace of this moment, and of `version`, which an answer of
  // the cache's own resource reported. If not, `wake` gets the key once it has. The key begins with
  // "<namespace>/".
  bool has(const std::string& namespace_, Moment moment, const std::string& key,
           std::uint64_t version = 0);
  // The cache has advanced.
  void on_progress();
  void time_travelled();
  void stop();

 private:
  void look();
  void compare();

  Loop& loop_;
  Informer& cache_;
  Wake wake_;
  Moments moments_;
  CacheCheck check_;
  struct Seen {
    std::uint64_t version = 0;
    Moment moment = 0;
  };
  std::unordered_map<std::string, Seen> seen_;  // by UID
  struct Waiting {
    Moment moment = 0;
    std::uint64_t version = 0;
    SteadyTime since{};
  };
  std::unordered_map<std::string, Waiting> waiting_;  // by key
  TimerId timer_ = 0;
  bool stopped_ = false;
};

}  // namespace holdfast::cache
