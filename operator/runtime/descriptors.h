// How many file descriptors the operator needs, and the process's limit.
//
// Each watch and each request in progress has a connection. Without descriptors the process can
// open neither: it misses namespaces, and even this replica's renewals fail.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/log.h"

namespace holdfast::runtime {

struct DescriptorUse {
  std::size_t namespaces = 0;        // watched one by one; 0: one watch for the whole cluster
  std::size_t requests = 0;          // at most at a time
  bool batch_jobs = false;           // Manager::Config::batch_jobs
  std::uint64_t per_connection = 1;  // http::CpprestTransport::descriptors_per_connection()
  std::size_t targets = 0;           // of notifications
  bool targets_through_proxy = false;
  std::size_t rescue_watches = 0;  // of other controllers' pods
};

// In the worst case: each watch is being replaced while its old connection is still open.
std::uint64_t descriptors_needed(const DescriptorUse& use);

// How many namespaces this limit allows to watch one by one, whatever `use.namespaces` is.
std::uint64_t namespaces_within(std::uint64_t limit, const DescriptorUse& use);

// The soft limit to set: never below `soft`, never above `hard`.
std::uint64_t soft_limit(std::uint64_t needed, std::uint64_t soft, std::uint64_t hard);

// Raises the soft limit of this process as far as needed, at most to the hard limit. If that is too
// low, it logs a warning that says what to do, and the operator goes on.
void raise_descriptor_limit(const DescriptorUse& use, const Log& log);

}  // namespace holdfast::runtime
