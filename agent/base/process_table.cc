#include "agent/base/process_table.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <csignal>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast::agent {
namespace {

std::optional<pid_t> to_pid(std::string_view text) {
  pid_t pid = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), pid);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return pid;
}

// -1: it is gone.
pid_t parent_of(const char* pid) {
  std::array<char, 512> text;
  const int file = ::open((std::string("/proc/") + pid + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t count = ::read(file, text.data(), text.size());
  ::close(file);
  if (count <= 0) return -1;
  std::string_view rest(text.data(), static_cast<std::size_t>(count));
  // "7 (any) name) S 1 ...": the name may hold anything, brackets too.
  const std::size_t name_end = rest.rfind(") ");
  if (name_end == std::string_view::npos || rest.size() < name_end + 5) return -1;
  rest.remove_prefix(name_end + 4);
  return to_pid(rest.substr(0, rest.find(' '))).value_or(-1);
}

}  // namespace

ProcessTable ProcessTable::read() {
  ProcessTable table;
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) return table;
  while (const dirent* const entry = ::readdir(folder)) {
    const std::optional<pid_t> pid = to_pid(entry->d_name);
    if (pid) table.by_parent_.emplace(parent_of(entry->d_name), *pid);
  }
  ::closedir(folder);
  return table;
}

std::vector<pid_t> ProcessTable::children_of(pid_t process) const {
  std::vector<pid_t> found;
  const auto [first, last] = by_parent_.equal_range(process);
  for (auto child = first; child != last; ++child) found.push_back(child->second);
  return found;
}

std::vector<pid_t> ProcessTable::below(pid_t process) const {
  std::vector<pid_t> found = children_of(process);
  for (std::size_t next = 0; next < found.size(); ++next) {
    for (const pid_t child : children_of(found[next])) found.push_back(child);
  }
  return found;
}

void kill_descendants() {
  const pid_t self = ::getpid();
  if (self == 1) {
    // All of the container at once: the kernel also catches processes that fork.
    ::kill(-1, SIGKILL);
    return;
  }
  for (const pid_t process : ProcessTable::read().below(self)) ::kill(process, SIGKILL);
}

}  // namespace holdfast::agent
