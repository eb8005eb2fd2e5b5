#include "operator/runtime/flags.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <vector>

#include "reconciler/rescue/rescue.h"

namespace holdfast::runtime {
namespace {

constexpr int kMaxWorkers = 1000;
constexpr double kLeastQps = 0.1;  // with less, even the caches' lists would be too late
constexpr std::size_t kMaxNamespaceLength = 63;  // an RFC 1123 label

Error wrong(const Setting& setting, const std::string& advice) {
  return make_error(ErrorCode::kInvalid, setting.source + ": \"" + setting.value + "\" " + advice);
}

bool is_dns_label(const std::string& text, std::size_t max_length) {
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= max_length && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), is_inner);
}

std::optional<Error> parse_namespace(const Setting& setting, Options& options) {
  if (!is_dns_label(setting.value, kMaxNamespaceLength)) {
    return wrong(setting,
                 "is not a namespace: use at most 63 lower case letters, digits and '-', with a "
                 "letter or digit at both ends");
  }
  options.replica.namespace_ = setting.value;
  return std::nullopt;
}

std::optional<Error> parse_whole(const Setting& setting, const char* what, int most, int& number) {
  const char* const end = setting.value.data() + setting.value.size();
  const auto [rest, error] = std::from_chars(setting.value.data(), end, number);
  if (error != std::errc() || rest != end || number < 1 || number > most) {
    return wrong(setting, std::string("is not a number of ") + what +
                              ": give a whole number from 1 to " + std::to_string(most));
  }
  return std::nullopt;
}

// The parts between commas, without the white space around them.
std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    parts.push_back(trimmed(text.substr(begin, comma - begin)));
    begin = comma + 1;
  }
  return parts;
}

std::optional<Error> parse_namespaces(const Setting& setting, std::vector<std::string>& names) {
  for (const std::string& name : parts_of(setting.value)) {
    if (!is_dns_label(name, kMaxNamespaceLength)) {
      const bool all = name == "*" || name.empty();
      return wrong({setting.source, name},
                   all ? "is not a namespace: to watch all namespaces, leave this out"
                       : "is not a namespace: give names separated by commas, each of lower case "
                         "letters, digits and '-'");
    }
    names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return std::nullopt;
}

std::optional<Error> parse_watch_namespaces(const Setting& setting, Options& options) {
  return parse_namespaces(setting, options.watch_namespaces);
}

std::optional<Error> parse_rescue(const Setting& setting, Options& options) {
  using Mode = Options::Rescue::Mode;
  if (setting.value != "off" && setting.value != "observe" && setting.value != "on") {
    return wrong(setting, "is not a mode: give off, observe or on");
  }
  options.rescue.mode = setting.value == "on"        ? Mode::kOn
                        : setting.value == "observe" ? Mode::kObserve
                                                     : Mode::kOff;
  return std::nullopt;
}

std::optional<Error> parse_rescue_namespaces(const Setting& setting, Options& options) {
  return parse_namespaces(setting, options.rescue.namespaces);
}

std::optional<Error> parse_rescue_owners(const Setting& setting, Options& options) {
  constexpr std::size_t kMostKinds = 32;
  constexpr std::size_t kLongestKind = 63;
  options.rescue.owners.clear();
  if (setting.value == "none") return std::nullopt;
  for (const std::string& kind : parts_of(setting.value)) {
    const auto is_kind_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)); };
    const bool is_kind = !kind.empty() && kind.size() <= kLongestKind &&
                         std::all_of(kind.begin(), kind.end(), is_kind_letter);
    if (!is_kind) {
      return wrong({setting.source, kind},
                   "is not a kind: give one as in ownerReferences, e.g. Workflow");
    }
    if (reconciler::is_never_freed(kind)) {
      return wrong({setting.source, kind},
                   "has pods that are never freed, because a second pod of the same name or node "
                   "would begin beside the first: leave it out");
    }
    options.rescue.owners.insert(kind);
  }
  if (options.rescue.owners.size() <= kMostKinds) return std::nullopt;
  return wrong(setting, "has too many kinds: give at most 32");
}

