#include "agent/serve/serve_settings.h"

#include <string_view>

namespace holdfast::agent {
namespace {

constexpr std::int64_t kMostSlots = 16;
constexpr std::int64_t kUsualStop = 30;
constexpr std::int64_t kMostStop = 3600;
constexpr std::string_view kOurs = "HOLDFAST_";

}  // namespace

Result<ServeSettings> read_serve_settings(const Environment& environment) {
  EnvironmentReader reader(environment);
  ServeSettings settings;
  settings.pool = reader.object_name("HOLDFAST_WORKER_POOL");
  settings.lease_namespace = reader.object_name("HOLDFAST_LEASE_NAMESPACE");
  const std::string pod = reader.object_name("HOLDFAST_POD_NAME");
  const std::string uid = reader.object_name("HOLDFAST_POD_UID");
  settings.holder = pod + "/" + uid;
  settings.work_lease = "holdfast-work-" + uid;
  settings.worker_lease = "holdfast-worker-" + uid;
  settings.duration = std::chrono::seconds(
      reader.number("HOLDFAST_LEASE_DURATION_SECONDS", 1, kLongestLeaseSeconds));
  settings.slots = static_cast<int>(reader.number("HOLDFAST_SLOTS", 1, kMostSlots));
  const std::int64_t stop_grace = reader.is_set("HOLDFAST_STOP_GRACE_SECONDS")
                                      ? reader.number("HOLDFAST_STOP_GRACE_SECONDS", 1, kMostStop)
                                      : kUsualStop;
  settings.stop_grace = std::chrono::seconds(stop_grace);
  settings.pod_grace =
      std::chrono::seconds(reader.number("HOLDFAST_POD_GRACE_SECONDS", 0, kLongestSeconds));
  settings.slots_folder = reader.path("HOLDFAST_SLOTS_FOLDER", "/holdfast.dev/slots");
  settings.host = reader.address("KUBERNETES_SERVICE_HOST");
  settings.port = static_cast<int>(reader.number("KUBERNETES_SERVICE_PORT", 1, 65535));
  settings.credentials = reader.path("HOLDFAST_CREDENTIALS", "/var/run/secrets/holdfast.dev");
  settings.termination_log = reader.path("HOLDFAST_TERMINATION_LOG", "/dev/termination-log");
  if (!reader.error().empty()) {
    return make_error(
        ErrorCode::kInvalid,
        reader.error() + "; the Holdfast operator sets it in the pods of a WorkerPool");
  }
  return settings;
}

std::vector<std::string> without_settings(const char* const* environment) {
  std::vector<std::string> kept;
  for (; *environment != nullptr; ++environment) {
    if (!std::string_view(*environment).starts_with(kOurs)) kept.emplace_back(*environment);
  }
  return kept;
}

}  // namespace holdfast::agent
