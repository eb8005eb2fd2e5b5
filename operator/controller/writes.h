// What the executor's writes are made of: versions learnt from answers, references, preconditions,
// paths and pauses. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "operator/controller/events.h"
#include "operator/core/json_view.h"
#include "operator/core/result.h"
#include "operator/core/time.h"
#include "reconciler/types.h"

namespace holdfast::controller {

// The version of the object in an answer; `mark` never falls.
void raise(std::uint64_t& mark, const JsonView& object);

ObjectReference reference(const reconciler::Job& job);

// The body of a DELETE that means this object at this version.
std::string preconditions(const std::string& uid, std::uint64_t version);

std::string pod_path(const std::string& namespace_, const std::string& name);

// The API server's `Retry-After`: until when it is heeded, and the error of what is not sent
// before.
void heed(const Error& error, SteadyTime now, SteadyTime& not_before);
std::optional<Error> asked_to_wait(SteadyTime not_before, SteadyTime now);

// How long a refused write waits, after so many refusals before this one.
Duration retry_delay(int refusals);

}  // namespace holdfast::controller
