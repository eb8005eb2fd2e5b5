#include "plugin/terminal/full_screen.h"

#include <pthread.h>
#include <termios.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <initializer_list>

#include "core/thread_annotations.h"

namespace holdfast::plugin::full_screen {
namespace {

// The alternate screen keeps what was on the terminal before. The cursor would flicker.
constexpr std::string_view kOn = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kOff = "\x1b[?25h\x1b[?1049l";
constexpr int kNone = -1;

// What the handlers below read.
std::atomic<int> screen{kNone};     // the descriptor that enter() got
std::atomic<bool> is_shown{false};  // kOn is the last that the terminal got
std::atomic<bool> is_lent{false};
pthread_t drawing{};  // the thread that draws, once `screen` is set
Mutex drawing_mutex;  // no frame is under way while the screen is lent
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<bool>::is_always_lock_free);

// The terminal that somebody else asks at, and its settings before that. No terminal: none of the
// standard streams is one.
struct Loan {
  int terminal = kNone;
  termios settings{};
};

Loan loan HOLDFAST_GUARDED_BY(drawing_mutex);

void show() {
  is_shown = true;
  write_all(screen, kOn);
}

void give_back() {
  if (is_shown.exchange(false)) write_all(screen, kOff);
}

// A terminal that does not control this process has no foreground.
bool is_in_foreground(int terminal = screen) {
  const pid_t group = ::tcgetpgrp(terminal);
  return group < 0 || group == ::getpgrp();
}

Loan settings_now() {
  Loan now;
  for (const int stream : {STDIN_FILENO, STDERR_FILENO, STDOUT_FILENO}) {
    if (::tcgetattr(stream, &now.settings) != 0) continue;
    now.terminal = stream;
    break;
  }
  return now;
}

// In the background the terminal is another program's, and the kernel would stop this process.
void restore(const Loan& before) {
  if (before.terminal == kNone || !is_in_foreground(before.terminal)) return;
  ::tcsetattr(before.terminal, TCSANOW, &before.settings);
}

bool has_handler(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_DFL;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_NODEFER | SA_RESTART;
  ::sigaction(signal, &action, nullptr);
}

// Does what the signal does without a handler. So the parent learns of it.
void act_as_usual(int signal) {
  handle(signal, SIG_DFL);
  ::raise(signal);
}

// The thread that draws handles it, so that no frame follows the end of the screen.
bool is_forwarded(int signal) {
  if (::pthread_equal(::pthread_self(), drawing) != 0) return false;
  ::pthread_kill(drawing, signal);
  return true;
}

void end(int signal) {
  if (is_forwarded(signal)) return;
  give_back();
  act_as_usual(signal);
}

// The thread that has crashed does nothing more.
void crash(int signal) {
  give_back();
  act_as_usual(signal);
}

void go_on(int signal) {
  const int error = errno;
  if (!is_forwarded(signal) && screen != kNone && !is_lent && is_in_foreground()) show();
  errno = error;
}

void stop(int signal) {
  const int error = errno;
  if (!is_forwarded(signal)) {
    give_back();
    act_as_usual(signal);
    handle(signal, stop);
    // Without job control the kernel stops nobody, and no SIGCONT comes.
    go_on(SIGCONT);
  }
  errno = error;
}

void take_signals() {
  drawing = ::pthread_self();
  const auto take = [](std::initializer_list<int> signals, void (*handler)(int)) {
    for (const int signal : signals) {
      if (!has_handler(signal)) handle(signal, handler);
    }
  };
  take({SIGINT, SIGTERM, SIGHUP, SIGQUIT}, end);
  take({SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}, crash);
  take({SIGTSTP}, stop);
  take({SIGCONT}, go_on);
}

}  // namespace

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int draw(int terminal, std::string_view frame) {
  if (screen == kNone) {
    take_signals();
    screen = terminal;
  }
  if (!is_in_foreground()) ::raise(SIGTTOU);
  const MutexLock lock(drawing_mutex);
  if (is_lent || !is_in_foreground()) return 0;
  if (!is_shown) show();
  return write_all(terminal, frame);
}

void leave() {
  give_back();
  screen = kNone;
}

void lend() {
  const MutexLock lock(drawing_mutex);
  is_lent = true;
  give_back();
  loan = settings_now();
}

void take_back() {
  const MutexLock lock(drawing_mutex);
  restore(loan);
  is_lent = false;
}

}  // namespace holdfast::plugin::full_screen
