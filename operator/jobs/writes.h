// The parts of the executor's writes: references, preconditions and paths. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "client/controller/own_writes.h"
#include "core/pause.h"
#include "core/result.h"
#include "core/time.h"
#include "operator/events/events.h"
#include "reconciler/types.h"

namespace holdfast::controller {

ObjectReference reference(const reconciler::Job& job);

// The body of a DELETE of exactly this object at this version.
std::string preconditions(const std::string& uid, std::uint64_t version);

std::string pod_path(const std::string& namespace_, const std::string& name);

}  // namespace holdfast::controller
