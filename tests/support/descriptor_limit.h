// A process without file descriptors, for tests.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

namespace holdfast::test {

// Allows this process `more` descriptors than it has, until the end of the scope.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t more) {
    const int lowest = ::dup(STDERR_FILENO);
    ::close(lowest);
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit limit{static_cast<rlim_t>(lowest) + more, before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace holdfast::test
