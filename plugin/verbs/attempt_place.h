// Where an attempt ran: which pod, and whether that was a warm worker's. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/result.h"
#include "core/time.h"

namespace holdfast::plugin {

// Which attempt is asked for; none of them: the last.
struct AttemptChoice {
  std::optional<std::int64_t> attempt;
  std::optional<std::int64_t> index;
  std::string stage;
};

struct AttemptPlace {
  std::int64_t attempt = 0;
  std::string pod;         // the attempt's own, or its worker's
  bool is_worker = false;  // the pod's log has other attempts' lines, too
  std::optional<Time> start;
  std::string end;  // how it ended, for people: "Failed: exit code 1"; empty: it has not
};

// From the job's status; where that has forgotten the attempt, from `pods`, those of the job.
// kNotFound says what the job has instead.
Result<AttemptPlace> find_attempt(const Json& job, const std::vector<Json>& pods,
                                  const AttemptChoice& choice);

// The lines that this attempt wrote, from the log of its worker, without their prefix.
std::string lines_of_attempt(const std::string& log, const std::string& job, std::int64_t attempt);

}  // namespace holdfast::plugin
