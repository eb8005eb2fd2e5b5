#include "agent/run/child.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "agent/base/exit_codes.h"
#include "agent/base/process_table.h"
#include "core/steady_now.h"

namespace holdfast::agent {
namespace {

void say_cannot_run(const char* first, const char* second, const char* third) {
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
  say_cannot_run(arguments[0], "\": ", std::strerror(error));
  ::_exit(error == ENOENT || error == ENOTDIR ? kNotFound : kCannotRun);
}

}  // namespace

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
  signal(SIGKILL);
  kill_descendants();
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
