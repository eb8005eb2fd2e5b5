// The file by which the child tells its progress: each change of it is some. Its content, if any,
// is the message.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "operator/core/result.h"

namespace holdfast::agent {

// What `progress MESSAGE` does.
Status tell_progress(const std::string& path, const std::string& message);

class ProgressFile {
 public:
  // As it is now is no progress yet.
  explicit ProgressFile(std::string path);

  // The message, when the file has changed since the last call. That it is gone is no progress.
  std::optional<std::string> look();

 private:
  struct stat state() const;  // NOLINT: the system's name

  const std::string path_;
  struct stat seen_;
};

}  // namespace holdfast::agent
