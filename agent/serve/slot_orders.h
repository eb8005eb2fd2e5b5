// What Slots (agent/serve/slots.h) orders.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "core/worker_protocol.h"

namespace holdfast::agent {

// To be obeyed in the order of the members.
struct SlotOrders {
  // Give up the request about a Lease that is in progress, and the looks of these attempts.
  bool abort_request = false;
  std::vector<AttemptId> abort_looks;
  // SIGTERM to the command's process group in these slots.
  std::vector<int> terminate;
  // SIGKILL to all processes of these slots; to all descendants of the agent.
  std::vector<int> kill;
  bool kill_everything = false;
  // Start the attempt whose job was looked at, but not after this time.
  struct Start {
    int slot = 0;
    AttemptId id;
    SteadyTime before{};
  };
  std::vector<Start> starts;
  // One of these at most: read a Lease, or write this report into the worker Lease as it was read
  // last. One such request is in progress at most.
  bool get_work = false;
  bool get_worker = false;
  std::optional<WorkerReport> put;
  // Read the job live. One look for each slot may be in progress.
  struct Look {
    int slot = 0;
    AttemptId id;
    std::string job_name;
  };
  std::vector<Look> looks;
  // Read the job of an attempt that runs, and give the command the job's message.
  std::vector<Look> messages;
  // The API server has the checkpoint with this number.
  struct Kept {
    int slot = 0;
    std::int64_t number = 0;
  };
  std::vector<Kept> kept;
  std::vector<std::string> say;  // lines for humans
  std::optional<int> exit_code;
  std::string fenced;     // why; with exit code kFencedExitCode
  Duration last_words{};  // how long leave_last_words() may take then
  SteadyTime wake_at{};
};

}  // namespace holdfast::agent
