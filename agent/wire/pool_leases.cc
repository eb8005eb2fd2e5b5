#include "agent/wire/pool_leases.h"

#include <utility>

#include "agent/wire/lease_body.h"

namespace holdfast::agent {
namespace {

constexpr const char* kNoLease = "the API server answered with something else than a Lease";

std::string annotation(const Json& lease, const char* key) {
  return string_at(at(at(lease, "metadata"), "annotations"), key);
}

WorkReading::Kind work_kind(LeaseRefusal::Kind kind) {
  return kind == LeaseRefusal::Kind::kGone ? WorkReading::Kind::kGone : WorkReading::Kind::kNone;
}

WorkerReading::Kind worker_kind(LeaseRefusal::Kind kind) {
  switch (kind) {
    case LeaseRefusal::Kind::kConflict:
      return WorkerReading::Kind::kConflict;
    case LeaseRefusal::Kind::kGone:
      return WorkerReading::Kind::kGone;
    case LeaseRefusal::Kind::kFenced:
      return WorkerReading::Kind::kFenced;
    case LeaseRefusal::Kind::kNone:
      break;
  }
  return WorkerReading::Kind::kNone;
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

WorkLease::Read WorkLease::read(int status, std::string_view body) const {
  Read read;
  if (status == 200) return read_lease(parse_lease(body, name_));
  LeaseRefusal refusal = read_refusal(name_, status, body);
  read.reading.kind = work_kind(refusal.kind);
  read.reading.why = std::move(refusal.why);
  return read;
}

WorkLease::Read WorkLease::read_lease(const Json& lease) const {
  Read read;
  read.version = string_at(at(lease, "metadata"), "resourceVersion");
  if (lease.is_null() || read.version.empty()) {
    read.reading.why = kNoLease;
    return read;
  }
  read.reading.kind = WorkReading::Kind::kRead;
  read.reading.uid = string_at(at(lease, "metadata"), "uid");
  Result<Work> work = decode_work(annotation(lease, kWorkAnnotation));
  if (work.ok()) {
    read.reading.work = std::move(work).value();
  } else {
    read.reading.why = work.error().message;
  }
  return read;
}

WorkLease::Event WorkLease::read_event(std::string_view line) const {
  Event event;
  Result<Json> json = parse_json(line);
  if (!json) {
    event.why = json.error().message;
    return event;
  }
  const std::string type = string_at(*json, "type");
  const Json& object = at(*json, "object");
  if (type == "ERROR") {
    if (int_at(object, "code") == 410) event.kind = Event::Kind::kExpired;
    event.why = string_at(object, "message");
  } else if (type == "BOOKMARK") {
    event.kind = Event::Kind::kBookmark;
    event.read.version = string_at(at(object, "metadata"), "resourceVersion");
    if (event.read.version.empty()) event.kind = Event::Kind::kEnd;
  } else if (type == "ADDED" || type == "MODIFIED" || type == "DELETED") {
    event.read = read_lease(as_lease(object, name_));
    if (event.read.reading.kind == WorkReading::Kind::kRead) event.kind = Event::Kind::kLease;
    event.why = event.read.reading.why;
    if (type == "DELETED" && event.kind == Event::Kind::kLease) {
      event.read.reading = WorkReading{};
      event.read.reading.kind = WorkReading::Kind::kGone;
      event.read.reading.why = "the work Lease was deleted";
    }
  } else {
    event.why = "an unknown event";
  }
  return event;
}

WorkerLease::WorkerLease(std::string lease_namespace, std::string name)
    : name_(std::move(name)), path_(lease_path(lease_namespace, name_)) {}

WorkerReading WorkerLease::read(int status, std::string_view body) {
  WorkerReading reading;
  if (status != 200) {
    LeaseRefusal refusal = read_refusal(name_, status, body);
    reading.kind = worker_kind(refusal.kind);
    reading.why = std::move(refusal.why);
    return reading;
  }
  Json lease = parse_lease(body, name_);
  if (lease.is_null()) {
    reading.why = kNoLease;
    return reading;
  }
  reading.kind = WorkerReading::Kind::kLease;
  reading.uid = string_at(at(lease, "metadata"), "uid");
  reading.holder = string_at(at(lease, "spec"), "holderIdentity");
  Result<WorkerReport> report = decode_report(annotation(lease, kWorkerAnnotation));
  if (report.ok()) {
    reading.report = std::move(report).value();
  } else {
    reading.why = report.error().message;
  }
  lease_ = std::move(lease);
  return reading;
}

WorkerReading WorkerLease::read_renewal(int status, std::string_view body) {
  Json before = lease_;
  WorkerReading reading = read(status, body);
  if (reading.kind == WorkerReading::Kind::kLease && !acknowledges(lease_, renew_time_)) {
    lease_ = std::move(before);
    reading = WorkerReading{};
    reading.why = kOtherRenewal;
  }
  return reading;
}

std::string WorkerLease::renewed(const WorkerReport& report, Time now) {
  Json lease = lease_;
  renew_time_ = format_time_micros(now);
  lease["spec"]["renewTime"] = renew_time_;
  Json& annotations = lease["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = Json::object();
  annotations[kWorkerAnnotation] = encode_report(report);
  return lease.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::agent
