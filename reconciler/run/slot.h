// An attempt whose place is a slot of a warm worker (docs/internals/workers.md). It is shown as a
// pod to all rules that hold for both kinds of place. Internal to reconciler/, but for
// slot_as_pod(). Pure.
#pragma once

#include "reconciler/run/context.h"
#include "reconciler/run/running.h"

namespace holdfast::reconciler {

// The container that runs the command, in the pod that represents the slot.
inline constexpr const char* kSlotContainer = "command";

// `run` has its place on a worker. The pod has ended if no process of the attempt runs there any
// more, and nothing may be written to it.
PodView slot_as_pod(const Job& job, const Run& run, const SlotView& slot);

// Decides the next step of an open run whose attempt is on a worker. No live read is needed: the
// worker's Lease has one writer, and the next place waits until this one is empty.
RunStep decide_at_worker(const RunContext& context);

// The last attempt of this run, on record or about to be, may still run on its worker.
bool runs_at_worker(const Context& context, const Run& run);

// The attempts of a job that go on at workers while it stops: "worker a, worker b".
std::string workers_left(const Context& context);

}  // namespace holdfast::reconciler
