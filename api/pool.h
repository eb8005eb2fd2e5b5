// The spec and the status of a WorkerPool. Plain values; field names and meanings are as in
// docs/api.md, rules as in docs/workers.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/fields.h"
#include "api/limits.h"
#include "api/status.h"

namespace holdfast::api {

// The limits of the CRD's schema.
inline constexpr std::int64_t kMaxWorkers = 500;
inline constexpr std::int64_t kMaxSlots = 16;
inline constexpr std::int64_t kMinLeaseSeconds = 5;
inline constexpr std::int64_t kMaxIdleSeconds = 2'147'483'647;
inline constexpr std::int64_t kMaxStartSeconds = 31'536'000;
inline constexpr std::int64_t kMaxStopSeconds = 3600;

// Without the template, which is not needed to decide.
struct PoolSpec {
  std::int64_t min_workers = 1;
  std::int64_t max_workers = 10;
  std::int64_t slots = 1;  // slotsPerWorker, at most kMaxSlots
  seconds idle{300};
  seconds lease_duration{30};
  seconds start_deadline{600};  // of a worker, from when its pod has a node
  seconds stop_grace{30};       // of a command, between SIGTERM and SIGKILL
  // As Job::unknown: such a pool gets no new worker, loses none to a rollout or to rest, and offers
  // no slots.
  std::string unknown = {};
  bool operator==(const PoolSpec&) const = default;
};
// The bounds are those of the schema. The codec says what is beyond them.
template <class Io, Is<PoolSpec> X>
constexpr void fields(Io& io, X& spec) {
  io("minWorkers", spec.min_workers, {.least = 0, .most = kMaxWorkers});
  io("maxWorkers", spec.max_workers, {.least = 1, .most = kMaxWorkers});
  io("slotsPerWorker", spec.slots, {.least = 1, .most = kMaxSlots});
  io("idleSeconds", spec.idle, {.least = 0, .most = kMaxIdleSeconds});
  io("leaseDurationSeconds", spec.lease_duration,
     {.least = kMinLeaseSeconds, .most = kMaxLeaseSeconds});
  io("startDeadlineSeconds", spec.start_deadline, {.least = 1, .most = kMaxStartSeconds});
  io("stopGraceSeconds", spec.stop_grace, {.least = 1, .most = kMaxStopSeconds});
  io.other("template");
  io.own(spec.unknown);
}
static_assert(names_all<PoolSpec>());

// workers = starting + busy + idle + draining. A worker that is cut off, or whose pod has ended,
// counts nowhere.
struct PoolStatus {
  std::int64_t observed_generation = 0;
  std::int64_t workers = 0;
  std::int64_t busy = 0;        // live, with an attempt
  std::int64_t idle = 0;        // live, without one
  std::int64_t starting = 0;    // not live yet
  std::int64_t draining = 0;    // get no further attempt: scale-in, rollout, a pod's deletion
  std::int64_t slots = 0;       // of busy and idle workers
  std::int64_t busy_slots = 0;  // of those
  std::int64_t waiting = 0;     // runs that wait for a slot
  std::optional<Time> oldest_since;
  std::string selector;  // of the workers' pods, for the scale subresource
  std::string holder;    // who counts: a replica and its tenure; empty: nobody has yet
  // Workers in a row that did not start. No pod is created before `next_start`.
  std::int64_t failed_starts = 0;
  std::optional<Time> next_start;
  std::string message;  // what the pool does now, for humans
  std::vector<Condition> conditions;
  bool operator==(const PoolStatus&) const = default;
};
template <class Io, Is<PoolStatus> X>
constexpr void fields(Io& io, X& status) {
  constexpr Rule kCount = {.required = true, .least = 0, .most = kCountLimit};
  io("observedGeneration", status.observed_generation, {.required = true});
  io("workers", status.workers, kCount);
  io("busy", status.busy, kCount);
  io("idle", status.idle, kCount);
  io("starting", status.starting, kCount);
  io("draining", status.draining, kCount);
  io("slots", status.slots, kCount);
  io("busySlots", status.busy_slots, kCount);
  io("waiting", status.waiting, kCount);
  io("oldestWaitingSince", status.oldest_since, {.fraction = true});
  io("selector", status.selector, {.required = true});
  io("holderIdentity", status.holder, {.required = true});
  io("failedStarts", status.failed_starts, kCount);
  io("nextStart", status.next_start, {.fraction = true});
  io("message", status.message);
  io("conditions", status.conditions, {.entries = kConditionLimit});
}
static_assert(names_all<PoolStatus>());

}  // namespace holdfast::api
