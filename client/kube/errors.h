// Maps answers that are not 2xx to Errors. Pure.
#pragma once

#include "client/http/transport.h"
#include "core/result.h"

namespace holdfast::kube {

// From the answer's status code and its metav1.Status body, if it is one.
Error error_from_response(const http::Response& response);

}  // namespace holdfast::kube
