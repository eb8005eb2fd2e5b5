#include "operator/runtime/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "operator/runtime/manager.h"
#include "operator/runtime/probe_server.h"

namespace holdfast::runtime {
namespace {

// The old connection of a watch and the new one.
constexpr std::uint64_t kPerWatch = 2;
// About 20: standard streams, events and timers of the loop and the libraries, the listener, an
// exec plugin's pipe, open files.
constexpr std::uint64_t kOwn = 64;

std::uint64_t for_namespace(bool batch_jobs) {
  return kPerWatch *
         (Manager::kWatchesPerNamespace + (batch_jobs ? Manager::kLaneWatchesPerNamespace : 0));
}

std::uint64_t beside_namespaces(std::size_t requests, bool batch_jobs) {
  return kOwn + ProbeServer::Limits().connections + requests +
         kPerWatch * (Manager::kOtherWatches + (batch_jobs ? Manager::kLaneOtherWatches : 0));
}

}  // namespace

std::uint64_t descriptors_needed(const DescriptorUse& use) {
  const std::uint64_t parts = std::max<std::size_t>(use.namespaces, 1);
  return beside_namespaces(use.requests, use.batch_jobs) + for_namespace(use.batch_jobs) * parts;
}

std::uint64_t namespaces_within(std::uint64_t limit, std::size_t requests, bool batch_jobs) {
  const std::uint64_t beside = beside_namespaces(requests, batch_jobs);
  return limit < beside ? 0 : (limit - beside) / for_namespace(batch_jobs);
}

std::uint64_t soft_limit(std::uint64_t needed, std::uint64_t soft, std::uint64_t hard) {
  return std::max(soft, std::min(needed, hard));
}

void raise_descriptor_limit(const DescriptorUse& use, const Log& log) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  const std::uint64_t needed = descriptors_needed(use);
  const rlim_t before = limit.rlim_cur;
  limit.rlim_cur = soft_limit(needed, limit.rlim_cur, limit.rlim_max);
  if (limit.rlim_cur != before) {
    const Log::Fields fields = {{"from", std::to_string(before)},
                                {"to", std::to_string(limit.rlim_cur)}};
    if (setrlimit(RLIMIT_NOFILE, &limit) == 0) {
      log.info("raised the limit of open files", fields);
    } else {
      log.warn("cannot raise the limit of open files: " + std::generic_category().message(errno),
               fields);
      limit.rlim_cur = before;
    }
  }
  if (limit.rlim_cur >= needed) return;
  log.warn(
      "the limit of open files is too low: watches and requests may fail",
      {{"limit", std::to_string(limit.rlim_cur)},
       {"needed", std::to_string(needed)},
       {"watched_namespaces", std::to_string(use.namespaces)},
       {"namespaces_within_the_limit",
        std::to_string(namespaces_within(limit.rlim_cur, use.requests, use.batch_jobs))},
       {"what_to_do",
        "raise the hard limit of open files (RLIMIT_NOFILE) of the container runtime to what is "
        "needed, lower --workers, watch fewer namespaces, or watch all without "
        "--watch-namespace"}});
}

}  // namespace holdfast::runtime