std::optional<Error> parse_rescue_rate(const Setting& setting, Options& options) {
  constexpr int kMostPerMinute = 10'000;
  return parse_whole(setting, "pods", kMostPerMinute, options.rescue.most_per_minute);
}

std::optional<Error> parse_workers(const Setting& setting, Options& options) {
  return parse_whole(setting, "workers", kMaxWorkers, options.workers);
}

std::optional<Error> parse_shards(const Setting& setting, Options& options) {
  return parse_whole(setting, "shards", reconciler::kMaxShards, options.replica.shards);
}

std::optional<Error> parse_qps(const Setting& setting, Options& options) {
  const char* const end = setting.value.data() + setting.value.size();
  const auto [rest, error] = std::from_chars(setting.value.data(), end, options.api.qps);
  if (error != std::errc() || rest != end || !std::isfinite(options.api.qps) ||
      options.api.qps < 0 || std::signbit(options.api.qps) ||
      (options.api.qps > 0 && options.api.qps < kLeastQps)) {
    return wrong(
        setting,
        "is not a rate: give requests per second, e.g. 50 or 0.5, at least 0.1; 0 sets no limit");
  }
  return std::nullopt;
}

bool parse_ip(std::string& host) {
  if (host == "localhost") host = "127.0.0.1";
  std::array<unsigned char, sizeof(in6_addr)> binary{};
  return inet_pton(AF_INET, host.c_str(), binary.data()) == 1 ||
         inet_pton(AF_INET6, host.c_str(), binary.data()) == 1;
}

std::optional<Error> parse_metrics_address(const Setting& setting, Options& options) {
  ListenAddress& address = options.metrics_address;
  if (setting.value == "0") {
    address.enabled = false;
    return std::nullopt;
  }
  const std::string advice =
      "is not an address to listen on: give :PORT, IP:PORT or [IPv6]:PORT (port 0: any free "
      "one), or 0 to serve neither probes nor metrics";
  const std::size_t colon = setting.value.rfind(':');
  if (colon == std::string::npos) return wrong(setting, advice);
  const std::string port = setting.value.substr(colon + 1);
  const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  if (error != std::errc() || rest != port.data() + port.size()) return wrong(setting, advice);
  address.host = setting.value.substr(0, colon);
  const bool bracketed =
      address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']';
  if (bracketed) address.host = address.host.substr(1, address.host.size() - 2);
  if (address.host.empty()) return std::nullopt;
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  if (!parse_ip(address.host) || is_ipv6 != bracketed) return wrong(setting, advice);
  return std::nullopt;
}

std::optional<Error> parse_log_level(const Setting& setting, Options& options) {
  static constexpr std::array<std::pair<const char*, LogLevel>, 5> kLevels = {
      {{"trace", LogLevel::kTrace},
       {"debug", LogLevel::kDebug},
       {"info", LogLevel::kInfo},
       {"warn", LogLevel::kWarn},
       {"error", LogLevel::kError}}};
  for (const auto& [name, level] : kLevels) {
    if (setting.value != name) continue;
    options.log.level = level;
    return std::nullopt;
  }
  return wrong(setting, "is not a log level: give trace, debug, info, warn or error");
}

std::optional<Error> parse_log_format(const Setting& setting, Options& options) {
  if (setting.value != "text" && setting.value != "json") {
    return wrong(setting, "is not a log format: give text or json");
  }
  options.log.format = setting.value == "json" ? LogFormat::kJson : LogFormat::kText;
  return std::nullopt;
}

std::optional<Error> parse_id(const Setting& setting, Options& options) {
  if (!is_dns_label(setting.value, kMaxIdLength)) {
    return wrong(setting,
                 "is not an id: use at most 52 lower case letters, digits and '-', with a letter "
                 "or digit at both ends");
  }
  options.replica.id = setting.value;
  return std::nullopt;
}

