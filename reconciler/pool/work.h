// Decides on the two Leases of a warm worker (docs/internals/workers.md). The results are the work
// Lease's next words, and the state of an attempt at this worker. The model tests/model/workers.pml
// checks the protocol. Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/worker_protocol.h"
#include "reconciler/types.h"

namespace holdfast::reconciler {

// What the job's record says of an attempt.
enum class RecordSays {
  kUnknown,  // the record that we have is older than the attempt's intent
  kRun,
  kOver,  // its end, or a later attempt of the run, is on record; or the job is gone
};

// An attempt whose place, on record, is this worker.
struct Placed {
  AttemptId id;
  std::string job_name;
  std::int64_t message = 0;  // Job::message
};

// The work Lease's next words. None: they stay. `work`: as it was read, for the compare-and-swap.
// `placed`: all open attempts with this worker as their place, by the records.
//
// The entry of an attempt that is over leaves with the worker's answer, and is `stop` until then.
// A worker that drains gets no new entry: such an attempt is handed back. It still learns that a
// message has changed.
std::optional<Work> next_work(const Work& work, const WorkerReport& report,
                              const std::vector<Placed>& placed,
                              const std::function<RecordSays(const AttemptId&)>& record);

// The same, with the mark that the worker shall drain; `end`: of its pod, if that was deleted.
// None: the marks stay.
std::optional<Work> marked(const Work& work, bool drains, const std::optional<PodEnd>& end);

// Who may write the worker Lease.
enum class WorkerIs {
  kLive,     // the agent
  kRevoked,  // nobody; its children may still run
  kCutOff,   // nobody, and its children are dead or were frozen
};

struct WorkerView {
  WorkerIs is = WorkerIs::kLive;
  WorkerReport report;       // of the version that the cut-off compared, if it is cut off
  std::optional<Work> work;  // the work Lease; none: it is gone
  std::string work_uid;
  // Both Leases were read after the cut-off, and after the record that has the attempt's end.
  bool read_after = false;
  // kCutOff: why, as the end of a sentence; and that the kernel killed it for its memory.
  std::string cut_off_why;
  bool out_of_memory = false;
};

// `answer`: set for kRunning and the ends.
AtPlace at_place(const AttemptId& id, const WorkerView& worker, const Answer** answer = nullptr);

// Of a worker that is cut off: how many attempts may have run there by then. Only if it was read
// after the cut-off.
std::int64_t attempts_at_end(const WorkerView& worker);

// The same as is_empty(), of an attempt whose end is on record. Its process may have run on: the
// operator ended it early.
bool has_left(const AttemptId& id, const WorkerView& worker);

}  // namespace holdfast::reconciler
