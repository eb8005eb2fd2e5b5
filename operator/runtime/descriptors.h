// How many file descriptors the operator needs, and its process's limit of them.
//
// Each watch and each request under way has a connection. A process that is out of descriptors can
// open neither: namespaces are not watched, and this replica's renewals fail with the rest.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/log.h"

namespace holdfast::runtime {

struct DescriptorUse {
  std::size_t namespaces = 0;  // that are watched one by one; 0: all of the cluster together
  std::size_t requests = 0;    // most under way at a time
};

// At the worst moment: each watch is being replaced, and the old connections are not closed yet.
std::uint64_t descriptors_needed(const DescriptorUse& use);

// How many namespaces can be watched one by one within this limit.
std::uint64_t namespaces_within(std::uint64_t limit, std::size_t requests);

// The soft limit to set. It is never lowered, and never above `hard`.
std::uint64_t soft_limit(std::uint64_t needed, std::uint64_t soft, std::uint64_t hard);

// Raises the soft limit of this process to what is needed, or to the hard limit. Warns when that
// is too low, and says what to do: the operator works with what it has.
void raise_descriptor_limit(const DescriptorUse& use, const Log& log);

}  // namespace holdfast::runtime
