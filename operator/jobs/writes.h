// What the controllers' writes have in common: references, Events, options and paths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/controller/own_writes.h"
#include "client/controller/writer.h"
#include "operator/events/events.h"
#include "reconciler/job/decide.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

events::ObjectReference reference(const reconciler::Job& job);

// An Event about the job; none: nothing to record.
void record(events::EventSink& events, const reconciler::Job& job,
            const std::optional<reconciler::Event>& event);

// The watch shows the written object. Only the version in the answer counts.
kube::CallOptions for_its_version(std::string content_type = "application/json");

std::string pod_path(const std::string& namespace_, const std::string& name);

}  // namespace holdfast::jobs
