// What of a template stands in the way of a heartbeat's agent: its names, its volumes, its folders.
// Pure.
//
// It keeps templates from breaking the agent by accident. An image's own symbolic links, and what a
// webhook adds, are not seen here.
#pragma once

#include "core/json.h"
#include "core/result.h"

namespace holdfast::controller {

// The init container, and the volume that it fills.
inline constexpr const char* kAgentName = "holdfast-agent";
inline constexpr const char* kAgentCredentials = "holdfast-credentials";
// In the first container: where these two volumes are.
inline constexpr const char* kAgentFolder = "/holdfast";
inline constexpr const char* kAgentCredentialsFolder = "/var/run/secrets/holdfast.dev";

// Of a pod's spec before the agent is added to it. An error says what to change.
Status check_agent_conflicts(const Json& spec);

}  // namespace holdfast::controller
