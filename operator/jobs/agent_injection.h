// What a job with `heartbeat` has in its pods beside its template, and nothing else
// (docs/fencing.md lists it): an init container that puts the agent into an emptyDir, the agent in
// front of the first container's command, its settings, and a token of its own. Pure.
#pragma once

#include <string>

#include "core/json.h"
#include "core/result.h"
#include "reconciler/types.h"

namespace holdfast::controller {

// What the worker's command begins with, before "run".
inline constexpr const char* kAgentProgram = "/holdfast/agent";

// Adds it to a pod's spec. An error: the template uses names that the agent needs, or has no
// command to run.
Status inject_agent(const reconciler::Job& job, const std::string& pod_name,
                    const std::string& image, Json& spec);

}  // namespace holdfast::controller
