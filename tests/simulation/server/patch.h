// The three kinds of patch.
#pragma once

#include <string>

#include "core/json.h"
#include "tests/simulation/server/status.h"

namespace holdfast::simulation {

// Applies the patch to `object`. The answer's status is 0, or the answer says why it failed.
ApiAnswer apply_patch(const Resource& resource, const std::string& content_type,
                      const std::string& body, Json& object);

}  // namespace holdfast::simulation
