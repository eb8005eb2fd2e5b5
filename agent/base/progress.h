// The child reports progress through a file: each change of the file is progress. Its content, if
// any, is the message. Only a regular file counts, because a link could lead to a disk that hangs.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "core/result.h"

namespace holdfast::agent {

// The limit of a progress message.
inline constexpr std::size_t kMaxMessageBytes = 256;

// The command `progress MESSAGE`.
Result<> report_progress(const std::string& path, const std::string& message);

class ProgressFile {
 public:
  explicit ProgressFile(std::string path) : path_(std::move(path)) {}

  // The message, if the file has changed since the last call. The file's state at the first call is
  // no progress, and neither is its removal.
  std::optional<std::string> look();

 private:
  struct stat state() const;  // NOLINT: the system's name

  const std::string path_;
  std::optional<struct stat> seen_;
};

}  // namespace holdfast::agent
