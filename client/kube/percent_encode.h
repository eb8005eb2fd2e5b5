// Encodes everything except the unreserved characters of RFC 3986. So no value can leave its path
// segment or query parameter of a URL. Pure.
#pragma once

#include <string>

namespace holdfast::kube {

std::string percent_encode(const std::string& text);
// Of a query parameter's value: "," "!" and "=" stay. A selector may be some KB long, and most of it
// are these.
std::string encode_selector(const std::string& text);

}  // namespace holdfast::kube
