#include "agent/wire/pool_leases.h"

#include <utility>

namespace holdfast::agent {
namespace {

WorkReading view_of(const Json& lease) {
  std::string version = string_at(at(lease, "metadata"), "resourceVersion");
  if (version.empty()) return no_lease();
  return WorkView{string_at(at(lease, "metadata"), "uid"), std::move(version),
                  decode_work(annotation(lease, kWorkAnnotation))};
}

}  // namespace

WorkLease::WorkLease(std::string lease_namespace, std::string name)
    : name_(std::move(name)),
      path_(lease_path(lease_namespace, name_)),
      watch_path_(
          path_.substr(0, path_.rfind('/')) +
          "?watch=1&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(kWatchSeconds) +
          "&fieldSelector=metadata.name%3D" + name_ + "&resourceVersion=") {}

std::string WorkLease::watch_path(const std::string& version) const {
  return watch_path_ + version;
}

WorkReading WorkLease::read(int status, std::string_view body) const {
  auto answer = read_lease(name_, status, body);
  if (auto* const refusal = std::get_if<LeaseRefusal>(&answer)) return std::move(*refusal);
  return view_of(std::get<Json>(answer));
}

WorkLease::Event WorkLease::read_event(std::string_view line) const {
  const Result<Json> json = parse_json(line);
  if (!json) return End{};
  const std::string type = string_at(*json, "type");
  const Json& object = at(*json, "object");
  if (type == "ERROR" && int_at(object, "code") == 410) return Expired{};
  if (type == "BOOKMARK") {
    std::string version = string_at(at(object, "metadata"), "resourceVersion");
    return version.empty() ? Event(End{}) : News{std::move(version), std::nullopt};
  }
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") return End{};
  WorkReading reading = view_of(as_lease(object, name_));
  const auto* const view = std::get_if<WorkView>(&reading);
  if (!view) return End{};
  std::string version = view->version;
  if (type == "DELETED") {
    reading = LeaseRefusal{LeaseRefusal::Kind::kGone, "the work Lease was deleted"};
  }
  return News{std::move(version), std::move(reading)};
}

void read_view(const Json& lease, WorkerView& view) {
  view.uid = string_at(at(lease, "metadata"), "uid");
  view.holder = string_at(at(lease, "spec"), "holderIdentity");
  view.report = decode_report(annotation(lease, kWorkerAnnotation));
}

std::string WorkerLease::renewed(const WorkerReport& report, Time now) {
  return renewed_with(
      now, [&](Json& annotations) { annotations[kWorkerAnnotation] = encode_report(report); });
}

}  // namespace holdfast::agent
