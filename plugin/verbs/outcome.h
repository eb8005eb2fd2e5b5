// The end of a job: reading it, and waiting for it.
#pragma once

#include <functional>
#include <string>

#include "core/json.h"
#include "core/steady_now.h"
#include "plugin/base/api.h"
#include "plugin/base/command.h"
#include "plugin/terminal/terminal.h"

namespace holdfast::plugin {

std::string phase_of(const Json& job);  // "Pending" for a job that no operator has read yet
// Succeeded, Failed or Cancelled.
bool has_ended(const Json& job);
bool is_being_deleted(const Json& job);

// "it is Failed: BackoffLimitExceeded: ...", "it is Running: waits for ...".
std::string state_of(const Json& job);

// Waits until the job has ended, or --timeout is over. Says on standard error each time that it
// waits for something else. Returns the exit code: 0 for the phase `wanted`, 1 for another end. It
// is 2 if the job is deleted or does not end in time, or if the API server refuses the read
// (refusals.h).
int wait_for_end(const Command& command, Api& api, Terminal& terminal, const Json& job,
                 const std::string& wanted = "Succeeded",
                 std::function<SteadyTime()> clock = steady_now);

// Prints a job that was created or found, and with --wait waits for its end. Returns the exit code.
int report_job(const Command& command, Api& api, Terminal& terminal, const Json& job,
               const std::string& what);

}  // namespace holdfast::plugin
