// Puts the agent into a pod's spec: the init container that copies it, its volumes, and the start
// of the first container's command. For pods of jobs with `heartbeat` and for warm workers. Pure.
#pragma once

#include <set>
#include <string>

#include "core/json.h"
#include "core/result.h"
#include "operator/injection/agent_conflicts.h"

namespace holdfast::injection {

// An environment variable, as in a container's `env`.
Json variable(const char* name, const std::string& value);
// Whether this `env` sets it.
bool sets_variable(const Json& environment, const std::string& name);
Json pod_uid_variable();

struct AgentPart {
  AgentUser user;
  const char* command;  // the agent's: "run" or "serve"
  std::string image;
  Json environment;  // its settings, a list of variables
  // Variables that the agent reads and `environment` may lack. The template must not set these.
  std::set<std::string> reads;
};

// An error: the template uses names that the agent needs, or has no command. It says what to
// change.
Result<> add_agent(const AgentPart& agent, Json& spec);

}  // namespace holdfast::injection
