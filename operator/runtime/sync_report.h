// Says why a cache is not synced, and what to do. Pure.
#pragma once

#include <string>

namespace holdfast::runtime {

struct UnsyncedCache {
  std::string group_path;  // "/apis/holdfast.dev/v1alpha1"
  std::string plural;
  std::string trouble;  // the last error's message, empty: none yet
};

// E.g. "the API server does not know them; install the CRD: kubectl apply -f crds/".
std::string explain_unsynced(const UnsyncedCache& cache);

}  // namespace holdfast::runtime
