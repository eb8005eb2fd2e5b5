#include "agent/serve/shepherd.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <system_error>

#include "agent/base/exit_codes.h"
#include "agent/base/process_table.h"
#include "core/steady_now.h"

namespace holdfast::agent {
namespace {

// The shepherd's descriptor of the agent, after the command's three. All others are closed.
constexpr int kSocket = 3;
constexpr int kMostDescriptors = 1024;  // where the kernel cannot close all at once

// To the agent. The agent's message is one byte, and means SIGTERM.
struct Message {
  enum Kind : std::int32_t { kMissed, kExit };
  std::int32_t kind = kExit;
  std::int32_t code = 0;
};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  all.reserve(words.size() + 1);
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

// Made before the fork: the program has threads, so its new processes only make system calls.
struct Start {
  std::vector<char*> words;
  std::vector<char*> environment;
  SteadyTime before;
};

void complain(const char* word, int error) {
  const char* const reason = ::strerrordesc_np(error);
  for (const char* const part : {"holdfast: cannot run \"", word, "\": ", reason, "\n"}) {
    static_cast<void>(!::write(STDERR_FILENO, part, std::strlen(part)));
  }
}

void die_with(pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before that took effect.
  if (::getppid() != parent) ::_exit(kCannotRun);
}

void notify_agent(const Message& message) {
  static_cast<void>(!::send(kSocket, &message, sizeof message, MSG_NOSIGNAL));
}

// In the command's process. It says itself that it missed its start: no exit code is free for that.
[[noreturn]] void become(const Start& start, pid_t shepherd) {
  ::setpgid(0, 0);
  die_with(shepherd);
  std::signal(SIGPIPE, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (steady_now() >= start.before) {
    notify_agent({Message::kMissed, 0});
    ::_exit(kCannotRun);
  }
  ::execvpe(start.words[0], start.words.data(), start.environment.data());
  const int error = errno;
  complain(start.words[0], error);
  ::_exit(error == ENOENT || error == ENOTDIR ? kNotFound : kCannotRun);
}

void take_descriptors(const Command& command, int socket) {
  // First above those that they become, so that none is overwritten.
  constexpr int kAbove = 16;
  const std::array<int, 4> from = {command.in, command.out, command.err, socket};
  std::array<int, 4> high{};
  for (std::size_t i = 0; i < from.size(); ++i) high[i] = ::fcntl(from[i], F_DUPFD, kAbove);
  for (std::size_t i = 0; i < from.size(); ++i) ::dup2(high[i], static_cast<int>(i));
  if (::close_range(kSocket + 1, ~0U, 0) != 0) {
    for (int other = kSocket + 1; other < kMostDescriptors; ++other) ::close(other);
  }
  ::fcntl(kSocket, F_SETFD, FD_CLOEXEC);
}

// Reaps what has ended. False: no process is left.
bool reap(pid_t command, bool& runs) {
  int status = 0;
  pid_t pid = 0;
  while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (pid != command) continue;
    runs = false;
    notify_agent(
        {Message::kExit, WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status)});
  }
  return pid == 0;
}

// Until no process is left below it.
[[noreturn]] void watch_over(pid_t command) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  const int ended = ::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  bool runs = true;
  while (reap(command, runs)) {
    std::array<pollfd, 2> events = {{{ended, POLLIN, 0}, {kSocket, POLLIN, 0}}};
    ::poll(events.data(), events.size(), -1);
    signalfd_siginfo ignored{};
    while (::read(ended, &ignored, sizeof ignored) > 0) {
    }
    char byte = 0;
    const ssize_t count = ::recv(kSocket, &byte, 1, MSG_DONTWAIT);
    if (count == 0) ::_exit(kCannotRun);  // the agent is gone
    if (count < 0 || !runs) continue;
    ::kill(-command, SIGTERM);
    ::kill(-command, SIGCONT);  // a stopped process would not handle the signal
  }
  ::_exit(0);
}

// In the shepherd's process. It has the agent's blocked signals.
[[noreturn]] void tend(const Command& command, const Start& start, int socket, pid_t agent) {
  ::setpgid(0, 0);
  die_with(agent);
  ::prctl(PR_SET_NAME, "holdfast-slot");
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::prctl(PR_SET_DUMPABLE, 0);  // no command may debug it
  take_descriptors(command, socket);
  const pid_t self = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) become(start, self);
  if (pid < 0) {
    complain(start.words[0], errno);
    notify_agent({Message::kMissed, 0});
    ::_exit(0);
  }
  ::setpgid(pid, pid);  // in both processes: the first wins
  for (const int own : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(own);
  watch_over(pid);
}

}  // namespace

Shepherd::~Shepherd() { close(); }

std::string Shepherd::start(const Command& command, SteadyTime before) {
  close();
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return std::generic_category().message(errno);
  }
  std::vector<std::string> words = command.words;
  std::vector<std::string> environment = command.environment;
  const Start start{pointers(words), pointers(environment), before};
  const pid_t agent = ::getpid();
  pid_ = ::fork();
  if (pid_ == 0) tend(command, start, pair[1], agent);
  const int error = errno;
  ::close(pair[1]);
  socket_ = pair[0];
  ended_well_ = true;
  if (pid_ > 0) return "";
  close();
  return std::generic_category().message(error);
}

void Shepherd::terminate() const {
  if (pid_ > 0) static_cast<void>(!::send(socket_, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void Shepherd::kill() const {
  if (pid_ <= 0) return;
  for (const pid_t process : ProcessTable::read().below(pid_)) ::kill(process, SIGKILL);
  // A command may have stopped it. It has to reap them.
  ::kill(pid_, SIGCONT);
}

Shepherd::News Shepherd::read() {
  News news;
  Message message;
  ssize_t count = 0;
  while ((count = ::recv(socket_, &message, sizeof message, MSG_DONTWAIT)) == sizeof message) {
    if (message.kind == Message::kMissed) news.missed = true;
    if (message.kind == Message::kExit) news.exit_code = message.code;
  }
  news.closed = count >= 0 || errno != EAGAIN;
  return news;
}

void Shepherd::reaped(int status) {
  ended_well_ = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  pid_ = -1;
}

void Shepherd::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  pid_ = -1;
}

std::size_t kill_orphans(const std::vector<pid_t>& shepherds) {
  const ProcessTable table = ProcessTable::read();
  std::size_t left = 0;
  for (const pid_t child : table.children_of(::getpid())) {
    if (std::find(shepherds.begin(), shepherds.end(), child) != shepherds.end()) continue;
    ++left;
    ::kill(child, SIGKILL);
    for (const pid_t process : table.below(child)) ::kill(process, SIGKILL);
  }
  return left;
}

}  // namespace holdfast::agent
