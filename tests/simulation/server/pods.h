// The API server's defaults and checks of pods, without the kubelet's.
#pragma once

#include "core/json.h"
#include "tests/simulation/server/status.h"

namespace holdfast::simulation {

void prepare_pod(Json& pod);
void prepare_pod_update(const Json& old, Json& pod);
Causes validate_pod(const Json& pod);
Causes validate_pod_update(const Json& pod, const Json& old, const std::string& subresource);

}  // namespace holdfast::simulation
