#include "agent/run/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/agent_protocol.h"

namespace holdfast::agent {
namespace {

constexpr const char* kProgressFile = "HOLDFAST_PROGRESS_FILE";
constexpr const char* kTerminationLog = "HOLDFAST_TERMINATION_LOG";
constexpr const char* kUsualTerminationLog = "/dev/termination-log";

Error wrong(const std::string& what) {
  return make_error(ErrorCode::kInvalid,
                    what + "; the Holdfast operator sets it in the pods of jobs with a heartbeat");
}

// "75:60:1000,76:10:5"
std::vector<Deferral> read_deferrals(EnvironmentReader& reader, const char* name) {
  std::vector<Deferral> rules;
  const std::string all = reader.text_or(name, "");
  std::string_view rest = all;
  while (!rest.empty()) {
    const std::string_view rule = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), rule.size() + 1));
    std::int64_t numbers[3] = {};
    const char* here = rule.data();
    const char* const end = rule.data() + rule.size();
    for (std::int64_t& number : numbers) {
      const auto [last, error] = std::from_chars(here, end, number);
      const bool is_last = &number == &numbers[2];
      if (error != std::errc() || (is_last ? last != end : last == end || *last != ':')) {
        reader.fail(std::string(name) + " is \"" + all + "\", not a list like 75:60:1000");
        return {};
      }
      here = is_last ? last : last + 1;
    }
    rules.push_back({static_cast<int>(numbers[0]),
                     std::chrono::seconds(std::clamp<std::int64_t>(numbers[1], 1, kLongestSeconds)),
                     numbers[2]});
  }
  return rules;
}

}  // namespace

Result<Settings> read_settings(const Environment& environment) {
  EnvironmentReader reader(environment);
  Settings settings;
  settings.lease_namespace = reader.object_name("HOLDFAST_LEASE_NAMESPACE");
  settings.lease_name = reader.object_name("HOLDFAST_LEASE_NAME");
  settings.guard.duration = std::chrono::seconds(
      reader.number("HOLDFAST_LEASE_DURATION_SECONDS", 1, kLongestLeaseSeconds));
  if (reader.is_set("HOLDFAST_PROGRESS_DEADLINE_SECONDS")) {
    settings.guard.progress_deadline = std::chrono::seconds(
        reader.number("HOLDFAST_PROGRESS_DEADLINE_SECONDS", 1, kLongestSeconds));
  }
  settings.guard.attempt = reader.number("HOLDFAST_ATTEMPT", 1, kLongestSeconds);
  settings.guard.holder =
      reader.object_name("HOLDFAST_POD_NAME") + "/" + reader.object_name("HOLDFAST_POD_UID");
  settings.guard.deferrals = read_deferrals(reader, kDeferVariable);
  if (reader.is_set(kDeferralsVariable)) {
    settings.guard.deferred_before = reader.number(kDeferralsVariable, 0, kLongestSeconds);
  }
  settings.progress_file = reader.path(kProgressFile);
  settings.host = reader.address("KUBERNETES_SERVICE_HOST");
  settings.port = static_cast<int>(reader.number("KUBERNETES_SERVICE_PORT", 1, 65535));
  settings.credentials = reader.path("HOLDFAST_CREDENTIALS", "/var/run/secrets/holdfast.dev");
  settings.termination_log = reader.path(kTerminationLog, kUsualTerminationLog);
  if (!reader.error().empty()) return wrong(reader.error());
  return settings;
}

std::string termination_log_of(const Environment& environment) {
  EnvironmentReader reader(environment);
  std::string path = reader.path(kTerminationLog, kUsualTerminationLog);
  return reader.error().empty() ? path : "";
}

Result<std::string> read_progress_file(const Environment& environment) {
  EnvironmentReader reader(environment);
  std::string path = reader.path(kProgressFile);
  if (!reader.error().empty()) return wrong(reader.error());
  return path;
}

}  // namespace holdfast::agent
