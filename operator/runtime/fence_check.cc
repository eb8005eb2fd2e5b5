#include "operator/runtime/fence_check.h"

#include <algorithm>

namespace holdfast::runtime {
namespace {

constexpr const char* kGroupPath = "/apis/admissionregistration.k8s.io/v1";
constexpr const char* kBinding = "holdfast-fence";
constexpr const char* kWithoutIt =
    "heartbeats work, but old workers are stopped by their own agents alone";

bool serves_policies(const JsonView& resources) {
  const JsonView list = at(resources, "resources");
  return std::any_of(list.begin(), list.end(), [](const JsonView& resource) {
    return string_at(resource, "name") == "validatingadmissionpolicies";
  });
}

}  // namespace

Task<void> report_fence(kube::Client& client, Log log) {
  auto discover = client.get(kGroupPath);
  const Result<JsonDocument> resources = co_await discover;
  const bool no_group = !resources && resources.error().code == ErrorCode::kNotFound;
  if (!resources && !no_group) {
    if (resources.error().code == ErrorCode::kCancelled) co_return;
    log.warn("cannot tell whether there is a fence in the API server",
             {{"error", resources.error().message}});
    co_return;
  }
  if (no_group || !serves_policies(*resources)) {
    log.warn(
        "there is no fence in the API server: it has no ValidatingAdmissionPolicy, which "
        "Kubernetes has from 1.30 on",
        {{"meaning", kWithoutIt}});
    co_return;
  }
  auto get =
      client.get(kube::object_path(kGroupPath, "validatingadmissionpolicybindings", "", kBinding));
  const Result<JsonDocument> binding = co_await get;
  if (binding) {
    log.info("there is a fence in the API server", {{"binding", kBinding}});
  } else if (binding.error().code == ErrorCode::kNotFound) {
    log.warn("there is no fence in the API server: its policy is not installed",
             {{"meaning", kWithoutIt}, {"see", "docs/fence-messages.md"}});
  } else if (binding.error().code != ErrorCode::kCancelled) {
    log.warn("cannot tell whether there is a fence in the API server",
             {{"error", binding.error().message}});
  }
}

}  // namespace holdfast::runtime
