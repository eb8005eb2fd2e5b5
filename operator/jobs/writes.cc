#include "operator/jobs/writes.h"

#include "client/kube/object.h"
#include "core/json.h"

namespace holdfast::controller {

ObjectReference reference(const reconciler::Job& job) {
  ObjectReference reference;
  reference.namespace_ = job.namespace_;
  reference.name = job.name;
  reference.uid = job.uid;
  return reference;
}

std::string preconditions(const std::string& uid, std::uint64_t version) {
  const Json body = {
      {"apiVersion", "v1"},
      {"kind", "DeleteOptions"},
      {"propagationPolicy", "Background"},
      {"preconditions", {{"uid", uid}, {"resourceVersion", std::to_string(version)}}}};
  return body.dump();
}

std::string pod_path(const std::string& namespace_, const std::string& name) {
  return kube::object_path("/api/v1", "pods", namespace_, name);
}

}  // namespace holdfast::controller
