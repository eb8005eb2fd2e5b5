#include "reconciler/job/status_limits.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/utf8.h"

namespace holdfast::reconciler {
namespace {

constexpr std::size_t kMessageLimit = 1024;
constexpr std::size_t kReasonLimit = 128;
// Field names, numbers and times of one run.
constexpr std::size_t kRunFrame = 180;
// Enough to see that the attempt's pod was refused, and mostly why.
constexpr std::size_t kShortRefusal = 32;

// A text as JSON may have an escape for each character.
bool are_large(const std::vector<Run>& runs) {
  std::size_t bytes = 0;
  for (const Run& run : runs) {
    bytes += kRunFrame + run.pod_name.size() + run.pod_uid.size() + run.node_name.size() +
             2 * (run.refused.size() + run.progress.size());
  }
  return bytes > kRunsBytes;
}

std::string cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  return utf8_prefix(std::move(text), limit - 3) + "...";
}

void keep_small(std::vector<Run>& runs) {
  if (!are_large(runs)) return;
  for (Run& run : runs) run.progress.clear();
  if (!are_large(runs)) return;
  for (Run& run : runs) run.refused = utf8_prefix(std::move(run.refused), kShortRefusal);
  if (!are_large(runs)) return;
  // The UID shows as well that the attempt had its pod.
  for (Run& run : runs) {
    if (!run.pod_uid.empty()) run.node_name.clear();
  }
}

bool is_foreign(const Condition& condition) {
  constexpr const char* kOurs[] = {
      "Cancelled",   "Complete",    "Failed",  "FailureTarget",      "Partial",
      "Reconciling", "ResultReady", "Stalled", "SuccessCriteriaMet", "Suspended"};
  return std::none_of(std::begin(kOurs), std::end(kOurs),
                      [&](const char* type) { return condition.type == type; });
}

// The last ones, and no more than needed.
void drop_foreign_conditions(std::vector<Condition>& conditions) {
  for (std::size_t i = conditions.size(); i-- > 0 && conditions.size() > kConditionLimit;) {
    if (is_foreign(conditions[i])) {
      conditions.erase(conditions.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

}  // namespace

std::string bounded(std::string text) { return cut(std::move(text), kMessageLimit); }

AnyReason bounded(const AnyReason& reason) {
  return reason.text().size() <= kReasonLimit ? reason
                                              : AnyReason(cut(reason.text(), kReasonLimit));
}

void keep_within_limits(Status& status) {
  keep_small(status.runs);
  if (!status.waiting) return;
  Waiting& waiting = *status.waiting;
  if (waiting.deadline) waiting.deadline = std::min(*waiting.deadline, kLatestTime);
  waiting.reason = bounded(waiting.reason);
  waiting.message = bounded(std::move(waiting.message));
}

void keep_within_limits(WriteStatus& write) {
  keep_within_limits(write.status);
  drop_foreign_conditions(write.status.conditions);
  for (Event& event : write.events) event.note = bounded(std::move(event.note));
}

}  // namespace holdfast::reconciler
