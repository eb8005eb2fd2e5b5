#include "operator/notify/targets.h"

#include <algorithm>
#include <array>
#include <set>

#include "client/http/endpoint.h"
#include "core/json.h"

namespace holdfast::notify {
namespace {

constexpr std::size_t kNameLimit = 63;
constexpr std::size_t kUrlLimit = 2048;
constexpr std::size_t kNamespacesLimit = 1000;
constexpr std::size_t kRangesLimit = 32;

Error wrong(const std::string& what) {
  return make_error(ErrorCode::kInvalid, "notifications: " + what);
}

bool is_name(const std::string& text) {
  const auto is_inner = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kNameLimit &&
         std::all_of(text.begin(), text.end(), is_inner) && text.front() != '-' &&
         text.back() != '-';
}

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// A misspelt field would silently be left out.
Result<> check_fields(const Json& json, const std::set<std::string>& known, const std::string& of) {
  if (!json.is_object()) return wrong(of + " is not an object");
  for (const auto& [key, value] : json.items()) {
    if (known.count(key) == 0) return wrong(of + " has an unknown field " + key + ": remove it");
  }
  return Unit{};
}

Result<std::vector<std::string>> strings_at(const Json& json, const char* key, std::size_t limit,
                                            const std::string& of) {
  std::vector<std::string> strings;
  const Json& list = at(json, key);
  if (list.is_null()) return strings;
  const bool fits =
      list.is_array() && list.size() <= limit &&
      std::all_of(list.begin(), list.end(), [](const Json& one) { return one.is_string(); });
  if (!fits) {
    return wrong(of + ": " + key + " must be a list of at most " + std::to_string(limit) +
                 " strings");
  }
  for (const Json& one : list) strings.push_back(one.get<std::string>());
  return strings;
}

Result<> parse_url(const std::string& url, const std::string& of, Target& target) {
  constexpr std::string_view kScheme = "https://";
  if (url.rfind(kScheme, 0) != 0) {
    return wrong(of + ": url must begin with https://, because messages are for the target alone");
  }
  if (url.size() > kUrlLimit || !is_printable(url) || url.find('#') != std::string::npos) {
    return wrong(of + ": url must have at most 2048 characters, without spaces and without #");
  }
  const std::size_t end = std::min(url.find_first_of("/?", kScheme.size()), url.size());
  const Result<http::Endpoint> endpoint = http::parse_endpoint(url.substr(0, end));
  if (!endpoint.ok()) return wrong(of + ": url: " + endpoint.error().message);
  if (!endpoint->user_info.empty()) {
    return wrong(of + ": url must have no user and password: the signature proves the sender");
  }
  target.host = endpoint->host;
  target.port = endpoint->port;
  target.path = url.substr(end);
  if (target.path.empty() || target.path.front() == '?') target.path.insert(0, "/");
  return Unit{};
}

Result<> parse_events(const Json& json, const std::string& of, Target& target) {
  const auto names = strings_at(json, "events", 16, of);
  if (!names.ok()) return names.error();
  for (const std::string& name : *names) {
    const auto event = reconciler::parse_notify_event(name);
    if (!event) {
      return wrong(of + ": there is no event " + name +
                   ": use Succeeded, Failed, Cancelled, StageEnded or Stalled");
    }
    target.events.push_back(*event);
  }
  if (!names->empty()) return Unit{};
  for (int event = 0; event <= static_cast<int>(reconciler::kLastNotifyEvent); ++event) {
    target.events.push_back(static_cast<reconciler::NotifyEvent>(event));
  }
  return Unit{};
}

Result<> parse_ranges(const Json& json, const std::string& of, Target& target) {
  const auto texts = strings_at(json, "allowedCIDRs", kRangesLimit, of);
  if (!texts.ok()) return texts.error();
  for (const std::string& text : *texts) {
    const Result<Range> range = parse_range(text);
    if (!range.ok()) return wrong(of + ": allowedCIDRs: " + range.error().message);
    target.allowed.push_back(*range);
  }
  return Unit{};
}

Result<Target> parse_target(const Json& json) {
  Target target;
  target.name = string_at(json, "name");
  if (!is_name(target.name)) {
    return wrong("each target needs a name of lower case letters, digits and '-'");
  }
  const std::string of = "target " + target.name;
  Result<> checked = check_fields(
      json, {"name", "url", "secretFile", "caFile", "namespaces", "events", "allowedCIDRs"}, of);
  if (checked.ok()) checked = parse_url(string_at(json, "url"), of, target);
  if (checked.ok()) checked = parse_events(json, of, target);
  if (checked.ok()) checked = parse_ranges(json, of, target);
  if (!checked.ok()) return checked.error();
  target.secret_file = string_at(json, "secretFile");
  target.ca_file = string_at(json, "caFile");
  if (target.secret_file.empty()) {
    return wrong(of + ": secretFile is missing: name the file with the secret of its signatures");
  }
  auto namespaces = strings_at(json, "namespaces", kNamespacesLimit, of);
  if (!namespaces.ok()) return namespaces.error();
  target.namespaces = std::move(*namespaces);
  return target;
}

}  // namespace

bool Target::allows(const std::string& namespace_) const {
  return namespaces.empty() ||
         std::find(namespaces.begin(), namespaces.end(), namespace_) != namespaces.end();
}

const Target* Targets::find(const std::string& name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &found->second;
}

std::vector<std::string> Targets::names() const {
  std::vector<std::string> names;
  for (const auto& [name, target] : by_name) names.push_back(name);
  return names;
}

Result<Targets> parse_targets(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json.ok()) return wrong("the file is not JSON: " + json.error().message);
  const Result<> checked = check_fields(*json, {"source", "targets"}, "the file");
  if (!checked.ok()) return checked.error();
  Targets targets;
  targets.source = string_at(*json, "source");
  if (targets.source.size() > kUrlLimit || !is_printable(targets.source)) {
    return wrong("source must have at most 2048 characters, without spaces");
  }
  while (!targets.source.empty() && targets.source.back() == '/') targets.source.pop_back();
  const Json& list = at(*json, "targets");
  if (!list.is_array() || list.size() > kTargetLimit) {
    return wrong("targets must be a list of at most " + std::to_string(kTargetLimit));
  }
  for (const Json& one : list) {
    Result<Target> target = parse_target(one);
    if (!target.ok()) return target.error();
    const std::string name = target->name;
    if (!targets.by_name.emplace(name, std::move(*target)).second) {
      return wrong("two targets have the name " + name + ": rename one");
    }
  }
  return targets;
}

}  // namespace holdfast::notify
