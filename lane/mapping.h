// What a batch/v1 Job says, in the words of a DurableJob. Pure. Each part changes the object in
// place, and adds what differs. `kubectl holdfast convert` shows that to people. The lane
// (docs/lane.md) obeys it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace holdfast::lane {

struct Differences {
  // What differs and why, one line each.
  std::vector<std::string> notes;
  // What no DurableJob can say, and what to do instead, one line each.
  std::vector<std::string> errors;
  // Those of the errors that the value of one field of the spec causes.
  std::map<std::string, std::string> by_field;

  void refuse(const std::string& field, const std::string& error) {
    errors.push_back(error);
    by_field[field] = error;
  }
};

// Of a Job's spec: a DurableJob has this field, too. ttlSecondsAfterFinished is not among them:
// Kubernetes deletes a Job of the lane, and with it the DurableJob.
bool is_shared_field(std::string_view name);

// On a Job: its LocalQueue of Kueue.
inline constexpr const char* kKueueLabel = "kueue.x-k8s.io/queue-name";

// Labels that the API server puts on Jobs and their pods.
bool is_controller_label(std::string_view key);

// A Job of the lane keeps these labels on its pods, so that what selects by them finds the pods. In
// a converted Job their values are the old Job's: they are dropped, and selectors by them renamed.
enum class ControllerLabels { kKept, kDropped };

// The pod template of a Job with this completionMode.
void convert_template(bool indexed, ControllerLabels labels, Json& pod_template,
                      Differences& differences);
// podFailurePolicy and podReplacementPolicy.
void convert_policies(Json& spec, Differences& differences);
// activeDeadlineSeconds.
void convert_deadline(Json& spec, Differences& differences);
// completions, parallelism and the name's length.
void convert_runs(const Json& metadata, Json& spec, Differences& differences);

}  // namespace holdfast::lane
