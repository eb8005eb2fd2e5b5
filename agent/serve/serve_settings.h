// The settings of `holdfast-agent serve` (docs/internals/workers.md). The operator and the kubelet
// put them into the environment of a warm worker's container.
#pragma once

#include <string>
#include <vector>

#include "agent/base/environment_reader.h"
#include "core/result.h"
#include "core/time.h"

namespace holdfast::agent {

struct ServeSettings {
  std::string pool;
  std::string lease_namespace;
  std::string work_lease;    // "holdfast-work-<pod UID>"
  std::string worker_lease;  // "holdfast-worker-<pod UID>"
  std::string holder;        // "<pod name>/<pod UID>"
  Duration duration{};
  int slots = 1;
  Duration stop_grace{};     // of a command, between SIGTERM and SIGKILL
  Duration pod_grace{};      // as the pod's template has it
  std::string slots_folder;  // slot N has the folder N in it
  std::string host;          // of the API server, an address
  int port = 443;
  std::string credentials;
  std::string termination_log;
};

// An error names the variable and says what to do.
Result<ServeSettings> read_serve_settings(const Environment& environment);

// The agent's own environment ("NAME=value") for a command, without Holdfast's variables.
std::vector<std::string> without_settings(const char* const* environment);

}  // namespace holdfast::agent
