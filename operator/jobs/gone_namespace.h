// Whether a namespace is gone, for processes with a list of them: their Role goes with it, so what
// they ask there is forbidden and not missing.
#pragma once

#include <string>

#include "client/kube/client.h"
#include "core/result.h"
#include "core/task.h"

namespace holdfast::jobs {

// True: `error`, of a request in this namespace (empty: in all), came because it is gone. The
// client must outlive the task.
Task<bool> is_of_gone_namespace(kube::Client& client, Error error, std::string namespace_);

}  // namespace holdfast::jobs
