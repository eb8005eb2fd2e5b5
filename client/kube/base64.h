// RFC 4648 base64 with the standard alphabet, as in kubeconfigs and Secrets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace holdfast::kube {

// Ignores white space. No value: not base64.
std::optional<std::string> base64_decode(std::string_view text);

std::string base64_encode(std::string_view bytes);

}  // namespace holdfast::kube
