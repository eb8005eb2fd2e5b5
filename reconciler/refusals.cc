#include "reconciler/refusals.h"

#include <algorithm>

#include "core/pause.h"

namespace holdfast::reconciler {
namespace {

constexpr seconds kFirstRetry{5};
constexpr seconds kLastRetry{30};
constexpr seconds kStopPatience{5};
// A webhook sets code, reason and causes of its refusal itself, as the API server would. Only the
// message distinguishes them: the API server puts this prefix before whatever a webhook says.
constexpr const char* kWebhookMessage = "admission webhook";

bool names_fields(const Error& error) {
  return error.http_status == 422 && error.cause_count > 0 &&
         static_cast<int>(error.cause_fields.size()) == error.cause_count;
}

}  // namespace

Duration retry_delay(int refusals) {
  return std::min<Duration>(kFirstRetry * (1 << std::min(refusals, 3)), kLastRetry);
}

bool person_must_help(ErrorCode code) {
  return code == ErrorCode::kForbidden || code == ErrorCode::kUnauthorized ||
         code == ErrorCode::kInvalid || code == ErrorCode::kTerminal;
}

bool may_still_create(const Error& error) {
  if (error.code == ErrorCode::kCancelled) return true;
  if (error.http_status == 0) return error.maybe_applied;
  const bool is_answer = error.http_status < 500 && error.http_status != 408;
  return !is_answer && error.reason != "InternalError";
}

bool deletion_is_refused(const Error& error) {
  switch (error.http_status) {
    case 401:
    case 404:
    case 409:
    case 429:
      return false;
    default:
      return error.http_status / 100 == 4;
  }
}

bool may_start_beside_old_pod(const std::optional<Duration>& failing_for) {
  return failing_for && *failing_for >= kStopPatience;
}

bool lease_is_refused(ErrorCode code) {
  return code == ErrorCode::kForbidden || code == ErrorCode::kInvalid;
}

std::optional<Event> creation_event(CreationRefusal::Kind kind, const Error& error) {
  // The operator itself gave the creation up.
  if (error.code == ErrorCode::kCancelled) return std::nullopt;
  // The job fails.
  if (kind == CreationRefusal::Kind::kTemplateInvalid) return std::nullopt;
  return Event{true, "PodRejected", "CreatePod", error.message};
}

std::optional<Event> deletion_event(const Error& error, bool goes_on_without) {
  if (!goes_on_without && !deletion_is_refused(error)) return std::nullopt;
  return Event{true, "PodDeletionRefused", "DeletePod", error.message};
}

std::optional<Event> lease_event(const Error& error) {
  if (!lease_is_refused(error.code)) return std::nullopt;
  const char* const unsaid = "the API server refused it";
  return Event{true, "LeaseRefused", "WriteLease", error.message.empty() ? unsaid : error.message};
}

bool puts_template_in_doubt(const Error& error) {
  return error.http_status == 413 || names_fields(error);
}

bool confirms_doubt(const Error& error) {
  const auto in_template = [](const std::string& field) { return field.starts_with("template."); };
  return names_fields(error) && !error.message.starts_with(kWebhookMessage) &&
         std::all_of(error.cause_fields.begin(), error.cause_fields.end(), in_template);
}

void CreationRefusals::add(CreationRefusal::Kind kind, const Error& error, bool on_record,
                           SteadyTime now) {
  const bool goes_on = count_ > 0 && last_.kind == kind;
  const int before = goes_on ? last_.in_a_row : on_record ? 1 : 0;
  last_ = CreationRefusal{kind, error.message, Duration::zero(), before + 1, Duration::zero()};
  at_ = now;
  retry_at_ = now + retry_delay(count_++);
  heed(error, now, retry_at_);
}

std::optional<CreationRefusal> CreationRefusals::last(SteadyTime now) const {
  if (count_ == 0) return std::nullopt;
  CreationRefusal refusal = last_;
  refusal.retry_in = std::max(Duration::zero(), retry_at_ - now);
  refusal.age = now - at_;
  return refusal;
}

}  // namespace holdfast::reconciler
