// RFC 4648 base64 with the standard alphabet, as it stands in kubeconfigs and Secrets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::kube {

// White space is passed over; no value: it is not base64.
std::optional<std::string> base64_decode(std::string_view text);

std::string base64_encode(std::string_view bytes);

}  // namespace holdfast::kube
