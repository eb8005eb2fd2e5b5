// The agent of a warm worker reads the DurableJob before an attempt begins
// (docs/internals/workers.md). It reads whether the attempt is current, and what its command gets.
// Pure.
//
//   JobAnswer answer = read_job("resize-17", id, worker_uid, 200, body);
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/wire/readings.h"

namespace holdfast::agent {

inline constexpr std::size_t kMaxPayloadBytes = 64 << 10;
inline constexpr std::size_t kMaxJobMessageBytes = 4 << 10;

// What a command gets of its job.
struct Assignment {
  std::string job_name;
  std::vector<std::pair<std::string, std::string>> variables;
  std::string payload;  // on standard input
  std::string message;  // spec.message
};

struct JobAnswer {
  JobReading reading;
  Assignment assignment;  // kCurrent
};

std::string job_path(const std::string& job_namespace, const std::string& name);

// The answer to a GET of the job. `worker_uid`: of this worker's worker Lease.
JobAnswer read_job(const std::string& job_name, const AttemptId& id, std::string_view worker_uid,
                   int status, std::string_view body);

}  // namespace holdfast::agent