std::optional<Error> parse_duration(const Setting& setting, Duration& duration) {
  static constexpr std::array<std::pair<std::string_view, Duration>, 4> kUnits = {
      {{"ms", std::chrono::milliseconds(1)},
       {"s", std::chrono::seconds(1)},
       {"m", std::chrono::minutes(1)},
       {"h", std::chrono::hours(1)}}};
  std::uint16_t number = 0;
  const char* const end = setting.value.data() + setting.value.size();
  const auto [rest, error] = std::from_chars(setting.value.data(), end, number);
  const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  for (const auto& [name, length] : kUnits) {
    if (error != std::errc() || unit != name || number == 0) continue;
    duration = number * length;
    return std::nullopt;
  }
  return wrong(setting,
               "is not a duration: give a whole number above 0 and a unit, e.g. 15s, 500ms or 1m");
}

std::optional<Error> parse_lease_duration(const Setting& setting, Options& options) {
  return parse_duration(setting, options.replica.timings.lease_duration);
}
std::optional<Error> parse_renew_deadline(const Setting& setting, Options& options) {
  return parse_duration(setting, options.replica.timings.renew_deadline);
}
std::optional<Error> parse_retry_period(const Setting& setting, Options& options) {
  return parse_duration(setting, options.replica.timings.retry_period);
}

// The kubelet checks the image's syntax. This only finds mistakes on the command line.
std::optional<Error> parse_agent_image(const Setting& setting, Options& options) {
  constexpr std::size_t kMaxLength = 512;
  const bool blank = setting.value.find_first_of(" \t\n\r") != std::string::npos;
  if (blank || setting.value.size() > kMaxLength) {
    return wrong(setting, "is not an image: give a name as in a container's image field");
  }
  options.agent_image = setting.value;
  return std::nullopt;
}

std::optional<Error> parse_notifications(const Setting& setting, Options& options) {
  options.notifications = setting.value;
  return std::nullopt;
}

// The API server checks a selector.
std::optional<Error> parse_batch_jobs(const Setting& setting, Options& options) {
  options.batch_jobs = trimmed(setting.value);
  if (!options.batch_jobs.empty()) return std::nullopt;
  return wrong(setting, "is no choice of namespaces: give all, or a label selector of namespaces");
}

std::optional<Error> parse_require_guard(const Setting& setting, Options& options) {
  if (setting.value != "true" && setting.value != "false") {
    return wrong(setting, "is neither true nor false: give one of them");
  }
  options.require_guard = setting.value == "true";
  return std::nullopt;
}

std::optional<Error> parse_deployment(const Setting& setting, Options& options) {
  if (!options.release_pods) return wrong(setting, "is for the command release-pods alone");
  options.deployment = setting.value;
  return std::nullopt;
}

std::optional<Error> parse_kubeconfig(const Setting& setting, Options& options) {
  options.api.kubeconfig = setting.value;
  return std::nullopt;
}

