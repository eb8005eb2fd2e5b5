#include "agent/base/command_files.h"

#include <utility>

#include "agent/base/files.h"
#include "agent/base/state_file.h"

namespace holdfast::agent {

CommandFiles::Found CommandFiles::Look::operator()() {
  if (!changed_.empty()) static_cast<void>(replace_file(state_file_, changed_, 0644));
  if (kept_ && checkpoints_->acknowledge(*kept_)) kept_.reset();
  return {progress_->look(), checkpoints_->look(), kept_};
}

CommandFiles::CommandFiles(const std::string& progress_file)
    : state_file_(state_file_of(progress_file)),
      progress_(std::make_shared<ProgressFile>(progress_file)),
      checkpoints_(std::make_shared<CheckpointFile>(progress_file)) {}

CommandFiles::Look CommandFiles::look(const std::string& state) {
  Look look;
  look.state_file_ = state_file_;
  if (state != left_state_) look.changed_ = state;
  left_state_ = state;
  look.kept_ = std::exchange(kept_, std::nullopt);
  look.progress_ = progress_;
  look.checkpoints_ = checkpoints_;
  return look;
}

std::int64_t CommandFiles::found(const Found& found) {
  if (found.not_acknowledged && !kept_) kept_ = found.not_acknowledged;
  if (!found.checkpoint) return 0;
  checkpoint_id_ = found.checkpoint->id;
  return ++checkpoint_;
}

bool CommandFiles::kept(std::int64_t number) {
  if (number != checkpoint_) return false;
  kept_ = checkpoint_id_;
  return true;
}

}  // namespace holdfast::agent
