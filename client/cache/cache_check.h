// Shows that a cache has everything of a namespace that the API server had at a moment. Each
// resource may have an etcd of its own, so its versions say nothing about another resource. What
// was true at a moment is compared with what a request of that resource shows that was sent after
// it:
//
// 1. A consistent list of one object gives the resource's version. In a busy cluster the watch
//    passes it at once.
// 2. A quiet kind passes it only with a bookmark, once a minute. Then it lists the namespace's
//    metadata, consistently, and compares it with the cache. The watch must then bring each
//    difference.
//
//   const Moment seen = moments.next();      // e.g. a write of another resource was acknowledged
//   if (check.shown(ns) < seen) check.compare(ns);
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

namespace holdfast::cache {

// Moments in the life of this process, in their order. Zero: before all of them.
using Moment = std::uint64_t;
class Moments {
 public:
  Moment next() { return ++last_; }

 private:
  Moment last_ = 0;
};

class CacheCheck {
 public:
  // `moments`: those that `shown` is compared with. `compared` runs when an answer has come.
  CacheCheck(kube::Client& client, Informer& cache, Moments& moments, Log log,
             std::function<void()> compared);

  // The cache has everything that the API server had at this moment.
  Moment shown(const std::string& namespace_) const;
  // Takes the first step, unless it was taken.
  void begin(const std::string& namespace_);
  // Takes the next step, unless one is under way. Call it again after a while, if the cache is
  // still not shown to be new enough. Look again on progress of the cache.
  void compare(const std::string& namespace_);
  // The cache has advanced.
  void on_progress();
  // The API server's data was set back.
  void time_travelled() {
    namespaces_.clear();
    ++age_;
  }

 private:
  // The resource had this version after the moment.
  struct Mark {
    Moment begun = 0;
    std::uint64_t version = 0;
  };
  struct Difference {
    Moment begun = 0;
    std::string selector;      // of the cache, then
    std::uint64_t listed = 0;  // the version of the list
    std::uint64_t reach = 0;   // the highest version of an object that the cache did not have
    std::vector<kube::ObjectPtr> go;  // objects of the cache that the list did not have
  };
  struct State {
    bool asks = false;  // a request is under way
    int failures = 0;
    int skipped = 0;  // calls of compare() since the last failure
    Moment shown = 0;
    std::optional<Mark> mark;
    std::optional<Difference> difference;
  };
  kube::Kind bare_kind() const;
  void failed(const std::string& ns, const std::string& why);
  Task<void> ask(std::string ns);
  Task<void> list(std::string ns);
  Difference differs(const std::string& ns, std::uint64_t version,
                     const std::vector<kube::ObjectPtr>& listed) const;
  void settle(const std::string& ns, State& state);

  kube::Client& client_;
  Informer& cache_;
  Moments& moments_;
  Log log_;
  std::function<void()> compared_;
  std::unordered_map<std::string, State> namespaces_;
  int age_ = 0;  // how often the data was set back
};

}  // namespace holdfast::cache
