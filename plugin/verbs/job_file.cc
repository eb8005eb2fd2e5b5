#include "plugin/verbs/job_file.h"

#include <utility>

#include "client/kube/yaml.h"
#include "reconciler/names.h"

namespace holdfast::plugin {
namespace {

bool is_batch(const Json& object) {
  const std::string kind = string_at(object, "kind");
  return string_at(object, "apiVersion").starts_with("batch/") &&
         (kind == "Job" || kind == "CronJob");
}

}  // namespace

Result<Json> read_manifest(const Command& command, Terminal& terminal) {
  if (!command.has("filename")) {
    return invalid("which file? kubectl holdfast " + command.verb +
                   " -f FILE, or -f - for standard input");
  }
  const std::string path = command.text("filename");
  const std::string name = path == "-" ? "standard input" : path;
  const Result<std::string> text = terminal.read(path, kMaxManifestBytes);
  if (!text.ok()) {
    if (text.error().code == ErrorCode::kNotFound) {
      return invalid("there is no file " + path + "; give another -f, or -f - for standard input");
    }
    return invalid("this is no manifest that can be read: " + text.error().message);
  }
  Result<std::vector<Json>> documents = kube::parse_manifest(*text);
  if (!documents.ok()) {
    return invalid(name + ": " + documents.error().message + "; correct it there");
  }
  if (documents->empty()) return invalid(name + " is empty; it must hold one object");
  if (documents->size() > 1) {
    return invalid(name + " holds " + std::to_string(documents->size()) +
                   " objects; give one object for each call of " + command.verb);
  }
  return std::move((*documents)[0]);
}

Result<> check_job(const Json& object) {
  if (!object.is_object())
    return invalid("this is no object; a DurableJob starts with apiVersion and kind");
  if (is_batch(object)) {
    return invalid("this is a batch/v1 " + string_at(object, "kind") +
                   "; turn it into a DurableJob: kubectl holdfast convert -f FILE");
  }
  const std::string kind = string_at(object, "kind");
  const std::string version = string_at(object, "apiVersion");
  if (kind != reconciler::kJobKind || !version.starts_with("holdfast.dev/")) {
    return invalid("this is no DurableJob but '" + kind + "' of '" + version +
                   "'; set apiVersion: " + reconciler::kJobApiVersion + " and kind: DurableJob");
  }
  if (version != reconciler::kJobApiVersion) {
    return invalid("this version of a DurableJob is not known here: " + version +
                   "; set apiVersion: " + reconciler::kJobApiVersion);
  }
  for (const char* part : {"metadata", "spec"}) {
    const Json& member = at(object, part);
    if (!member.is_object() && !member.is_null()) {
      return invalid(std::string(part) + " must be a mapping; correct it in the file");
    }
  }
  if (at(object, "spec").is_null()) return invalid("the job has no spec; add one with a template");
  return Unit{};
}

}  // namespace holdfast::plugin