constexpr std::array<Flag, 22> kFlags = {{
    {"--kubeconfig", "HOLDFAST_KUBECONFIG", "FILE",
     "How to reach the API server. Default: $KUBECONFIG, else the pod's own service account, else ~/.kube/config",
     parse_kubeconfig},
    {"--namespace", "HOLDFAST_NAMESPACE", "NAME",
     "Namespace of the operator's own objects. Default: the one it runs in, else holdfast-system",
     parse_namespace},
    {"--watch-namespace", "HOLDFAST_WATCH_NAMESPACE", "NAME[,NAME]",
     "Namespaces whose jobs are worked on; may be repeated. Default: all", parse_watch_namespaces,
     /*repeats=*/true},
    {"--agent-image", "HOLDFAST_AGENT_IMAGE", "IMAGE",
     "Where jobs with a heartbeat get /holdfast-agent from. Default: none, they wait for it",
     parse_agent_image},
    {"--notifications", "HOLDFAST_NOTIFICATIONS", "FILE",
     "The targets that jobs may name in spec.notify, as JSON. Default: none, nobody is told",
     parse_notifications},
    {"--batch-jobs", "HOLDFAST_BATCH_JOBS", "all|SELECTOR",
     "Run batch/v1 Jobs with managedBy: holdfast.dev/operator in all watched namespaces, or in "
     "those with these labels. Default: none",
     parse_batch_jobs},
    {"--rescue", "HOLDFAST_RESCUE", "off|observe|on",
     "on: free pods with the label holdfast.dev/rescue=true, of other controllers, on silent nodes. "
     "observe: write down what would be freed, and do nothing else. Default: off",
     parse_rescue},
    {"--rescue-namespace", "HOLDFAST_RESCUE_NAMESPACE", "NAME[,NAME]",
     "Namespaces of these pods; may be repeated. Default: those of --watch-namespace",
     parse_rescue_namespaces, /*repeats=*/true},
    {"--rescue-owner", "HOLDFAST_RESCUE_OWNER", "KIND[,KIND]",
     "Kinds of their controllers beside Job and ReplicaSet; may be repeated; or none. Default: "
     "Workflow, EphemeralRunner and RayCluster",
     parse_rescue_owners, /*repeats=*/true},
    {"--rescue-max-per-minute", "HOLDFAST_RESCUE_MAX_PER_MINUTE", "NUMBER",
     "At most so many are freed in a minute, 1 to 10000. Default: 60", parse_rescue_rate},
    {"--require-guard", "HOLDFAST_REQUIRE_GUARD", "true|false",
     "Start no new attempt while the policies holdfast-guard-* are missing or changed. "
     "Default: false",
     parse_require_guard},
    {"--workers", "HOLDFAST_WORKERS", "NUMBER",
     "Reconciles of one namespace in flight at a time, 1 to 1000. Default: 16", parse_workers},
    {"--metrics-address", "HOLDFAST_METRICS_ADDRESS", "[IP]:PORT",
     "Where /metrics, /healthz and /readyz are served: :8080 is port 8080 of every address, "
     "0 switches them off. Default: 127.0.0.1:8080",
     parse_metrics_address},
    {"--log-level", "HOLDFAST_LOG_LEVEL", "LEVEL",
     "trace, debug, info, warn or error. Default: info", parse_log_level},
    {"--log-format", "HOLDFAST_LOG_FORMAT", "FORMAT",
     "text, or json: one object a line. Default: text", parse_log_format},
    {"--qps", "HOLDFAST_QPS", "RATE",
     "Requests per second to the API server, bursts of twice as many. Default: 0, no limit: the "
     "server's own API Priority and Fairness decides",
     parse_qps},
    {"--id", "HOLDFAST_ID", "NAME",
     "This replica's name in Events, logs and Leases. Default: the host's (in a pod: the pod's) name",
     parse_id},
    {"--shards", "HOLDFAST_SHARDS", "NUMBER",
     "Number of shards of jobs, shared by the replicas, 1 to 1024; the same for all replicas, "
     "and fixed for an installation. Default: 32",
     parse_shards},
    {"--lease-duration", "HOLDFAST_LEASE_DURATION", "TIME",
     "A replica whose member Lease has not changed for this long is dead: the others take its "
     "shards over. Default: 15s",
     parse_lease_duration},
    {"--renew-deadline", "HOLDFAST_RENEW_DEADLINE", "TIME",
     "A replica that has not renewed its member Lease for this long stops acting; less than the "
     "lease duration. Default: 10s",
     parse_renew_deadline},
    {"--retry-period", "HOLDFAST_RETRY_PERIOD", "TIME",
     "How often the member Lease is renewed and the others' are looked at, 100ms to 4s. Default: 2s",
     parse_retry_period},
    {"--deployment", "HOLDFAST_DEPLOYMENT", "NAME",
     "With release-pods: the replicas' Deployment, scaled to zero first", parse_deployment},
}};

}  // namespace

std::span<const Flag> flags() { return kFlags; }

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\n\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\n\r") - first + 1);
}

}  // namespace holdfast::runtime
