// Finds names, volumes and folders of a template that conflict with the agent. Pure.
//
// Guards against accidents only: it does not see symbolic links in an image, or changes by a
// webhook.
#pragma once

#include "core/json_fwd.h"
#include "core/result.h"

namespace holdfast::injection {

// The name of the init container and of the volume that it fills.
inline constexpr const char* kAgentName = "holdfast-agent";
inline constexpr const char* kAgentCredentials = "holdfast-credentials";
// The mount paths of the two volumes in the first container.
inline constexpr const char* kAgentFolder = "/holdfast";
inline constexpr const char* kAgentCredentialsFolder = "/var/run/secrets/holdfast.dev";

// What needs the agent, in the words of an error.
struct AgentUser {
  const char* name;
  const char* otherwise;  // the way to do without
  // The pod is an attempt's own: nothing of it may run before the attempt has its Lease.
  bool is_attempt = false;
};
inline constexpr AgentUser kHeartbeatUser{"spec.heartbeat", ", or create the job without heartbeat",
                                          true};

// Checks a pod's spec before the agent is added. An error says what to change.
Result<> check_agent_conflicts(const AgentUser& user, const Json& spec);

}  // namespace holdfast::injection
