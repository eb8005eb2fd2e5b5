#include "agent/wire/lease.h"

#include "agent/base/progress.h"
#include "core/agent_protocol.h"
#include "core/utf8.h"

namespace holdfast::agent {

void read_view(const Json& lease, LeaseView& view) {
  view.uid = string_at(at(lease, "metadata"), "uid");
  view.holder = string_at(at(lease, "spec"), "holderIdentity");
  view.attempt = int_at(at(lease, "spec"), "leaseTransitions");
}

std::string LeaseRecord::checkpoint() const { return annotation(lease(), kCheckpointAnnotation); }

std::string LeaseRecord::renewed(const Renewal& renewal, Time now) {
  return renewed_with(now, [&](Json& annotations) {
    annotations[kProgressAnnotation] = std::to_string(renewal.mark);
    annotations[kProgressAgeAnnotation] = std::to_string(renewal.age_seconds);
    // An empty message removes an old one, but creates no annotation.
    if (!renewal.message.empty() || annotations.contains(kProgressMessageAnnotation)) {
      annotations[kProgressMessageAnnotation] = clean_text(renewal.message, kMaxMessageBytes);
    }
    if (renewal.deferrals > 0) {
      annotations[kDeferralsAnnotation] = std::to_string(renewal.deferrals);
    }
    if (renewal.checkpoint) annotations[kCheckpointAnnotation] = *renewal.checkpoint;
    if (renewal.ended) annotations[kEndedAnnotation] = std::to_string(*renewal.ended);
  });
}

}  // namespace holdfast::agent
