// What this replica knows about the runs' heartbeat Leases. Feeds the pure rules of
// reconciler/run/heartbeat.h. Each watched namespace has a clock, which runs only while its watch
// is open and the renewals of our member Lease succeed. Loop only.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/cache/view.h"
#include "client/kube/client.h"
#include "core/loop.h"
#include "core/task.h"
#include "operator/codecs/heartbeat_codec.h"
#include "operator/observe/heartbeat_records.h"
#include "reconciler/types.h"

namespace holdfast::observe {

class HeartbeatMonitor {
 public:
  // True if a known worker should renew the Lease (reconciler::is_worked_on()).
  using WorkedOn = std::function<bool(const codecs::CachedHeartbeat& lease)>;
  HeartbeatMonitor(const cache::Informer::Dependencies& dependencies,
                   const std::vector<std::string>& namespaces, WorkedOn worked_on);

  // A Lease appeared (before is null), changed, or was deleted (after is null).
  void on_change(
      std::function<void(const codecs::HeartbeatPtr& before, const codecs::HeartbeatPtr& after)>
          handler);

  // The answer of `worked_on` may have changed for this Lease, or for all Leases of a job.
  void look_again(const std::string& namespace_, const std::string& lease);
  void look_again_at_all(const std::string& namespace_, const std::string& job);

  // A write of ours, or a consistent read, succeeded.
  void proof();

  // Null: the Lease does not exist, or another job owns it.
  codecs::HeartbeatPtr get(const std::string& namespace_, const std::string& lease,
                           const std::string& job_uid);
  std::vector<codecs::HeartbeatPtr> of_job(const std::string& namespace_, const std::string& job);

  // `window`: the Lease's duration. `asked`: up to when.
  reconciler::LeaseObservation observe(const codecs::CachedHeartbeat& lease, Duration window,
                                       const LookTimes& asked = {});
  // Now, on this namespace's clock.
  Duration live_now(const std::string& namespace_);

  // See HeartbeatRecords.
  bool knows_few() const { return records_.knows_few(); }
  bool unheard_since_gap(const codecs::CachedHeartbeat& lease);

  // Reads the Lease live, until `by` at the latest, and records the result. Null: it does not
  // exist.
  Task<Result<codecs::HeartbeatPtr>> confirm(std::string namespace_, std::string lease,
                                             std::string job_uid, SteadyTime by);

  void keep_windows(WindowKeeper& windows, const HeartbeatRecords::WantedBy& wanted) {
    records_.keep_windows(windows, loop_, wanted);
  }

  cache::View<codecs::CachedHeartbeat> cached() { return leases_; }
  cache::Informer& leases() { return leases_; }
  const cache::Informer& leases() const { return leases_; }

 private:
  void update_clock();
  void seen(const codecs::CachedHeartbeat& lease);

  Loop& loop_;
  kube::Client& client_;
  cache::Informer leases_;
  std::function<void(const codecs::HeartbeatPtr&, const codecs::HeartbeatPtr&)> on_change_;
  WorkedOn worked_on_;
  HeartbeatRecords records_;
};

}  // namespace holdfast::observe
