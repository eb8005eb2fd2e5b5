#include "plugin/verbs/spec_defaults.h"

#include <limits>
#include <string>

#include "reconciler/types.h"

namespace holdfast::plugin {
namespace {

constexpr const char* kBackoffField = "retryBackoff";
// "No limit" in batch/v1, and the highest number that the field takes.
constexpr std::int64_t kNoLimit = std::numeric_limits<std::int32_t>::max();

// Calls act(object, field, default) for each field of an object that is there. A default of null:
// an empty value means the same as none.
template <typename Act>
class Fields {
 public:
  explicit Fields(Act act) : act_(act) {}

  void of_spec(Json& spec) {
    of_stage(spec);
    act_(spec, "message", Json());
    act_(spec, "description", Json());
    act_(spec, "suspend", Json(false));
    act_(spec, "cancel", Json(false));
    if (Json* const queue = object(spec, "queue")) {
      act_(*queue, "priority", Json(0));
      act_(*queue, "key", Json());
    }
    each(spec, "stages", [this](Json& stage) {
      act_(stage, "onFailure", Json("Fail"));
      act_(stage, "when", Json("OnSuccess"));
      of_stage(stage);
      if (string_at(stage, "when") == "Always") {
        act_(stage, "activeDeadlineSeconds", Json(reconciler::kAlwaysDeadline.count()));
      }
    });
  }

 private:
  // The fields that a job and each of its stages have.
  void of_stage(Json& spec) {
    const reconciler::Spec ours;
    act_(spec, "completions", Json(ours.completions));
    act_(spec, "parallelism", Json(ours.parallelism));
    act_(spec, "completionMode", Json("NonIndexed"));
    const bool per_index = at(spec, "backoffLimitPerIndex").is_number();
    act_(spec, "backoffLimit", Json(per_index ? kNoLimit : ours.backoff_limit));
    act_(spec, "disruptionLimit", Json(ours.disruption_limit));
    act_(spec, "startDeadlineSeconds", Json(ours.start_deadline.count()));
    act_(spec, "lostAfterSeconds", Json(ours.lost_after.count()));
    act_(spec, "podReplacementPolicy", Json("TerminatingOrFailed"));
    act_(spec, "payload", Json());
    of_indexes(spec);
    of_policy(spec);
    if (Json* const backoff = object(spec, kBackoffField)) {
      act_(*backoff, "initialSeconds", Json(ours.retry_backoff.initial.count()));
      act_(*backoff, "factor", Json(static_cast<std::int64_t>(ours.retry_backoff.factor)));
      act_(*backoff, "maxSeconds", Json(ours.retry_backoff.max.count()));
      act_(*backoff, "jitterPercent", Json(ours.retry_backoff.jitter_percent));
    }
    if (Json* const heartbeat = object(spec, "heartbeat")) {
      act_(*heartbeat, "leaseDurationSeconds",
           Json(reconciler::Heartbeat().lease_duration.count()));
    }
    if (Json* const pool = object(spec, "workerPool")) act_(*pool, "key", Json());
  }

  // Without a list they are all from 0 to completions - 1.
  void of_indexes(Json& spec) {
    if (string_at(spec, "completionMode") != "Indexed") return;
    const std::int64_t last = int_at(spec, "completions", 1) - 1;
    const Json all = last > 0 ? "0-" + std::to_string(last) : "0";
    act_(spec, "indexes", all);
    if (Json* const policy = object(spec, "successPolicy")) {
      each(*policy, "rules", [&](Json& rule) { act_(rule, "succeededIndexes", all); });
    }
  }

  void of_policy(Json& spec) {
    Json* const policy = object(spec, "podFailurePolicy");
    if (policy == nullptr) return;
    each(*policy, "rules", [this](Json& rule) {
      const reconciler::PolicyRule ours;
      act_(rule, "deferSeconds", Json(ours.defer_for.count()));
      act_(rule, "deferLimit", Json(ours.defer_limit));
      each(rule, "onPodConditions",
           [this](Json& condition) { act_(condition, "status", Json("True")); });
      act_(rule, "onPodConditions", Json());
    });
  }

  static Json* object(Json& parent, const char* field) {
    return at(parent, field).is_object() ? &parent[field] : nullptr;
  }
  template <typename Visit>
  static void each(Json& parent, const char* field, Visit visit) {
    if (!at(parent, field).is_array()) return;
    for (Json& element : parent[field]) {
      if (element.is_object()) visit(element);
    }
  }

  Act act_;
};

// Calls act(stage) for the spec and each of its stages.
template <typename Act>
void each_stage(Json& spec, Act act) {
  act(spec);
  if (!at(spec, "stages").is_array()) return;
  for (Json& stage : spec["stages"]) {
    if (stage.is_object()) act(stage);
  }
}

// An empty text or list, where that means the same as none.
bool is_empty(const Json& value) {
  return value.is_string() ? value.get_ref<const std::string&>().empty() : value == Json::array();
}

}  // namespace

Json with_defaults(Json spec) {
  if (!spec.is_object()) return spec;
  each_stage(spec, [](Json& stage) {
    if (at(stage, kBackoffField).is_null()) stage[kBackoffField] = Json::object();
  });
  Fields([](Json& object, const char* field, const Json& value) {
    if (value.is_null() && is_empty(at(object, field))) object.erase(field);
    if (!value.is_null() && at(object, field).is_null()) object[field] = value;
  }).of_spec(spec);
  return spec;
}

Json without_defaults(Json spec) {
  if (!spec.is_object()) return spec;
  Fields([](Json& object, const char* field, const Json& value) {
    const Json& own = at(object, field);
    if (value.is_null() ? is_empty(own) : own == value) object.erase(field);
  }).of_spec(spec);
  each_stage(spec, [](Json& stage) {
    if (at(stage, kBackoffField) == Json::object()) stage.erase(kBackoffField);
  });
  return spec;
}

}  // namespace holdfast::plugin
