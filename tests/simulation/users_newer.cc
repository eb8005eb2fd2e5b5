// What a newer version of the operator writes into statuses: a field that this one does not know,
// in any of their objects.
#include "tests/simulation/draw.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/server/schema.h"
#include "tests/simulation/users.h"

namespace holdfast::simulation {
namespace {

bool has_ended(const Json& object) {
  const std::string phase = string_at(object, "phase");
  return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled" || phase == "Skipped";
}

// Entries of history, stages that have ended and the outcome never change, not by a newer version
// either.
void mark(Json& value, bool is_over, Draw& draw) {
  if (value.is_array()) {
    for (Json& item : value) mark(item, is_over, draw);
  }
  if (!value.is_object()) return;
  const std::string type = string_at(value, "type");
  const bool is_outcome = type == "Complete" || type == "Failed" || type == "Cancelled";
  const bool is_stage = value.contains("name");
  if ((is_over && is_outcome) || (is_stage && has_ended(value))) return;
  if (draw.percent(60)) value[kNewerField] = draw.between(1, 1'000'000);
  for (auto& [name, inner] : value.items()) {
    if (name != "history") mark(inner, is_over, draw);
  }
}

}  // namespace

bool Users::write_as_newer(std::uint64_t seed) {
  std::vector<std::pair<std::string, Json>> objects;  // with their targets
  const auto collect = [&](const char* resource, auto target_of) {
    gateway_.server().for_each(resource, [&](const Json& object) {
      if (at(object, "status").empty() || is_deleting(object)) return;
      const Json& meta = at(object, "metadata");
      objects.emplace_back(target_of(string_at(meta, "namespace"), string_at(meta, "name")),
                           object);
    });
  };
  collect("durablejobs", job_target);
  collect("jobqueues", queue_target);
  collect("workerpools", pool_target);
  if (objects.empty()) return false;
  auto& [target, object] = objects[mix(seed, 31) % objects.size()];
  Draw draw(mix(seed, 32));
  mark(object["status"], has_ended(object["status"]), draw);
  const auto answer = gateway_.ask(kNewerUser, "PUT", target + "/status", object);
  return answer && answer->status == 200;
}

void Users::make_known() {
  for (const std::string& key : jobs(false)) {
    const std::size_t slash = key.find('/');
    const std::string ns = key.substr(0, slash);
    const std::string name = key.substr(slash + 1);
    const Json* const job = gateway_.server().find("durablejobs", ns, name);
    if (job && at(*job, "spec").contains(kNewerField)) patch(ns, name, {{kNewerField, nullptr}});
  }
}

}  // namespace holdfast::simulation
