// What the executor's writes are made of: versions learnt from answers, references, preconditions,
// paths and pauses. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "core/json_view.h"
#include "core/pause.h"
#include "core/result.h"
#include "core/time.h"
#include "operator/jobs/events.h"
#include "reconciler/types.h"

namespace holdfast::controller {

// The version of the object in an answer; `mark` never falls.
void raise(std::uint64_t& mark, const JsonView& object);

ObjectReference reference(const reconciler::Job& job);

// The body of a DELETE that means this object at this version.
std::string preconditions(const std::string& uid, std::uint64_t version);

std::string pod_path(const std::string& namespace_, const std::string& name);

// How long a refused write waits, after so many refusals before this one.
Duration retry_delay(int refusals);

}  // namespace holdfast::controller
