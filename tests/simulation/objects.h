// What the parts of the simulated world read from an object.
#pragma once

#include <string>

#include "core/json.h"
#include "reconciler/types.h"

namespace holdfast::simulation {

inline bool is_deleting(const Json& object) {
  return at(at(object, "metadata"), "deletionTimestamp").is_string();
}

inline std::string controller_uid(const Json& object) {
  for (const Json& owner : at(at(object, "metadata"), "ownerReferences")) {
    if (bool_at(owner, "controller")) return string_at(owner, "uid");
  }
  return "";
}

inline reconciler::PodPhase pod_phase(const Json& pod) {
  const std::string phase = string_at(at(pod, "status"), "phase");
  if (phase == "Succeeded") return reconciler::PodPhase::kSucceeded;
  if (phase == "Failed") return reconciler::PodPhase::kFailed;
  return phase == "Running" ? reconciler::PodPhase::kRunning : reconciler::PodPhase::kPending;
}

inline bool is_final(reconciler::PodPhase phase) {
  return phase == reconciler::PodPhase::kSucceeded || phase == reconciler::PodPhase::kFailed;
}

}  // namespace holdfast::simulation
