// The screen of a real pseudo terminal, as a shell with job control sees it.
#include "plugin/terminal/full_screen.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <utility>

namespace holdfast::plugin {
namespace {

constexpr const char* kOn = "\x1b[?1049h\x1b[?25l";
constexpr const char* kOff = "\x1b[?25h\x1b[?1049l";
constexpr const char* kMark = "<shell>";

// The process in the middle: it leads the session, and does what a shell does with its one job.
[[noreturn]] void be_shell(const std::function<void()>& body) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::signal(SIGTTOU, SIG_IGN);  // a shell takes the terminal back from the background
  const pid_t job = ::fork();
  if (job == 0) {
    ::setpgid(0, 0);
    ::tcsetpgrp(STDOUT_FILENO, ::getpid());
    std::signal(SIGTTOU, SIG_DFL);
    body();
    ::_exit(0);
  }
  ::setpgid(job, job);
  for (;;) {
    int status = 0;
    ::waitpid(job, &status, WUNTRACED);
    ::tcsetpgrp(STDOUT_FILENO, ::getpgrp());
    full_screen::write_all(STDOUT_FILENO, kMark);
    if (!WIFSTOPPED(status)) ::_exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : 0);
    ::tcsetpgrp(STDOUT_FILENO, job);
    ::kill(-job, SIGCONT);
  }
}

// Draws until it is ended.
[[noreturn]] void draw_for_ever() {
  for (;;) {
    full_screen::draw(STDOUT_FILENO, "frame\n");
    ::usleep(10'000);
  }
}

class FullScreen : public ::testing::Test {
 protected:
  void run(const std::function<void()>& body) {
    shell_ = ::forkpty(&terminal_, nullptr, nullptr, nullptr);
    ASSERT_GE(shell_, 0);
    if (shell_ == 0) be_shell(body);
  }
  ~FullScreen() override {
    if (terminal_ >= 0) ::close(terminal_);
  }

  void type(char key) { ASSERT_EQ(::write(terminal_, &key, 1), 1); }

  // What was written up to the next such text, and with it.
  std::string until(const std::string& text) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    for (;;) {
      const std::size_t found = unread_.find(text);
      if (found != std::string::npos) {
        const std::string read = unread_.substr(0, found + text.size());
        unread_.erase(0, read.size());
        return read;
      }
      pollfd ready{terminal_, POLLIN, 0};
      char block[4096];
      if (std::chrono::steady_clock::now() > end || ::poll(&ready, 1, 30'000) != 1) break;
      const ssize_t got = ::read(terminal_, block, sizeof block);
      if (got <= 0) break;
      unread_.append(block, static_cast<std::size_t>(got));
    }
    ADD_FAILURE() << "no " << text << " in " << unread_;
    return "";
  }

  int exit_code() {
    int status = 0;
    EXPECT_EQ(::waitpid(shell_, &status, 0), shell_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  int terminal_ = -1;
  pid_t shell_ = 0;
  std::string unread_;
};

TEST_F(FullScreen, IsGivenBackBeforeAStopAndTakenAgainAfterIt) {
  run(draw_for_ever);
  EXPECT_NE(until("frame").find(kOn), std::string::npos);
  for (int stops = 0; stops < 3; ++stops) {
    type('Z' - '@');
    const std::string before = until(kMark);
    EXPECT_NE(before.find(kOff), std::string::npos);
    EXPECT_EQ(before.find("frame", before.find(kOff)), std::string::npos);
    EXPECT_NE(until("frame").find(kOn), std::string::npos);
  }
  type('C' - '@');
  EXPECT_NE(until(kMark).find(kOff), std::string::npos);
  EXPECT_EQ(exit_code(), 128 + SIGINT);
}

TEST_F(FullScreen, IsGivenBackByTheSignalsThatEndAProcess) {
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT, SIGABRT}) {
    unread_.clear();
    run([signal] {
      full_screen::draw(STDOUT_FILENO, "frame");
      // From another thread than the one that draws.
      std::thread([signal] { ::kill(::getpid(), signal); }).detach();
      for (;;) ::pause();
    });
    const std::string all = until(kMark);
    EXPECT_NE(all.find(kOff), std::string::npos) << signal;
    EXPECT_EQ(exit_code(), 128 + signal);
    ::close(std::exchange(terminal_, -1));
  }
}

TEST_F(FullScreen, DrawsNothingWhileItIsLent) {
  run([] {
    full_screen::draw(STDOUT_FILENO, "one");
    full_screen::lend();
    full_screen::draw(STDOUT_FILENO, "two");
    full_screen::write_all(STDOUT_FILENO, "Password: ");
    full_screen::take_back();
    full_screen::draw(STDOUT_FILENO, "three");
    full_screen::leave();
  });
  EXPECT_EQ(until(kMark),
            std::string(kOn) + "one" + kOff + "Password: " + kOn + "three" + kOff + kMark);
  EXPECT_EQ(exit_code(), 0);
}

TEST_F(FullScreen, ASignalThatTheParentIgnoresStaysIgnored) {
  run([] {
    std::signal(SIGHUP, SIG_IGN);
    full_screen::draw(STDOUT_FILENO, "frame");
    ::raise(SIGHUP);
    full_screen::leave();
  });
  EXPECT_EQ(until(kMark), std::string(kOn) + "frame" + kOff + kMark);
  EXPECT_EQ(exit_code(), 0);
}

}  // namespace
}  // namespace holdfast::plugin
