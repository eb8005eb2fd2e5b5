// The kubeconfig format: one file is parsed into a checked tree, one context of several files is
// picked out. Pure: no file, no environment. Any thread.
#pragma once

#include <string>
#include <vector>

#include "client/kube/config.h"
#include "core/json.h"
#include "core/result.h"

namespace holdfast::kube {

// Real kubeconfigs of hundreds of clusters, with all certificates inline, stay below.
inline constexpr std::size_t kMaxKubeconfigBytes = 4u << 20;

struct Kubeconfig {
  std::string path;  // relative paths inside are relative to its folder
  Json root;
};

Result<Kubeconfig> parse_kubeconfig(const std::string& path, const std::string& text);

// The context (empty: the first current-context), put together from all files: of each name the
// first file's entry counts, whole. `files` is not empty.
Result<ClusterConfig> select_context(const std::vector<Kubeconfig>& files,
                                     const std::string& context);

}  // namespace holdfast::kube
