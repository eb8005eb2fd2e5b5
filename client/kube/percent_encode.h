// Text made safe for a URL: all but the unreserved characters of RFC 3986 is encoded, so that no
// value can leave its path segment or its query parameter. Pure.
#pragma once

#include <string>

namespace holdfast::kube {

std::string percent_encode(const std::string& text);

}  // namespace holdfast::kube
