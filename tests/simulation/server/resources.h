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

enum Traits : unsigned {
  kClusterScoped = 1,
  kHasStatus = 2,
  kCreateOnUpdate = 4,
  kUnconditionalUpdate = 8,
  kReturnsDeleted = 16,
  kCountsGeneration = 32,
  kCustom = 64,
};
constexpr Resource resource(const char* plural, const char* group, const char* version,
                            const char* kind, unsigned traits) {
  const auto has = [traits](Traits trait) { return (traits & trait) != 0; };
  return {plural,
          group,
          version,
          kind,
          !has(kClusterScoped),
          has(kHasStatus),
          has(kCreateOnUpdate),
          has(kUnconditionalUpdate),
          has(kReturnsDeleted),
          has(kCountsGeneration),
          has(kCustom)};
}

inline constexpr Resource kResources[] = {
    resource("durablejobs", "holdfast.dev", "v1alpha1", "DurableJob",
             kHasStatus | kCountsGeneration | kCustom),
    resource("events", "events.k8s.io", "v1", "Event", kCreateOnUpdate | kUnconditionalUpdate),
    resource("jobqueues", "holdfast.dev", "v1alpha1", "JobQueue",
             kHasStatus | kCountsGeneration | kCustom),
    resource("jobs", "batch", "v1", "Job", kHasStatus | kUnconditionalUpdate | kCountsGeneration),
    resource("leases", "coordination.k8s.io", "v1", "Lease", kCreateOnUpdate),
    resource("namespaces", "", "v1", "Namespace",
             kClusterScoped | kHasStatus | kUnconditionalUpdate | kReturnsDeleted),
    resource("nodes", "", "v1", "Node", kClusterScoped | kHasStatus | kUnconditionalUpdate),
    resource("pods", "", "v1", "Pod",
             kHasStatus | kUnconditionalUpdate | kReturnsDeleted | kCountsGeneration),
    resource("validatingadmissionpolicies", "admissionregistration.k8s.io", "v1",
             "ValidatingAdmissionPolicy", kClusterScoped),
    resource("validatingadmissionpolicybindings", "admissionregistration.k8s.io", "v1",
             "ValidatingAdmissionPolicyBinding", kClusterScoped),
    resource("workerpools", "holdfast.dev", "v1alpha1", "WorkerPool",
             kHasStatus | kCountsGeneration | kCustom)};

// Null: not served.
const Resource* find_resource(std::string_view group, std::string_view version,
                              std::string_view plural);
const Resource* find_kind(std::string_view api_version, std::string_view kind);

}  // namespace holdfast::simulation
