#include "operator/injection/agent_conflicts.h"

#include <filesystem>
#include <string>

#include "core/json.h"
#include "core/utf8.h"

namespace holdfast::injection {
namespace {

constexpr std::size_t kMaxRefusal = 1024;

// The message quotes the unchecked template.
Error refused(const std::string& what) {
  return make_error(ErrorCode::kInvalid, clean_text(what, kMaxRefusal));
}

std::string needed_by(const AgentUser& user) {
  return std::string(", which ") + user.name + " needs for its agent: use another" + user.otherwise;
}

bool is_ours(const std::string& volume) {
  return volume == kAgentName || volume == kAgentCredentials;
}

// The path as the container's runtime reads it: absolute, without "..", "." and "//". In most
// images /var/run is a link to /run.
std::string clean_path(const std::string& path) {
  std::string clean = std::filesystem::path("/" + path).lexically_normal().string();
  while (clean.size() > 1 && clean.ends_with('/')) clean.pop_back();
  constexpr std::string_view kLink = "/var/run";
  if (clean == kLink || clean.starts_with("/var/run/")) clean.replace(0, kLink.size(), "/run");
  return clean;
}

// The template may mount parent folders: a runtime mounts shorter paths first.
Result<> check_path(const AgentUser& user, const char* what, const std::string& path) {
  const std::string clean = clean_path(path);
  for (const char* const folder : {kAgentFolder, kAgentCredentialsFolder}) {
    const std::string ours = clean_path(folder);
    if (clean != ours && !clean.starts_with(ours + "/")) continue;
    return refused(std::string("the template's first container has ") + what + " at " + path +
                   ", within " + folder + needed_by(user));
  }
  return Unit{};
}

// A container that mounts one of the agent's volumes could change its program or state, or read its
// token.
Result<> check_container(const AgentUser& user, const Json& container) {
  if (string_at(container, "name") == kAgentName) {
    return refused(std::string("the template has a container called ") + kAgentName +
                   needed_by(user));
  }
  for (const char* const list : {"volumeMounts", "volumeDevices"}) {
    for (const Json& mount : at(container, list)) {
      const std::string volume = string_at(mount, "name");
      if (!is_ours(volume)) continue;
      return refused("the template's container " + string_at(container, "name") +
                     " mounts the volume " + volume + ", which belongs to " + user.name +
                     "'s agent: remove that mount");
    }
  }
  return Unit{};
}

Result<> check_worker(const AgentUser& user, const Json& worker) {
  const std::string log = string_at(worker, "terminationMessagePath");
  if (!log.empty()) {
    Result<> free = check_path(user, "terminationMessagePath", log);
    if (!free) return free;
  }
  for (const Json& mount : at(worker, "volumeMounts")) {
    Result<> free = check_path(user, "a mount", string_at(mount, "mountPath"));
    if (!free) return free;
  }
  for (const Json& device : at(worker, "volumeDevices")) {
    Result<> free = check_path(user, "volumeDevices", string_at(device, "devicePath"));
    if (!free) return free;
  }
  return Unit{};
}

// The agent ends all processes of its attempt, so it has to be the first one of its container, and
// the only one that starts there. A policy refuses these too, but may have been missing.
Result<> check_processes(const AgentUser& user, const Json& spec) {
  if (at(spec, "shareProcessNamespace") == true) {
    return refused(std::string("the template shares its process namespace, so ") + user.name +
                   "'s agent could not end its attempt's processes: remove shareProcessNamespace" +
                   user.otherwise);
  }
  const Json& containers = at(spec, "containers");
  if (!user.is_attempt || !containers.is_array() || containers.empty()) return Unit{};
  if (!at(at(containers[0], "lifecycle"), "postStart").is_null()) {
    return refused(std::string("the template's first container has postStart, which runs before ") +
                   user.name + "'s agent has the attempt's Lease: let the command do it" +
                   user.otherwise);
  }
  return Unit{};
}

}  // namespace

Result<> check_agent_conflicts(const AgentUser& user, const Json& spec) {
  for (const Json& volume : at(spec, "volumes")) {
    const std::string name = string_at(volume, "name");
    if (is_ours(name)) {
      return refused("the template has a volume called " + name + needed_by(user));
    }
  }
  for (const char* const list : {"initContainers", "containers", "ephemeralContainers"}) {
    for (const Json& container : at(spec, list)) {
      Result<> free = check_container(user, container);
      if (!free) return free;
    }
  }
  Result<> alone = check_processes(user, spec);
  if (!alone) return alone;
  const Json& containers = at(spec, "containers");
  return containers.is_array() && !containers.empty() ? check_worker(user, containers[0]) : Unit{};
}

}  // namespace holdfast::injection
