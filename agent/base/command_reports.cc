#include "agent/base/command_reports.h"

#include <algorithm>
#include <utility>

#include "agent/base/lease_times.h"

namespace holdfast::agent {

void CommandReports::begins(SteadyTime now, std::optional<Duration> progress_deadline) {
  progress_deadline_ = progress_deadline;
  last_progress_ = now;
}

void CommandReports::progressed(SteadyTime now, std::string message) {
  ++mark_;
  message_ = std::move(message);
  last_progress_ = now;
  recorded_overdue_ = false;
}

void CommandReports::waits(SteadyTime now) {
  ++mark_;
  last_progress_ = now;
}

void CommandReports::checkpointed(std::int64_t number, std::string text) {
  checkpoint_ = number;
  checkpoint_text_ = std::move(text);
}

void CommandReports::sent() {
  sent_mark_ = mark_;
  sent_checkpoint_ = checkpoint_;
  sent_text_ = checkpoint_text_;
}

// Reports have whole seconds.
void CommandReports::has(std::int64_t mark, Duration age) {
  recorded_mark_ = std::max(recorded_mark_, mark);
  if (progress_deadline_ && mark == mark_ &&
      age >= std::chrono::floor<std::chrono::seconds>(*progress_deadline_)) {
    recorded_overdue_ = true;
  }
}

std::optional<std::int64_t> CommandReports::keep() {
  if (sent_checkpoint_ <= kept_) return std::nullopt;
  return kept_ = sent_checkpoint_;
}

SteadyTime CommandReports::due(SteadyTime renewed, Duration lease) const {
  SteadyTime due = SteadyTime::max();
  if (mark_ > recorded_mark_) due = std::min(due, renewed + progress_pause(lease));
  if (checkpoint_ > kept_) due = std::min(due, renewed + checkpoint_pause(lease));
  if (progress_deadline_ && !recorded_overdue_) {
    due = std::min(due, last_progress_ + *progress_deadline_);
  }
  return due;
}

}  // namespace holdfast::agent
