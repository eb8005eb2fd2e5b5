// The agent's settings. They come from the environment that the operator and the kubelet give to
// its container.
#pragma once

#include <string>

#include "agent/base/environment_reader.h"
#include "agent/run/guard.h"
#include "core/result.h"

namespace holdfast::agent {

struct Settings {
  std::string lease_namespace;
  std::string lease_name;
  GuardSettings guard;
  std::string host;  // of the API server, an address
  int port = 443;
  std::string credentials;      // the folder with `token` and `ca.crt`
  std::string progress_file;    // only the agent uses its folder
  std::string termination_log;  // the file that becomes the pod's termination message
};

// An error names the variable and says what to do.
Result<Settings> read_settings(const Environment& environment);

// The file for the message that the settings are wrong. Empty: its own setting is not a path.
std::string termination_log_of(const Environment& environment);

// The one setting that `progress` and `check` need.
Result<std::string> read_progress_file(const Environment& environment);

}  // namespace holdfast::agent
