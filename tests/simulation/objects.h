// What the parts of the simulated world read from an object.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "core/json.h"
#include "reconciler/types.h"

namespace holdfast::simulation {

// Of a resourceVersion; 0: none.
inline std::uint64_t version_number(const std::string& text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Of the Leases of pools: one for each slot with work, one for each worker.
inline constexpr std::string_view kWorkPrefix = "holdfast-work-";
inline constexpr std::string_view kWorkerPrefix = "holdfast-worker-";

// An attempt, in complaints.
inline std::string named(const std::string& job, std::int64_t index, std::int64_t attempt) {
  return job + ", run " + std::to_string(index) + ", attempt " + std::to_string(attempt);
}

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
