#include "agent/wire/lease.h"

#include <utility>

#include "agent/base/progress.h"
#include "agent/wire/lease_body.h"
#include "core/agent_protocol.h"
#include "core/utf8.h"

namespace holdfast::agent {
namespace {

Answer::Kind kind_of(LeaseRefusal::Kind kind) {
  switch (kind) {
    case LeaseRefusal::Kind::kConflict:
      return Answer::Kind::kConflict;
    case LeaseRefusal::Kind::kGone:
      return Answer::Kind::kGone;
    case LeaseRefusal::Kind::kFenced:
      return Answer::Kind::kFenced;
    case LeaseRefusal::Kind::kNone:
      break;
  }
  return Answer::Kind::kNone;
}

Answer verdict(Answer::Kind kind, std::string why) {
  Answer answer;
  answer.kind = kind;
  answer.why = std::move(why);
  return answer;
}

}  // namespace

LeaseRecord::LeaseRecord(std::string lease_namespace, std::string name)
    : name_(std::move(name)), path_(lease_path(lease_namespace, name_)) {}

Answer LeaseRecord::read(int status, std::string_view body) {
  if (status != 200) {
    LeaseRefusal refusal = read_refusal(name_, status, body);
    return verdict(kind_of(refusal.kind), std::move(refusal.why));
  }
  Json lease = parse_lease(body, name_);
  if (lease.is_null()) {
    return verdict(Answer::Kind::kNone, "the API server answered with something else than a Lease");
  }
  Answer answer;
  answer.kind = Answer::Kind::kLease;
  answer.lease.uid = string_at(at(lease, "metadata"), "uid");
  answer.lease.holder = string_at(at(lease, "spec"), "holderIdentity");
  answer.lease.attempt = int_at(at(lease, "spec"), "leaseTransitions");
  lease_ = std::move(lease);
  return answer;
}

Answer LeaseRecord::read_renewal(int status, std::string_view body) {
  Json before = lease_;
  Answer answer = read(status, body);
  if (answer.kind == Answer::Kind::kLease && !acknowledges(lease_, renew_time_)) {
    lease_ = std::move(before);
    return verdict(Answer::Kind::kNone, kOtherRenewal);
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
