// Checkpoints: what the worker has done, so that the next attempt goes on from there. The child
// leaves them in a file next to the progress file. Its agent writes the last one into the Lease
// with a renewal. Then it leaves the id of the checkpoint that the API server has in another file.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"

namespace holdfast::agent {

struct Checkpoint {
  std::string id;  // unique to this call of the command
  std::string text;
};

// The command `checkpoint [--wait] TEXT|@FILE`. An error says what is wrong with the text. `wait`:
// returns once the API server has it. An error: the agent cannot say so any more, or another
// checkpoint came first.
Result<> leave_checkpoint(const std::string& progress_file, const std::string& text, bool wait);
// The text of the command's argument.
Result<std::string> checkpoint_text(const std::string& argument);

// The agent's side. Only a regular file counts, as for progress.
class CheckpointFile {
 public:
  explicit CheckpointFile(const std::string& progress_file);

  // The checkpoint, if the file has changed since the last call.
  std::optional<Checkpoint> look();
  // The API server has this one. False: that could not be written.
  bool acknowledge(const std::string& id) const;

 private:
  const std::string path_;
  const std::string kept_path_;
  std::string last_id_;
};

}  // namespace holdfast::agent
