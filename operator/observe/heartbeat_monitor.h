// What this replica knows of the jobs' heartbeat Leases, on a clock for each watched namespace that
// runs only while its watch is open and the renewals of our own member Lease succeed. Feeds the
// pure rules of reconciler/heartbeat.h. Loop only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cache/informer.h"
#include "client/kube/client.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/observe/heartbeat_codec.h"
#include "operator/observe/heartbeat_records.h"
#include "reconciler/types.h"

namespace holdfast::controller {

using HeartbeatPtr = std::shared_ptr<const CachedHeartbeat>;

class HeartbeatMonitor {
 public:
  // Whether a worker is known to stand behind the Lease, as reconciler::is_worked_on() has it.
  using WorkedOn = std::function<bool(const CachedHeartbeat& lease)>;
  HeartbeatMonitor(const cache::Informer::Dependencies& dependencies,
                   const std::vector<std::string>& namespaces, WorkedOn worked_on);

  // A Lease came (before is null), changed or went (after is null).
  void on_change(
      std::function<void(const HeartbeatPtr& before, const HeartbeatPtr& after)> handler);

  // What `worked_on` answers for this job's Lease may have changed.
  void look_again(const std::string& namespace_, const std::string& job_uid);

  // A write of ours, or a consistent read, succeeded.
  void proof();

  // Null: it is not there.
  HeartbeatPtr get(const std::string& namespace_, const std::string& job_uid);

  // `window`: the Lease's duration.
  reconciler::LeaseObservation observe(const CachedHeartbeat& lease, Duration window);

  // HeartbeatRecords has it.
  bool unheard_since_gap(const CachedHeartbeat& lease);

  // Reads the Lease live, `by` then at the latest, and takes what it says into account. Null: there
  // is none.
  Task<Result<HeartbeatPtr>> confirm(std::string namespace_, std::string job_uid, SteadyTime by);

  void keep_windows(WindowKeeper& windows, const HeartbeatRecords::WantedBy& wanted) {
    records_.keep_windows(windows, loop_, wanted);
  }

  cache::Informer& leases() { return leases_; }
  const cache::Informer& leases() const { return leases_; }

 private:
  void update_clock();
  void seen(const CachedHeartbeat& lease);

  Loop& loop_;
  kube::Client& client_;
  cache::Informer leases_;
  std::function<void(const HeartbeatPtr&, const HeartbeatPtr&)> on_change_;
  WorkedOn worked_on_;
  HeartbeatRecords records_;
};

}  // namespace holdfast::controller
