// What the parts of the controller of pools share. It outlives them. Loop only.
#pragma once

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "operator/events/events.h"
#include "operator/jobs/telemetry.h"
#include "operator/membership/membership.h"
#include "operator/pools/known_pools.h"
#include "operator/pools/pool_caches.h"
#include "operator/pools/pool_looks.h"
#include "operator/pools/worker_times.h"

namespace holdfast::pools {

struct PoolDependencies {
  Loop& loop;
  kube::Client& client;
  const Log log;
  jobs::Telemetry& telemetry;
  events::EventSink& events;
  membership::Membership& membership;
  const PoolCaches caches;
  PoolReaches& reaches;
  KnownPools& known;
  PoolLooks& looks;
  WorkerTimes& times;

  Time now() const { return client.server_clock().now(loop.now()); }
};

}  // namespace holdfast::pools
