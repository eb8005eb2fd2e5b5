// Answers of others to the agent of a warm worker. The parts that read its Leases and jobs
// (agent/wire/pool_leases.h, agent/wire/job_record.h) give them to Slots (agent/serve/slots.h).
#pragma once

#include <optional>
#include <string>

#include "core/time.h"
#include "core/worker_protocol.h"

namespace holdfast::agent {

// The work Lease, as a GET or the watch has it.
struct WorkReading {
  enum class Kind {
    kRead,
    kGone,  // 404, or the watch saw its deletion
    kNone,  // anything else: no verdict, try again
  };
  Kind kind = Kind::kNone;
  std::string uid;           // kRead
  std::optional<Work> work;  // kRead; none: the text is not understood
  std::string why;           // for humans; if there is no work
  // The API server asked for this pause (Retry-After); only of kNone.
  std::optional<Duration> retry_after = std::nullopt;
};

// The worker Lease, as a GET or the answer to a renewal has it.
struct WorkerReading {
  enum class Kind {
    kLease,     // 200: the Lease as it is now
    kConflict,  // 409: somebody else has written the Lease since it was read
    kGone,      // 404
    kFenced,    // 403 by the fence in the API server
    kNone,      // anything else: no verdict, try again
  };
  Kind kind = Kind::kNone;
  std::string uid;                     // kLease
  std::string holder;                  // kLease
  std::optional<WorkerReport> report;  // kLease; none: the text is not understood
  std::string why;                     // for humans; all other kinds
  std::optional<Duration> retry_after = std::nullopt;
};

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
