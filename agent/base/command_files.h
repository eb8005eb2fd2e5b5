// The files between one command and its agent, as its loop sees them. They are the progress file,
// the checkpoints, and the state that `check` and `checkpoint --wait` read (state_file.h).
//
//   CommandFiles::Look look = files.look(state);  // on the loop
//   CommandFiles::Found found = look();           // on a thread that may hang
//   const std::int64_t number = files.found(found);  // on the loop
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "agent/base/checkpoint.h"
#include "agent/base/progress.h"

namespace holdfast::agent {

class CommandFiles {
 public:
  struct Found {
    std::optional<std::string> progress;  // its message
    std::optional<Checkpoint> checkpoint;
    std::optional<std::string> not_acknowledged;  // its id: to be tried again
  };
  // Leaves the state, and reads what the command has left.
  class Look {
   public:
    Found operator()();

   private:
    friend class CommandFiles;
    std::string state_file_;
    std::string changed_;              // the state; empty: it is there already
    std::optional<std::string> kept_;  // the id of a checkpoint that the API server has
    std::shared_ptr<ProgressFile> progress_;
    std::shared_ptr<CheckpointFile> checkpoints_;
  };

  explicit CommandFiles(const std::string& progress_file);

  Look look(const std::string& state);
  // Whether a look is worth it, though the command may have left nothing.
  bool is_behind(const std::string& state) const { return state != left_state_ || kept_; }
  // Takes over what must be tried again. Returns the number of the checkpoint that was found, from
  // one; zero: none was.
  std::int64_t found(const Found& found);
  // The API server has the checkpoint with this number. Returns whether that is the last one, which
  // the next look acknowledges.
  bool kept(std::int64_t number);

 private:
  std::string state_file_;
  // Used by the thread, in one look at a time.
  std::shared_ptr<ProgressFile> progress_;
  std::shared_ptr<CheckpointFile> checkpoints_;

  std::string left_state_;
  std::int64_t checkpoint_ = 0;      // how many the command has left
  std::string checkpoint_id_;        // of the last one
  std::optional<std::string> kept_;  // the id of one that the API server has, not acknowledged yet
};

}  // namespace holdfast::agent
