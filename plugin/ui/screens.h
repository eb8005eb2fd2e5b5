// What the page's screens show, as JSON. The browser draws it and adds no rule of its own. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/json.h"
#include "core/time.h"
#include "plugin/explain/model.h"
#include "plugin/ui/job_table.h"

namespace holdfast::plugin {

Json row_json(const JobRow& row, Time now);

// {"matching", "total", "phases": {"Running": 3}, "rows": [...]}.
Json jobs_screen(const JobTable& table, const JobQuery& query, Time now);

// What is not a job's and holds jobs up, as far as the person may read it.
struct Surroundings {
  std::optional<std::vector<Json>> leases;  // of the operator; none: nobody knows
  std::vector<Json> pools;
  Time read_at{};  // the leases: whether a replica was alive then
};
// {"causes": [{"reason", "kind", "what", "act", "link", "count", "since", "by", "jobs": [...]}],
// "places": [{"screen", "what", "act"}]}.
Json needs_screen(const JobTable& table, const Surroundings& around, Time now);

// The model, the row's actions with the commands that do the same, and Events.
Json job_screen(const Model& model, const ExplainFacts& facts, Time now);

// One queue, from its object, and its jobs: {"name", "hold", "concurrency", "running", "waiting",
// "head": [...], "holders": [...]}.
// where: in_cluster().
Json queues_screen(const std::vector<Json>& queues, const JobTable& table, Time now,
                   const std::string& where = {});
Json pools_screen(const std::vector<Json>& pools, const JobTable& table, Time now);
// {"replicas": [...], "shards", "lamps": [...]} from the operator's Leases.
Json operator_screen(const std::vector<Json>& leases, const JobTable& table, Time now);

}  // namespace holdfast::plugin
