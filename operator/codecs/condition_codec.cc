#include "operator/codecs/condition_codec.h"

#include "core/json.h"
#include "core/json_time.h"

namespace holdfast::controller {

reconciler::Condition decode_condition(const JsonView& json) {
  reconciler::Condition condition;
  condition.type = string_at(json, "type");
  condition.status = string_at(json, "status") == "True";
  condition.unknown = string_at(json, "status") == "Unknown";
  if (at(json, "observedGeneration").is_number_integer()) {
    condition.observed_generation = int_at(json, "observedGeneration");
  }
  condition.reason = string_at(json, "reason");
  condition.message = string_at(json, "message");
  condition.last_transition_time = time_at(json, "lastTransitionTime").value_or(Time{});
  return condition;
}

Json encode_condition(const reconciler::Condition& condition) {
  const char* const known = condition.status ? "True" : "False";
  // The schema requires a message, and another program's may be empty.
  Json json = {{"type", condition.type},
               {"status", condition.unknown ? "Unknown" : known},
               {"reason", condition.reason},
               {"message", condition.message}};
  put_time(json, "lastTransitionTime", condition.last_transition_time);
  if (condition.observed_generation) json["observedGeneration"] = *condition.observed_generation;
  return json;
}

}  // namespace holdfast::controller
