// The reports of one command, and how much of them the API server has. The agent of a job has one
// of these, the agent of a warm worker one for each attempt. No clock inside.
//
// Progress and a checkpoint are worth a renewal soon, but not at once: they may be very frequent.
// So is the end of the progress deadline: the API server shall see that it has passed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/time.h"

namespace holdfast::agent {

class CommandReports {
 public:
  // The command begins, or runs again. `progress_deadline`: the job's, if it has one.
  void begins(SteadyTime now, std::optional<Duration> progress_deadline);
  void progressed(SteadyTime now, std::string message);
  // The command does what it should without a word: it waits.
  void waits(SteadyTime now);
  // Numbers rise.
  void checkpointed(std::int64_t number, std::string text);

  // A renewal carries all of it.
  void sent();
  // The API server has this mark, which was this old.
  void has(std::int64_t mark, Duration age);
  // The API server has the checkpoint of the last renewal. Returns its number; none: it had it.
  std::optional<std::int64_t> keep();

  // When a renewal is due for their sake. `renewed`, `lease`: the Lease's last renewal, its
  // duration.
  SteadyTime due(SteadyTime renewed, Duration lease) const;

  // How often the command made progress.
  std::int64_t mark() const { return mark_; }
  Duration age(SteadyTime now) const { return now - last_progress_; }
  const std::string& message() const { return message_; }
  // The last one; empty: none.
  const std::string& checkpoint() const { return checkpoint_text_; }
  bool is_kept() const { return checkpoint_ <= kept_; }

  // The mark and the checkpoint of the last renewal.
  std::int64_t sent_mark() const { return sent_mark_; }
  const std::string& sent_checkpoint() const { return sent_text_; }

 private:
  std::optional<Duration> progress_deadline_;
  std::int64_t mark_ = 0;
  std::string message_;
  SteadyTime last_progress_{};
  std::int64_t checkpoint_ = 0;  // the number of the last one; zero: none
  std::string checkpoint_text_;

  std::int64_t sent_mark_ = 0;
  std::int64_t sent_checkpoint_ = 0;
  std::string sent_text_;

  // As the API server has it.
  std::int64_t recorded_mark_ = 0;
  bool recorded_overdue_ = false;
  std::int64_t kept_ = 0;
};

}  // namespace holdfast::agent
