// Adds the agent to the pods of a job with `heartbeat` (list: docs/heartbeat.md). An init container
// copies the agent into an emptyDir. The agent runs before the first container's command, with its
// settings and its own token. Pure.
#pragma once

#include <string>

#include "core/json_fwd.h"
#include "core/result.h"
#include "operator/injection/agent_container.h"
#include "reconciler/types.h"
#include "reconciler/write.h"

namespace holdfast::injection {

// Adds the agent to a pod's spec. An error: the template uses names that the agent needs, or has no
// command.
Result<> inject_agent(const reconciler::Job& job, const reconciler::CreatePod& pod,
                      const std::string& image, Json& spec);

}  // namespace holdfast::injection
