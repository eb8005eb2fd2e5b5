// Checks DurableJobs as the API server does. Schema and defaults are read from the
// CustomResourceDefinition in crds/. Its CEL rules are written again in C++.
#pragma once

#include "core/json.h"
#include "tests/simulation/server/schema.h"
#include "tests/simulation/server/status.h"

namespace holdfast::simulation {

class JobSchema {
 public:
  explicit JobSchema(const Json& definition);
  void prune(Json& job) const;
  void fill_defaults(Json& job) const;
  void prune_status(Json& job) const;
  void fill_status_defaults(Json& job) const;  // a job without a status gets one
  const Schema& spec() const { return spec_; }
  const Schema& status() const { return status_; }

 private:
  Schema spec_;
  Schema status_;
};

// Read once, from the source tree.
const JobSchema& job_schema();

// `old` is null for a create. Unchanged fields are not checked again. `earlier`: the errors in the
// metadata.
Causes validate_job(const Json& job, const Json* old, const Causes& earlier);

// The CEL rules, of one file each.
void check_job_rules(const Json& job, const Json* old, Causes& causes);
// On jobs with many runs. `template_may_differ`: at the creation and while suspended.
void check_run_rules(const Json& job, bool is_new, bool template_may_differ, Causes& causes);
void check_run_changes(const Json& spec, const Json& old, Causes& causes);

}  // namespace holdfast::simulation
