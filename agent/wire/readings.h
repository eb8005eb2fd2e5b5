// Answers of others to the agent of a warm worker. The parts that read its Leases and jobs
// (agent/wire/pool_leases.h, agent/wire/job_record.h) give them to Slots (agent/serve/slots.h).
#pragma once

#include <optional>
#include <string>
#include <variant>

#include "agent/wire/lease_answer.h"
#include "core/result.h"
#include "core/time.h"
#include "core/worker_protocol.h"

namespace holdfast::agent {

// The work Lease, as a GET or the watch has it.
struct WorkView {
  std::string uid;
  std::string version;         // the resourceVersion
  Result<Work> work = Work{};  // an error: the text is not understood
};
using WorkReading = std::variant<WorkView, LeaseRefusal>;

// The worker Lease, as a GET or the answer to a renewal has it.
struct WorkerView {
  std::string uid;
  std::string holder;
  Result<WorkerReport> report = WorkerReport{};  // an error: the text is not understood
};
using WorkerReading = std::variant<WorkerView, LeaseRefusal>;

// The result of a live look at an attempt's job.
struct JobReading {
  enum class Kind {
    kCurrent,  // the job's run has this attempt and this worker on record, and no end of it
    kOther,    // it has not; or there is no such job
    kNone,     // no verdict, try again
  };
  Kind kind = Kind::kNone;
  std::optional<Duration> progress_deadline;  // the job's, if it has one; kCurrent
  std::string why;                            // for humans; all other kinds
  std::optional<Duration> retry_after = std::nullopt;
};

}  // namespace holdfast::agent
