// Shows that a cache has everything of a namespace that the API server had at a version. In a busy
// cluster the watch passes that version at once. Of a quiet kind only a bookmark would, once a
// minute. So it lists the namespace's metadata, consistently, and compares it with the cache. What
// differs, the watch has to bring.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/cache/informer.h"
#include "core/log.h"
#include "core/task.h"

namespace holdfast::controller {

class CacheCheck {
 public:
  // `compared` runs when a comparison has come to its end.
  CacheCheck(kube::Client& client, cache::Informer& cache, Log log, std::function<void()> compared);

  // The cache has everything up to the higher of what its watch has brought and what was compared.
  std::uint64_t shown(const std::string& namespace_) const;
  // Compares once, unless a comparison is under way. Look again on progress of the cache.
  void compare(const std::string& namespace_);
  // The cache has advanced.
  void on_progress();
  // The API server's data was set back.
  void time_travelled() {
    namespaces_.clear();
    ++age_;
  }

 private:
  struct Difference {
    std::string selector;      // of the cache, then
    std::uint64_t listed = 0;  // the version of the list
    std::uint64_t reach = 0;   // the highest version of an object that the cache did not have
    std::vector<kube::ObjectPtr> go;  // objects of the cache that the list did not have
  };
  struct State {
    bool lists = false;
    std::uint64_t compared = 0;
    std::optional<Difference> difference;
  };
  Task<void> list(std::string ns);
  Difference differs(const std::string& ns, std::uint64_t version,
                     const std::vector<kube::ObjectPtr>& listed) const;
  void settle(const std::string& ns, State& state);

  kube::Client& client_;
  cache::Informer& cache_;
  Log log_;
  std::function<void()> compared_;
  std::unordered_map<std::string, State> namespaces_;
  int age_ = 0;  // how often the data was set back
};

}  // namespace holdfast::controller
