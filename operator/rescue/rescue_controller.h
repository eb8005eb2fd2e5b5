// The controller of other controllers' pods that have the rescue label (docs/rescue.md).
// reconciler::decide_rescue() decides, and the Rescuer sends.
//
// A pod's UID decides its shard. The pod's status records that it was freed, so the next holder of
// the shard carries a rescue through. The windows are the nodes' (observe::NodeMonitor).
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "client/cache/view.h"
#include "client/controller/controller.h"
#include "client/controller/reconcile_pool.h"
#include "operator/events/events.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/membership.h"
#include "operator/observe/window_keeper.h"
#include "operator/rescue/rescuer.h"

namespace holdfast::rescue {

struct Config {
  std::vector<std::string> namespaces = {};  // empty: all
  std::set<std::string> owners = {};         // kinds beside Job and ReplicaSet
  int most_per_minute = 60;
  int shards = 1;
};

class RescueController : public controller::Controller {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    jobs::Telemetry& telemetry;
    events::EventSink& events;
    cache::View<CachedRescuePod> pods;  // of rescue_pod_kind()
    observe::NodeMonitor& nodes;
    observe::WindowKeeper& windows;
    membership::Membership& membership;
  };
  RescueController(Dependencies dependencies, Config config);

  void begin() override { pool_.start(); }
  void stop(std::function<void()> idle) override { pool_.stop(std::move(idle)); }
  void look_at_all(int shard) override;
  void time_travelled() override { memories_.clear(); }

  struct Counts {
    std::size_t held = 0;     // wait although their node's silence counts
    std::size_t failing = 0;  // the last request of their rescue failed
  };
  Counts counts() const;

 private:
  // What this process knows of one pod.
  struct Memory {
    bool freed = false;          // by this process; the watch may not show it yet
    bool asked = false;          // this process has sent the write that frees it
    bool told = false;           // that it is freed
    SteadyTime deleted_until{};  // its deletion was accepted; the watch has so long to show it
    bool held = false;
    bool failing = false;
    std::optional<reconciler::RescueRefusal> refused;  // as told
  };
  using MemoryPtr = std::shared_ptr<Memory>;

  void on_pod(const cache::View<CachedRescuePod>::Change& change);
  Task<controller::ReconcileResult> reconcile(std::string key);
  Task<Result<>> act(RescuePodPtr pod, reconciler::RescueAction action, MemoryPtr memory,
                     controller::Gate::Claim claim);
  reconciler::RescueView view(const CachedRescuePod& pod, const Memory& memory,
                              const Rescuer::Look* look);
  void tell_freed(const CachedRescuePod& pod, Memory& memory);
  void tell_refused(const CachedRescuePod& pod, reconciler::RescueRefusal why, Memory& memory);
  void failed(const CachedRescuePod& pod, const Error& error, Memory& memory);
  void record(const CachedRescuePod& pod, bool warning, const char* reason, const char* action,
              const std::string& note);

  Loop& loop_;
  kube::Client& client_;
  Log log_;
  jobs::Telemetry& telemetry_;
  events::EventSink& events_;
  cache::View<CachedRescuePod> pods_;
  observe::NodeMonitor& nodes_;
  membership::Membership& membership_;
  const Config config_;
  Rescuer rescuer_;
  reconciler::RescueAllowance allowance_;
  controller::ReconcilePool pool_;
  std::unordered_map<std::string, MemoryPtr> memories_;  // by UID; of pods in the cache
};

}  // namespace holdfast::rescue
