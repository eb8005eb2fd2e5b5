// The kinds of object that the simulated API server keeps, and how they differ from one another.
#pragma once

#include <string>
#include <string_view>

namespace holdfast::simulation {

struct Resource {
  const char* plural;
  const char* group;  // "" for the core group
  const char* version;
  const char* kind;
  bool namespaced = true;
  bool status = false;                // has /status
  bool create_on_update = false;      // a PUT creates a missing object
  bool unconditional_update = false;  // a PUT may leave resourceVersion out
  bool returns_deleted = false;       // DELETE answers with the object, not with a Status
  bool counts_generation = false;     // has metadata.generation
  bool custom = false;                // has a CustomResourceDefinition

  std::string api_version() const {
    return *group == 0 ? version : std::string(group) + "/" + version;
  }
};

inline bool is(const Resource& resource, std::string_view plural) {
  return plural == resource.plural;
}

inline constexpr Resource kResources[] = {
    {.plural = "durablejobs",
     .group = "holdfast.dev",
     .version = "v1alpha1",
     .kind = "DurableJob",
     .status = true,
     .counts_generation = true,
     .custom = true},
    {.plural = "events",
     .group = "events.k8s.io",
     .version = "v1",
     .kind = "Event",
     .create_on_update = true,
     .unconditional_update = true},
    {.plural = "jobqueues",
     .group = "holdfast.dev",
     .version = "v1alpha1",
     .kind = "JobQueue",
     .status = true,
     .counts_generation = true,
     .custom = true},
    {.plural = "jobs",
     .group = "batch",
     .version = "v1",
     .kind = "Job",
     .status = true,
     .unconditional_update = true,
     .counts_generation = true},
    {.plural = "leases",
     .group = "coordination.k8s.io",
     .version = "v1",
     .kind = "Lease",
     .create_on_update = true},
    {.plural = "namespaces",
     .group = "",
     .version = "v1",
     .kind = "Namespace",
     .namespaced = false,
     .status = true,
     .unconditional_update = true,
     .returns_deleted = true},
    {.plural = "nodes",
     .group = "",
     .version = "v1",
     .kind = "Node",
     .namespaced = false,
     .status = true,
     .unconditional_update = true},
    {.plural = "pods",
     .group = "",
     .version = "v1",
     .kind = "Pod",
     .status = true,
     .unconditional_update = true,
     .returns_deleted = true,
     .counts_generation = true},
    {.plural = "workerpools",
     .group = "holdfast.dev",
     .version = "v1alpha1",
     .kind = "WorkerPool",
     .status = true,
     .counts_generation = true,
     .custom = true},
};

// Null: not served.
const Resource* find_resource(std::string_view group, std::string_view version,
                              std::string_view plural);
const Resource* find_kind(std::string_view api_version, std::string_view kind);

}  // namespace holdfast::simulation
