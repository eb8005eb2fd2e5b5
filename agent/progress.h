// The file by which the child tells its progress: each change of it is some. Its content, if any,
// is the message. Only a regular file counts: a link, say, would lead to a disk that hangs.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>
#include <utility>

#include "core/result.h"

namespace holdfast::agent {

// What `progress MESSAGE` does.
Status tell_progress(const std::string& path, const std::string& message);

class ProgressFile {
 public:
  explicit ProgressFile(std::string path) : path_(std::move(path)) {}

  // The message, when the file has changed since the last call. What is there at the first call is
  // no progress yet, and that the file is gone is none either.
  std::optional<std::string> look();

 private:
  struct stat state() const;  // NOLINT: the system's name

  const std::string path_;
  std::optional<struct stat> seen_;
};

}  // namespace holdfast::agent
