// The spec and the status of a WorkerPool. Plain values; field names and meanings are as in
// docs/api.md, rules as in docs/internals/workers.md.
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

inline constexpr Rule kPoolCount = {.required = true, .least = 0, .most = kCountLimit};

// total = starting + busy + idle + draining. A worker that is cut off, or whose pod has ended,
// counts nowhere.
struct WorkerCounts {
  std::int64_t total = 0;
  std::int64_t busy = 0;      // live, with an attempt
  std::int64_t idle = 0;      // live, without one
  std::int64_t starting = 0;  // not live yet
  std::int64_t draining = 0;  // get no further attempt: scale-in, rollout, a pod's deletion
  bool operator==(const WorkerCounts&) const = default;
};
template <class Io, Is<WorkerCounts> X>
constexpr void fields(Io& io, X& workers) {
  io("workers", workers.total, kPoolCount);
  io("busy", workers.busy, kPoolCount);
  io("idle", workers.idle, kPoolCount);
  io("starting", workers.starting, kPoolCount);
  io("draining", workers.draining, kPoolCount);
}
static_assert(names_all<WorkerCounts>());

// The workers that failed to start.
struct StartRecord {
  std::int64_t failed = 0;   // in a row
  std::optional<Time> next;  // no pod is created before
  bool operator==(const StartRecord&) const = default;
};
template <class Io, Is<StartRecord> X>
constexpr void fields(Io& io, X& starts) {
  io("failedStarts", starts.failed, kPoolCount);
  io("nextStart", starts.next, {.fraction = true});
}
static_assert(names_all<StartRecord>());

struct PoolStatus {
  std::int64_t observed_generation = 0;
  WorkerCounts workers;
  std::int64_t slots = 0;       // of busy and idle workers
  std::int64_t busy_slots = 0;  // of those
  std::int64_t waiting = 0;     // runs that wait for a slot
  std::optional<Time> oldest_since;
  std::string selector;  // of the workers' pods, for the scale subresource
  std::string holder;    // who counts: a replica and its tenure; empty: nobody has yet
  StartRecord starts;
  std::string message;  // what the pool does now, for humans
  std::vector<Condition> conditions;
  bool operator==(const PoolStatus&) const = default;
};
template <class Io, Is<PoolStatus> X>
constexpr void fields(Io& io, X& status) {
  io("observedGeneration", status.observed_generation, {.required = true});
  io.all_of(status.workers);
  io("slots", status.slots, kPoolCount);
  io("busySlots", status.busy_slots, kPoolCount);
  io("waiting", status.waiting, kPoolCount);
  io("oldestWaitingSince", status.oldest_since, {.fraction = true});
  io("selector", status.selector, {.required = true});
  io("holderIdentity", status.holder, {.required = true});
  io.all_of(status.starts);
  io("message", status.message);
  io("conditions", status.conditions, {.entries = kConditionLimit});
}
static_assert(names_all<PoolStatus>());

}  // namespace holdfast::api
