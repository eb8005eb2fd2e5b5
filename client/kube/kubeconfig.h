// The kubeconfig format: parses one file into a checked tree, and selects one context from several
// files. Pure: no file, no environment. Any thread.
#pragma once

#include <string>
#include <vector>

#include "client/kube/config.h"
#include "core/json.h"
#include "core/result.h"

namespace holdfast::kube {

// Kubeconfigs of hundreds of clusters, with all certificates inline, are smaller.
inline constexpr std::size_t kMaxKubeconfigBytes = 4u << 20;

struct Kubeconfig {
  std::string path;  // relative paths inside are relative to its folder
  Json root;
};

Result<Kubeconfig> parse_kubeconfig(const std::string& path, const std::string& text);

// The context (empty: the first current-context), assembled from all files. For each name, the
// first file's whole entry counts. `files` is not empty.
Result<ClusterConfig> select_context(const std::vector<Kubeconfig>& files,
                                     const std::string& context);

}  // namespace holdfast::kube
