#include "tests/simulation/crash_point.h"

#include <algorithm>
#include <sstream>

#include "tests/simulation/gateway.h"

namespace holdfast::simulation {
namespace {

std::vector<std::string> segments_of(const std::string& target) {
  std::istringstream path(target.substr(0, target.find('?')));
  std::vector<std::string> segments;
  for (std::string segment; std::getline(path, segment, '/');) {
    if (!segment.empty()) segments.push_back(segment);
  }
  return segments;
}

// Member Leases are renewed all the time, the shards' say who works.
std::string lease_kind(const std::string& name) {
  if (name.starts_with("holdfast-member-")) return "leases.member";
  return name.starts_with("holdfast-shard") ? "leases.shard" : "leases";
}

}  // namespace

const char* to_string(Mishap mishap) {
  switch (mishap) {
    case Mishap::kCrashBefore:
      return "crash-before";
    case Mishap::kCrashApplied:
      return "crash-applied";
    case Mishap::kCrashAnswered:
      return "crash-answered";
    case Mishap::kRequestLost:
      return "request-lost";
    case Mishap::kRequestLostSilently:
      return "request-lost-silently";
    case Mishap::kAnswerLost:
      return "answer-lost";
    case Mishap::kAnswerLostSilently:
      return "answer-lost-silently";
    case Mishap::kDuplicateAtOnce:
      return "duplicate-at-once";
    case Mishap::kDuplicateLate:
      return "duplicate-late";
  }
  return "";
}

bool is_crash(Mishap mishap) {
  return mishap == Mishap::kCrashBefore || mishap == Mishap::kCrashApplied ||
         mishap == Mishap::kCrashAnswered;
}

bool is_silent(Mishap mishap) {
  return mishap == Mishap::kRequestLostSilently || mishap == Mishap::kAnswerLostSilently;
}

bool is_duplicate(Mishap mishap) {
  return mishap == Mishap::kDuplicateAtOnce || mishap == Mishap::kDuplicateLate;
}

Call call_of(const std::string& method, const std::string& target) {
  std::vector<std::string> rest = segments_of(target);
  // /api/v1, /apis/<group>/<version>; then namespaces/<name>, if it is in one.
  rest.erase(rest.begin(), rest.begin() + (rest.front() == "api" ? 2 : 3));
  if (rest.size() > 2 && rest[0] == "namespaces") rest.erase(rest.begin(), rest.begin() + 2);
  const std::string name = rest.size() > 1 ? rest[1] : "";
  std::string resource = rest[0] == "leases" ? lease_kind(name) : rest[0];
  if (rest.size() > 2) resource += "." + rest[2];
  std::string verb = method;
  if (method == "GET" && name.empty()) verb = is_watch(target) ? "WATCH" : "LIST";
  return {verb + " " + resource, method != "GET"};
}

std::string name_of(const Point& point, const std::vector<Call>& calls) {
  const Call& call = calls.at(point.call);
  const auto of_its_kind =
      std::count_if(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(point.call) + 1,
                    [&](const Call& other) { return other.kind == call.kind; });
  std::string kind = call.kind;
  std::replace(kind.begin(), kind.end(), ' ', '-');
  return "r" + std::to_string(point.replica) + "/" + kind + "-" + std::to_string(of_its_kind) +
         "/" + to_string(point.mishap);
}

}  // namespace holdfast::simulation
