// Whether a namespace is gone, for processes with a list of namespaces. Their Role goes with the
// namespace, so the API server then answers 403, not 404.
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
