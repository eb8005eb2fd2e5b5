#include "operator/jobs/writes.h"

#include <utility>

#include "client/kube/object.h"

namespace holdfast::jobs {

events::ObjectReference reference(const reconciler::Job& job) {
  events::ObjectReference reference;
  reference.namespace_ = job.namespace_;
  reference.name = job.name;
  reference.uid = job.uid;
  return reference;
}

void record(events::EventSink& events, const reconciler::Job& job,
            const std::optional<reconciler::Event>& event) {
  if (!event) return;
  events.record(reference(job), event->warning, event->reason, event->action, event->note);
}

kube::CallOptions for_its_version(std::string content_type) {
  kube::CallOptions options;
  options.content_type = std::move(content_type);
  options.answer_with_metadata = true;
  return options;
}

std::string pod_path(const std::string& namespace_, const std::string& name) {
  return kube::object_path("/api/v1", "pods", namespace_, name);
}

}  // namespace holdfast::jobs
