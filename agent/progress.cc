#include "agent/progress.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "agent/files.h"
#include "agent/lease.h"
#include "operator/core/utf8.h"

namespace holdfast::agent {
namespace {

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// st_ctim too: a new file may get the number of an old one.
bool same(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_size == b.st_size &&
         same_time(a.st_mtim, b.st_mtim) && same_time(a.st_ctim, b.st_ctim);
}

// The beginning of the file is enough. Not blocking: somebody may put a pipe in its place.
std::string read_message(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return "";
  std::array<char, 4 * kMaxMessageBytes> content;
  const ssize_t count = ::read(file, content.data(), content.size());
  ::close(file);
  if (count <= 0) return "";
  return clean_text(std::string_view(content.data(), static_cast<std::size_t>(count)),
                    kMaxMessageBytes);
}

}  // namespace

Status tell_progress(const std::string& path, const std::string& message) {
  return replace_file(path, message + "\n", 0644);
}

ProgressFile::ProgressFile(std::string path) : path_(std::move(path)), seen_(state()) {}

std::optional<std::string> ProgressFile::look() {
  const struct stat now = state();
  if (same(now, seen_)) return std::nullopt;
  seen_ = now;
  if (now.st_ino == 0) return std::nullopt;
  return read_message(path_);
}

// All zero when there is none.
struct stat ProgressFile::state() const {
  struct stat state = {};
  if (::stat(path_.c_str(), &state) != 0) state = {};
  return state;
}

}  // namespace holdfast::agent
