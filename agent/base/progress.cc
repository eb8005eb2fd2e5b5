#include "agent/base/progress.h"

#include "agent/base/files.h"
#include "core/utf8.h"

namespace holdfast::agent {
namespace {

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// st_ctim too: a new file may get the inode number of an old one.
bool same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         same_time(a.st_mtim, b.st_mtim) && same_time(a.st_ctim, b.st_ctim);
}

}  // namespace

Result<> report_progress(const std::string& path, const std::string& message) {
  return replace_file(path, message + "\n", 0644);
}

std::optional<std::string> ProgressFile::look() {
  const struct stat now = state();
  const bool first = !seen_;
  if (!first && same(now, *seen_)) return std::nullopt;
  seen_ = now;
  if (first || now.st_ino == 0) return std::nullopt;
  // The beginning of the file is enough.
  return clean_text(read_regular_file(path_, 4 * kMaxMessageBytes).value_or(""), kMaxMessageBytes);
}

// All zero if there is no such file.
struct stat ProgressFile::state() const {
  struct stat state = {};
  if (::lstat(path_.c_str(), &state) != 0 || !S_ISREG(state.st_mode)) state = {};
  return state;
}

}  // namespace holdfast::agent
