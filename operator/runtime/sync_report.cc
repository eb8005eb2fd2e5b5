#include "operator/runtime/sync_report.h"

namespace holdfast::runtime {
namespace {

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

std::string explain_unsynced(const UnsyncedCache& cache) {
  const std::string& trouble = cache.trouble;
  if (trouble.empty()) return "the API server has not answered the list yet";
  if (has(trouble, "could not find the requested resource") || has(trouble, "HTTP status 404")) {
    if (has(cache.group_path, "holdfast.dev")) {
      return "the API server does not know them; install the CRD: kubectl apply -f crds/";
    }
    return "the API server does not know " + cache.plural + " in " + cache.group_path +
           "; is it a Kubernetes API server of 1.32 or later?";
  }
  if (has(trouble, "forbidden")) {
    return trouble + "; grant the operator get, list and watch on " + cache.plural +
           " with a ClusterRole and its binding";
  }
  if (has(trouble, "nauthorized") || has(trouble, "HTTP status 401")) {
    return trouble +
           "; the API server does not accept the credentials: check the "
           "kubeconfig or the service account's token";
  }
  return trouble;
}

}  // namespace holdfast::runtime
