// The requests of a rescue: the live looks, the write that decides, and the deletion.
//
// The look at the node's Lease is the last request before the write. The write names the UID and the
// version of the pod, and it is not repeated. So it frees only the pod that was judged, right after
// the look.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <map>
#include <set>
#include <string>

#include "client/controller/writer.h"
#include "client/kube/client.h"
#include "core/loop.h"
#include "core/result.h"
#include "core/task.h"
#include "operator/observe/node_monitor.h"
#include "operator/observe/shared_reads.h"
#include "operator/rescue/rescue_codec.h"

namespace holdfast::rescue {

class Rescuer {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    observe::NodeMonitor& nodes;
    const controller::Gate& gate;
  };
  explicit Rescuer(const Dependencies& dependencies)
      : loop_(dependencies.loop),
        client_(dependencies.client),
        nodes_(dependencies.nodes),
        writer_(dependencies.client, dependencies.gate),
        reads_(dependencies.loop,
               [this](std::string node, SteadyTime by) { return read(std::move(node), by); }) {}

  struct Look {
    bool out_of_service = false;
    bool unmarked = false;
    observe::LookTimes asked;  // silences count up to here
  };
  // Reads the pod's node, and then the node's Lease. Pods of one node that ask at the same time share
  // the reads. kNotFound: one of the two does not exist.
  Task<Result<Look>> look(RescuePodPtr pod);

  // What is known of the pod and of its node, at most up to the look. Null: before it. `owners`: the
  // kinds beside Job and ReplicaSet whose pods may be freed.
  reconciler::RescueView view(const CachedRescuePod& pod, const std::set<std::string>& owners,
                              const Look* look);
  // How long the pod's node has been silent; zero: unknown.
  Duration silence_of(const CachedRescuePod& pod);

  // Writes that the pod is freed. kConflict: the pod has changed, so the verdict is void.
  Task<Result<>> free(RescuePodPtr pod, Duration silent, controller::Gate::Claim claim);

  // Deletes the pod that is freed. A pod that is gone, or another one, is a success.
  Task<Result<>> remove(RescuePodPtr pod, controller::Gate::Claim claim);

 private:
  struct Seen {
    bool out_of_service = false;
    bool unmarked = false;
    SteadyTime asked{};
  };
  Task<Result<>> read(std::string node, SteadyTime by);

  Loop& loop_;
  kube::Client& client_;
  observe::NodeMonitor& nodes_;
  controller::Writer writer_;
  observe::SharedReads reads_;  // of a node, and then of its Lease
  // What the last one of each node showed, for a few seconds.
  std::map<std::string, Seen> seen_;
};

}  // namespace holdfast::rescue
