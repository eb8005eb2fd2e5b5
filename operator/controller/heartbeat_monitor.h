// What this replica knows of the jobs' heartbeat Leases, on a clock that runs only while their
// watch is open and the renewals of our own member Lease succeed. Feeds the pure rules of
// reconciler/heartbeat.h. Loop only.
#pragma once

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "operator/cache/informer.h"
#include "operator/controller/heartbeat_codec.h"
#include "operator/core/loop.h"
#include "operator/core/task.h"
#include "operator/kube/client.h"
#include "reconciler/staleness.h"
#include "reconciler/types.h"

namespace holdfast::controller {

using HeartbeatPtr = std::shared_ptr<const CachedHeartbeat>;

class HeartbeatMonitor {
 public:
  HeartbeatMonitor(const cache::Informer::Dependencies& dependencies,
                   std::vector<std::string> namespaces);

  // A Lease came (before is null), changed or went (after is null).
  void on_change(
      std::function<void(const HeartbeatPtr& before, const HeartbeatPtr& after)> handler);

  // A write of ours, or a consistent read, succeeded.
  void proof();

  // Null: it is not there.
  HeartbeatPtr get(const std::string& namespace_, const std::string& job_uid);

  // `window`: the Lease's duration.
  reconciler::LeaseObservation observe(const CachedHeartbeat& lease, Duration window);

  // Reads the Lease live and takes what it says into account. Null: there is none.
  Task<Result<HeartbeatPtr>> confirm(std::string namespace_, std::string job_uid);

  cache::Informer& leases() { return leases_; }
  const cache::Informer& leases() const { return leases_; }

 private:
  struct Marks {
    std::string holder;
    std::string progress;
    Duration progressed{0};      // in live time
    std::int64_t taken_for = 0;  // the attempt that it stands without a holder for; 0: it has one
    SteadyTime taken{};
    std::optional<SteadyTime> ended;  // first seen with the end mark
  };
  void update_clock();
  void seen(const CachedHeartbeat& lease);

  Loop& loop_;
  kube::Client& client_;
  cache::Informer leases_;
  std::function<void(const HeartbeatPtr&, const HeartbeatPtr&)> on_change_;
  reconciler::LiveClock clock_;
  reconciler::RecordTracker tracker_;             // of those that are being renewed
  std::unordered_map<std::string, Marks> marks_;  // as many as there are Leases
};

}  // namespace holdfast::controller
