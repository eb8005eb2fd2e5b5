#include "agent/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

namespace holdfast::agent {
namespace {

Error system_error(const std::string& path, int number) {
  return make_error(ErrorCode::kTerminal, path + ": " + std::generic_category().message(number));
}

// 0, or the system's reason.
int write_all(int file, std::string_view content) {
  while (!content.empty()) {
    const ssize_t count = ::write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    content.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

// Beside its place, under a name of this process's own.
template <class Fill>
Status make_and_rename(const std::string& path, mode_t mode, Fill fill) {
  const std::string scratch = path + "." + std::to_string(::getpid());
  const int file =
      ::open(scratch.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
  if (file < 0) return system_error(scratch, errno);
  int error = fill(file);
  // Not what the mask of this process makes of it: others read and run it.
  if (error == 0 && ::fchmod(file, mode) != 0) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(scratch.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return Unit{};
  ::unlink(scratch.c_str());
  return system_error(path, error);
}

int copy(int from, int to) {
  static char block[64 << 10];
  for (;;) {
    const ssize_t count = ::read(from, block, sizeof block);
    if (count == 0) return 0;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    const int error = write_all(to, std::string_view(block, static_cast<std::size_t>(count)));
    if (error != 0) return error;
  }
}

}  // namespace

Status replace_file(const std::string& path, const std::string& content, mode_t mode) {
  return make_and_rename(path, mode, [&](int file) { return write_all(file, content); });
}

void write_termination_message(const std::string& path, const std::string& line) {
  const int file = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return;
  static_cast<void>(!::write(file, line.data(), line.size()));
  ::close(file);
}

Status install_self(const std::string& folder) {
  const int self = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (self < 0) return system_error("/proc/self/exe", errno);
  Status copied =
      make_and_rename(folder + "/agent", 0755, [&](int file) { return copy(self, file); });
  ::close(self);
  return copied;
}

}  // namespace holdfast::agent
