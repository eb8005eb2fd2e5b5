// Checks objects of Holdfast's own kinds as the API server does. Schemas and defaults are read from
// the CustomResourceDefinitions in crds/. Their CEL rules are written again in C++.
#pragma once

#include "core/json.h"
#include "tests/simulation/server/resources.h"
#include "tests/simulation/server/schema.h"
#include "tests/simulation/server/status.h"

namespace holdfast::simulation {

class CustomSchema {
 public:
  explicit CustomSchema(const Json& definition);
  void prune(Json& object) const;
  void fill_defaults(Json& object) const;
  void prune_status(Json& object) const;
  // An object without a status gets the schema's default, if there is one.
  void fill_status_defaults(Json& object) const;
  const Schema& spec() const { return spec_; }
  const Schema& status() const { return status_; }

 private:
  Schema spec_;
  Schema status_;
};

// Read once, from the source tree.
const CustomSchema& custom_schema(const Resource& resource);

// `old` is null for a create. Unchanged fields are not checked again. `earlier`: the errors in the
// metadata.
Causes validate_custom(const Resource& resource, const Json& object, const Json* old,
                       const Causes& earlier);

// The CEL rules, of one file each.
void check_queue_rules(const Json& queue, Causes& causes);
void check_job_rules(const Json& job, const Json* old, Causes& causes);
// On jobs with many runs. `template_may_differ`: at the creation and while suspended.
void check_run_rules(const Json& job, bool is_new, bool template_may_differ, Causes& causes);
void check_run_changes(const Json& spec, const Json& old, bool is_suspended, Causes& causes);

void check_pool_rules(const Json& pool, Causes& causes);
// On jobs that run in a WorkerPool, or have a stage that does.
void check_job_in_pool(const Json& job, bool is_new, bool template_may_differ, Causes& causes);
void check_pool_changes(const Json& job, const Json& old, Causes& causes);
// On the places of a job with one run: "podUID" or "workerUID".
void check_place_stays(const Json& status, const Json& old, const char* place, Causes& causes);
void check_one_place(const Json& status, Causes& causes);
// On spec.template.spec: no container restarts in place.
void check_restarts(const Json& pod, Causes& causes);

// On spec.queue of a job.
void check_place(const Json& place, Causes& causes);
void check_place_change(const Json& place, const Json& old, Causes& causes);

}  // namespace holdfast::simulation
