// Reads untrusted YAML, with limits. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "core/json.h"
#include "core/result.h"

namespace holdfast::kube {

// Kubeconfigs of hundreds of clusters are far smaller. The limit stops aliases that unfold without
// end.
inline constexpr int kMaxYamlNodes = 100'000;
inline constexpr int kMaxYamlDepth = 50;
inline constexpr int kMaxManifestDocuments = 1'000;

// Returns JSON in which each scalar is a string. kInvalid names line and column, never the text.
Result<Json> parse_yaml(const std::string& text);

// The documents of a manifest, each with the types that kubectl reads: YAML 1.1, so that yes and on
// are true, and quoted scalars are strings. Empty documents are left out.
Result<std::vector<Json>> parse_manifest(const std::string& text);

}  // namespace holdfast::kube
