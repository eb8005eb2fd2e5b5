#include "agent/settings.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "client/http/endpoint.h"
#include "core/agent_protocol.h"

namespace holdfast::agent {
namespace {

// The DurableJob schema's maximum; its minimum is 10.
constexpr std::int64_t kLongestLeaseSeconds = 3600;
constexpr std::int64_t kLongestSeconds = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxNameLength = 253;
constexpr const char* kProgressFile = "HOLDFAST_PROGRESS_FILE";
constexpr const char* kTerminationLog = "HOLDFAST_TERMINATION_LOG";
constexpr const char* kUsualTerminationLog = "/dev/termination-log";

Error wrong(const std::string& what) {
  return make_error(ErrorCode::kInvalid,
                    what + "; the Holdfast operator sets it in the pods of jobs with a heartbeat");
}

// Collects values, and stops after the first error.
class Reader {
 public:
  explicit Reader(const Environment& environment) : environment_(environment) {}

  std::string text(const char* name) {
    std::string value = environment_(name).value_or("");
    if (value.empty()) fail(std::string(name) + " is not set");
    return value;
  }
  std::string text_or(const char* name, const char* fallback) {
    const std::string value = environment_(name).value_or("");
    return value.empty() ? fallback : value;
  }
  std::int64_t number(const char* name, std::int64_t least, std::int64_t most) {
    const std::string value = text(name);
    std::int64_t number = least;
    const char* const end = value.data() + value.size();
    const auto [last, error] = std::from_chars(value.data(), end, number);
    if (error != std::errc() || last != end || number < least || number > most) {
      fail(std::string(name) + " is \"" + value + "\", not a whole number from " +
           std::to_string(least) + " to " + std::to_string(most));
    }
    return number;
  }
  // One part of a path on the API server.
  std::string object_name(const char* name) {
    std::string value = text(name);
    const auto fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    };
    if (value.size() > kMaxNameLength || !std::all_of(value.begin(), value.end(), fits) ||
        value.find("..") != std::string::npos || value.starts_with('.')) {
      fail(std::string(name) + " is \"" + value + "\", not the name of an object");
    }
    return value;
  }
  std::string path(const char* name, const char* fallback = nullptr) {
    std::string value = fallback == nullptr ? text(name) : text_or(name, fallback);
    if (!value.starts_with('/') || value.ends_with('/')) {
      fail(std::string(name) + " is \"" + value + "\", not an absolute path");
    }
    return value;
  }
  std::string address(const char* name) {
    std::string value = text(name);
    if (!http::is_ip_literal(value)) {
      fail(std::string(name) + " is \"" + value +
           "\", not an IP address, and names are not resolved here: the kubelet sets it to the "
           "address of the Service \"kubernetes\"");
    }
    return value;
  }
  // "75:60:1000,76:10:5"
  std::vector<Deferral> deferrals(const char* name) {
    std::vector<Deferral> rules;
    const std::string all = text_or(name, "");
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
          fail(std::string(name) + " is \"" + all + "\", not a list like 75:60:1000");
          return {};
        }
        here = is_last ? last : last + 1;
      }
      rules.push_back(
          {static_cast<int>(numbers[0]),
           std::chrono::seconds(std::clamp<std::int64_t>(numbers[1], 1, kLongestSeconds)),
           numbers[2]});
    }
    return rules;
  }
  bool is_set(const char* name) const { return !environment_(name).value_or("").empty(); }
  void fail(const std::string& why) {
    if (error_.empty()) error_ = why;
  }
  const std::string& error() const { return error_; }

 private:
  const Environment& environment_;
  std::string error_;
};

}  // namespace

Result<Settings> read_settings(const Environment& environment) {
  Reader reader(environment);
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
  settings.guard.deferrals = reader.deferrals(kDeferVariable);
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
  Reader reader(environment);
  std::string path = reader.path(kTerminationLog, kUsualTerminationLog);
  return reader.error().empty() ? path : "";
}

Result<std::string> read_progress_file(const Environment& environment) {
  Reader reader(environment);
  std::string path = reader.path(kProgressFile);
  if (!reader.error().empty()) return wrong(reader.error());
  return path;
}

std::string state_file_of(const std::string& progress_file) { return progress_file + ".agent"; }

}  // namespace holdfast::agent
