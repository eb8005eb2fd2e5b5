// The CEL rules of the JobQueue's definition, and those of spec.queue of a DurableJob.
#include <regex>
#include <string>

#include "tests/simulation/server/custom_schema.h"

namespace holdfast::simulation {
namespace {

constexpr std::int64_t kMostJobs = 1'000'000;
constexpr std::int64_t kMostSeconds = 86'400;

bool is_from_one(const Json& object, const char* field, std::int64_t most) {
  if (!object.contains(field)) return true;
  const std::int64_t number = int_at(object, field);
  return number >= 1 && number <= most;
}

}  // namespace

void check_queue_rules(const Json& queue, Causes& causes) {
  const Json& spec = at(queue, "spec");
  if (!is_from_one(spec, "concurrency", kMostJobs)) {
    refuse(causes, "spec.concurrency", "concurrency is from 1 to 1000000");
  }
  if (!is_from_one(spec, "concurrencyPerKey", kMostJobs)) {
    refuse(causes, "spec.concurrencyPerKey", "concurrencyPerKey is from 1 to 1000000");
  }
  const Json& rate = at(spec, "rate");
  if (!rate.is_object()) return;
  if (!is_from_one(rate, "jobs", kMostJobs)) {
    refuse(causes, "spec.rate", "rate.jobs is from 1 to 1000000");
  }
  if (!is_from_one(rate, "periodSeconds", kMostSeconds)) {
    refuse(causes, "spec.rate", "rate.periodSeconds is from 1 to 86400");
  }
}

void check_place(const Json& place, Causes& causes) {
  static const auto* const name =
      new std::regex(R"(^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$)");
  if (!place.is_object()) return;
  if (!std::regex_search(string_at(place, "name"), *name)) {
    refuse(causes, "spec.queue.name", "this cannot be the name of a JobQueue");
  }
  if (place.contains("key") && string_at(place, "key").empty()) {
    refuse(causes, "spec.queue.key", "the key is empty");
  }
}

// The priority alone may change.
void check_place_change(const Json& place, const Json& old, Causes& causes) {
  if (place.is_object() != old.is_object()) {
    return forbid(causes, "spec.queue", "the queue can neither be added nor removed");
  }
  if (at(place, "name") != at(old, "name") || at(place, "key") != at(old, "key")) {
    forbid(causes, "spec.queue", "the queue's name and key are immutable");
  }
}

}  // namespace holdfast::simulation
