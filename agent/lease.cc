#include "agent/lease.h"

#include <utility>

#include "core/agent_protocol.h"
#include "core/utf8.h"

namespace holdfast::agent {
namespace {

// Part of the message of the fence in the API server (a ValidatingAdmissionPolicy).
constexpr std::string_view kFenceMark = "fenced:";
constexpr std::size_t kMaxWhyBytes = 512;

// The whole Lease with all annotations, because a renewal removes the fields that it leaves out.
// One empty entry in managedFields makes the API server drop its record of field owners, until
// somebody applies the Lease. That makes each renewal cheaper.
Json parse_lease(std::string_view text) {
  Result<Json> parsed = parse_json(text);
  if (!parsed || !parsed->is_object() || !at(*parsed, "metadata").is_object()) return Json();
  Json lease = std::move(*parsed);
  if (!at(lease, "spec").is_null() && !at(lease, "spec").is_object()) return Json();
  lease["metadata"]["managedFields"] = Json::array({Json::object()});
  return lease;
}

Answer verdict(Answer::Kind kind, std::string_view why) {
  Answer answer;
  answer.kind = kind;
  answer.why = clean_text(why, kMaxWhyBytes);
  return answer;
}

Answer refusal(int status, const std::string& message) {
  const std::size_t mark = message.find(kFenceMark);
  if (status == 403 && mark != std::string::npos) {
    return verdict(Answer::Kind::kFenced, "the API server refused the renewal:" +
                                              message.substr(mark + kFenceMark.size()));
  }
  std::string why = "the API server answered " + std::to_string(status);
  if (!message.empty()) why += ": " + message;
  return verdict(Answer::Kind::kNone, why);
}

}  // namespace

LeaseRecord::LeaseRecord(std::string lease_namespace, std::string name)
    : name_(std::move(name)),
      path_("/apis/coordination.k8s.io/v1/namespaces/" + std::move(lease_namespace) + "/leases/" +
            name_) {}

Answer LeaseRecord::read(int status, std::string_view body) {
  if (status == 200) {
    Json lease = parse_lease(body);
    const Json& meta = at(lease, "metadata");
    Answer answer;
    answer.lease.uid = string_at(meta, "uid");
    if (answer.lease.uid.empty() || string_at(meta, "name") != name_) {
      return verdict(Answer::Kind::kNone,
                     "the API server answered with something else than a Lease");
    }
    answer.kind = Answer::Kind::kLease;
    answer.lease.holder = string_at(at(lease, "spec"), "holderIdentity");
    answer.lease.attempt = int_at(at(lease, "spec"), "leaseTransitions");
    lease_ = std::move(lease);
    return answer;
  }
  const Result<Json> parsed = parse_json(body);
  const Json& reason = parsed.ok() ? parsed.value() : at(Json(), "");
  const std::string message = string_at(reason, "message");
  if (status == 409) return verdict(Answer::Kind::kConflict, message);
  // A proxy, or a server that does not serve Leases (yet), also answers 404. That says nothing
  // about the Lease.
  if (status == 404 && string_at(at(reason, "details"), "name") == name_) {
    return verdict(Answer::Kind::kGone, "the Lease was deleted");
  }
  return refusal(status, message);
}

Answer LeaseRecord::read_renewal(int status, std::string_view body) {
  Json before = lease_;
  Answer answer = read(status, body);
  if (answer.kind == Answer::Kind::kLease &&
      string_at(at(lease_, "spec"), "renewTime") != renew_time_) {
    lease_ = std::move(before);
    return verdict(Answer::Kind::kNone, "the API server answered with another renewal's Lease");
  }
  return answer;
}

std::string LeaseRecord::checkpoint() const {
  return string_at(at(at(lease_, "metadata"), "annotations"), kCheckpointAnnotation);
}

std::string LeaseRecord::renewed(const Renewal& renewal, Time now) {
  Json lease = lease_;
  renew_time_ = format_time_micros(now);
  lease["spec"]["renewTime"] = renew_time_;
  Json& annotations = lease["metadata"]["annotations"];
  if (!annotations.is_object()) annotations = Json::object();
  annotations[kProgressAnnotation] = std::to_string(renewal.mark);
  annotations[kProgressAgeAnnotation] = std::to_string(renewal.age_seconds);
  // An empty message removes an old one, but creates no annotation.
  if (!renewal.message.empty() || annotations.contains(kProgressMessageAnnotation)) {
    annotations[kProgressMessageAnnotation] = clean_text(renewal.message, kMaxMessageBytes);
  }
  if (renewal.deferrals > 0) {
    annotations[kDeferralsAnnotation] = std::to_string(renewal.deferrals);
  }
  if (renewal.checkpoint) annotations[kCheckpointAnnotation] = *renewal.checkpoint;
  if (renewal.ended) annotations[kEndedAnnotation] = std::to_string(*renewal.ended);
  return lease.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace holdfast::agent
