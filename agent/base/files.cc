#include "agent/base/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "core/utf8.h"

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

// Always a new file: an existing link would lead elsewhere, and an existing pipe would block.
int make_file(const std::string& path, mode_t mode) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  const int file = ::open(path.c_str(), kFlags, mode);
  if (file >= 0 || errno != EEXIST || ::unlink(path.c_str()) != 0) return file;
  return ::open(path.c_str(), kFlags, mode);
}

// In the same folder, under a name unique to this process.
template <class Fill>
Result<> make_and_rename(const std::string& path, mode_t mode, Fill fill) {
  const std::string scratch = path + "." + std::to_string(::getpid());
  const int file = make_file(scratch, mode);
  if (file < 0) return system_error(scratch, errno);
  int error = fill(file);
  // Independent of this process's umask, because others read and run the file.
  if (error == 0 && ::fchmod(file, mode) != 0) error = errno;
  if (::close(file) != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(scratch.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return Unit{};
  ::unlink(scratch.c_str());
  return system_error(path, error);
}

void write_to_stderr(std::string_view line) {
  pollfd out = {STDERR_FILENO, POLLOUT, 0};
  // Text that fits into a pipe is written at once.
  if (::poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) != 0) {
    static_cast<void>(!::write(STDERR_FILENO, line.data(), line.size()));
  }
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

Result<> replace_file(const std::string& path, const std::string& content, mode_t mode) {
  return make_and_rename(path, mode, [&](int file) { return write_all(file, content); });
}

std::optional<std::string> read_regular_file(const std::string& path, std::size_t max_bytes) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (file < 0) return std::nullopt;
  struct stat status = {};
  std::string content(max_bytes, '\0');
  const bool regular = ::fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const ssize_t count = regular ? ::read(file, content.data(), content.size()) : -1;
  ::close(file);
  if (count < 0) return std::nullopt;
  content.resize(static_cast<std::size_t>(count));
  return content;
}

void say(const std::string& line) {
  write_to_stderr("holdfast: " + clean_text(line, PIPE_BUF - 16) + "\n");
}

void write_termination_message(const std::string& path, const std::string& line) {
  const int file = ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file < 0) return;
  static_cast<void>(!::write(file, line.data(), line.size()));
  ::close(file);
}

void leave_last_words(const std::string& path, const std::string& words, Duration limit) {
  const std::string line = clean_text(words, PIPE_BUF - 1) + "\n";
  std::array<int, 2> over{};
  if (::pipe2(over.data(), O_CLOEXEC) != 0) return;
  const pid_t writer = ::fork();
  if (writer == 0) {
    // The waiting agent may end at any time, and ends this process too.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    write_termination_message(path, line);
    write_to_stderr(line);
    ::_exit(0);
  }
  ::close(over[1]);
  // Nobody writes to the pipe. Its other end closes when the writer ends.
  pollfd end = {over[0], POLLIN, 0};
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(limit);
  if (writer > 0) ::poll(&end, 1, static_cast<int>(wait.count()));
  ::close(over[0]);
}

Result<> install_self(const std::string& folder) {
  const int self = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (self < 0) return system_error("/proc/self/exe", errno);
  Result<> copied =
      make_and_rename(folder + "/agent", 0755, [&](int file) { return copy(self, file); });
  ::close(self);
  return copied;
}

}  // namespace holdfast::agent
