// How this version reads a newer version's word in a status. The operator writes the word back as
// it was, unless it decides on another one (operator/codecs/known_fields.h). Pure.
#pragma once

#include "api/phase.h"
#include "core/json_view.h"

namespace holdfast::api {

// A job with an unknown phase has ended if it has a completionTime; then its conditions say how.
Phase known_phase(const JsonView& status);
// A stage without a message has not failed.
StagePhase known_stage_phase(const JsonView& stage);

}  // namespace holdfast::api
