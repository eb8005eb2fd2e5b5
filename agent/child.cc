#include "agent/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string_view>
#include <system_error>

#include "core/steady_now.h"

namespace holdfast::agent {
namespace {

constexpr int kNotFound = 127;
constexpr int kCannotRun = 126;
// Not handled: signals of the agent's own faults, and signals that cannot or must not be caught.
constexpr std::array kNotHandled = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGABRT,
                                    SIGSYS,  SIGPIPE, SIGKILL, SIGSTOP, SIGTTIN, SIGTTOU};

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

std::multimap<pid_t, pid_t> children_by_parent() {
  std::multimap<pid_t, pid_t> children;
  DIR* const folder = ::opendir("/proc");
  if (folder == nullptr) return children;
  while (const dirent* const entry = ::readdir(folder)) {
    const std::optional<pid_t> pid = to_pid(entry->d_name);
    if (pid) children.emplace(parent_of(entry->d_name), *pid);
  }
  ::closedir(folder);
  return children;
}

void say(const char* first, const char* second, const char* third) {
  for (const char* const part : {"holdfast: cannot run \"", first, second, third, "\n"}) {
    static_cast<void>(!::write(STDERR_FILENO, part, std::strlen(part)));
  }
}

// In the new process. No other thread was forked, so no lock can be held.
[[noreturn]] void become(const std::vector<char*>& arguments, pid_t agent, SteadyTime before) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The agent may have ended before PDEATHSIG took effect.
  if (::getppid() != agent) ::_exit(kCannotRun);
  // The child takes over the agent's terminal.
  if (::tcgetpgrp(STDIN_FILENO) == ::getpgid(agent)) {
    std::signal(SIGTTOU, SIG_IGN);
    ::tcsetpgrp(STDIN_FILENO, ::getpid());
    std::signal(SIGTTOU, SIG_DFL);
  }
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (steady_now() >= before) ::_exit(kCannotRun);  // the agent fences itself
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  say(arguments[0], "\": ", std::strerror(error));
  ::_exit(error == ENOENT || error == ENOTDIR ? kNotFound : kCannotRun);
}

}  // namespace

sigset_t handled_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int number : kNotHandled) sigdelset(&set, number);
  return set;
}

void block_signals() {
  const sigset_t set = handled_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

Child::Child() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::string Child::start(const std::vector<std::string>& command, SteadyTime before) {
  std::vector<std::string> words = command;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t agent = ::getpid();
  ended_ = false;
  pid_ = ::fork();
  if (pid_ == 0) become(arguments, agent, before);
  if (pid_ < 0) return std::generic_category().message(errno);
  ::setpgid(pid_, pid_);  // in both processes: the first wins
  return "";
}

void Child::signal(int number) const {
  // Not yet reaped, so no other process can have the number.
  if (pid_ > 0 && !ended_) ::kill(-pid_, number);
}

void Child::kill_all() const {
  const pid_t self = ::getpid();
  if (self == 1) {
    // All of the container at once: the kernel also catches processes that fork.
    ::kill(-1, SIGKILL);
    return;
  }
  signal(SIGKILL);
  const std::multimap<pid_t, pid_t> children = children_by_parent();
  std::vector<pid_t> parents = {self};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    const auto [first, last] = children.equal_range(parent);
    for (auto child = first; child != last; ++child) {
      ::kill(child->second, SIGKILL);
      parents.push_back(child->second);
    }
  }
}

Child::Reaped Child::reap() {
  Reaped reaped;
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != pid_) continue;
    ended_ = true;
    reaped.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  reaped.none_left = pid < 0 && errno == ECHILD;
  return reaped;
}

}  // namespace holdfast::agent
