// YAML that others wrote, read with limits. Pure; any thread.
#pragma once

#include <string>

#include "core/json.h"
#include "core/result.h"

namespace holdfast::kube {

// Real kubeconfigs of hundreds of clusters stay far below; aliases that unfold without end do not.
inline constexpr int kMaxYamlNodes = 100'000;
inline constexpr int kMaxYamlDepth = 50;

// As JSON in which each scalar is a string. kInvalid names line and column, never the text.
Result<Json> parse_yaml(const std::string& text);

}  // namespace holdfast::kube
