// The permits of a queue are counted from caches. This class makes them as new as the claim of the
// queue, and knows whether they are (QueueTenure). These are the jobs; and the pods, if the queue
// has a job that keeps its permit until its pod has ended.
//
// Other events of the namespace usually make the caches new enough soon, so requests wait a moment.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <string>

#include "client/cache/cache_check.h"
#include "core/loop.h"
#include "operator/queues/queue_book.h"

namespace holdfast::queues {

// Other claims may share the comparison.
inline constexpr std::chrono::milliseconds kOtherEvents{200};
// Before the next step of a comparison: the watch may bring what differs, and a request may fail.
inline constexpr std::chrono::milliseconds kNextLook{200};

class CacheProof {
 public:
  // `compared` runs when an answer has come.
  CacheProof(Loop& loop, kube::Client& client, cache::Informer& jobs, cache::Informer& pods,
             const Log& log, const std::function<void()>& compared)
      : loop_(loop),
        jobs_(client, jobs, moments_, log, compared),
        pods_(client, pods, moments_, log, compared) {}

  // The moment of a claim, once its write is acknowledged.
  cache::Moment now() { return moments_.next(); }
  // The caches are as new as the claim of this queue.
  bool is_new(const std::string& namespace_, const QueueBook& book) const;
  // Sends what shows it, unless other events may still do. Returns when to call it again.
  Duration renew(const std::string& namespace_, const QueueBook& book);

  void on_progress() {
    jobs_.on_progress();
    pods_.on_progress();
  }
  void time_travelled() {
    jobs_.time_travelled();
    pods_.time_travelled();
  }
  cache::CacheCheck& pods() { return pods_; }

 private:
  Loop& loop_;
  cache::Moments moments_;
  cache::CacheCheck jobs_;
  cache::CacheCheck pods_;
};

}  // namespace holdfast::queues
