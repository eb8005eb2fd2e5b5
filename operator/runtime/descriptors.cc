#include "operator/runtime/descriptors.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "client/http/tunnel.h"
#include "operator/notify/notifier.h"
#include "operator/runtime/manager.h"
#include "operator/runtime/probe_server.h"

namespace holdfast::runtime {
namespace {

// The old connection of a watch and the new one.
constexpr std::uint64_t kPerWatch = 2;
// About 20: standard streams, events and timers of the loop and the libraries, the listener, an
// exec plugin's pipe, open files, a tunnel's listener and events.
constexpr std::uint64_t kOwn = 64;

// Of a target's thread: its events, and the file of its authorities.
constexpr std::uint64_t kPerTarget = 4;

std::uint64_t for_namespace(const DescriptorUse& use) {
  return use.per_connection * kPerWatch *
         (Manager::kWatchesPerNamespace + (use.batch_jobs ? Manager::kLaneWatchesPerNamespace : 0));
}

// Each try through a proxy has a tunnel of its own.
std::uint64_t for_notifications(const DescriptorUse& use) {
  const std::uint64_t per_try =
      use.targets_through_proxy ? http::Tunnel::kDescriptors + http::Tunnel::kPerConnection : 1;
  return use.targets * (kPerTarget + per_try * std::uint64_t{notify::kTriesAtOnce});
}

std::uint64_t beside_namespaces(const DescriptorUse& use) {
  const std::uint64_t watches = Manager::kOtherWatches +
                                (use.batch_jobs ? Manager::kLaneOtherWatches : 0) +
                                use.rescue_watches;
  return kOwn + ProbeServer::Limits().connections + for_notifications(use) +
         use.per_connection * (use.requests + kPerWatch * watches);
}

}  // namespace

std::uint64_t descriptors_needed(const DescriptorUse& use) {
  return beside_namespaces(use) + for_namespace(use) * std::max<std::size_t>(use.namespaces, 1);
}

std::uint64_t namespaces_within(std::uint64_t limit, const DescriptorUse& use) {
  const std::uint64_t beside = beside_namespaces(use);
  return limit < beside ? 0 : (limit - beside) / for_namespace(use);
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
       {"namespaces_within_the_limit", std::to_string(namespaces_within(limit.rlim_cur, use))},
       {"what_to_do",
        "raise the hard limit of open files (RLIMIT_NOFILE) of the container runtime to what is "
        "needed, lower --workers, watch fewer namespaces, or watch all without "
        "--watch-namespace"}});
}

}  // namespace holdfast::runtime
