// The caches that several controllers of a replica share. Loop only.
#pragma once

#include <string>
#include <vector>

#include "client/cache/informer.h"

namespace holdfast::runtime {

struct Caches {
  // `namespaces`: those that are watched; empty: all.
  Caches(const cache::Informer::Dependencies& shared, const std::vector<std::string>& namespaces);

  void start();

  cache::Informer jobs;
  cache::Informer pods;
  cache::Informer queues;
  cache::Informer worker_pools;
  cache::Informer worker_pods;
  cache::Informer worker_leases;
};

}  // namespace holdfast::runtime
