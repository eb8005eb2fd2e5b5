#include "operator/runtime/signals.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <csignal>
#include <optional>

namespace holdfast::runtime {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  return set;
}

void notify(int event_fd) {
  const std::uint64_t one = 1;
  // Fails only when the counter is full, and then the reader is awake already.
  [[maybe_unused]] const ssize_t written = write(event_fd, &one, sizeof(one));
}

void drain(int event_fd) {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(event_fd, &count, sizeof(count));
}

}  // namespace

void block_stop_signals() {
  const sigset_t set = stop_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

StopSignals::StopSignals(std::function<void(const std::string& name)> on_stop, Duration limit,
                         Log log)
    : on_stop_(std::move(on_stop)), limit_(limit), log_(std::move(log)) {
  const sigset_t set = stop_signals();
  signal_fd_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  begun_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  end_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  assert(signal_fd_ >= 0 && begun_fd_ >= 0 && end_fd_ >= 0);
  thread_ = std::thread([this] { run(); });
}

StopSignals::~StopSignals() {
  notify(end_fd_);
  thread_.join();
  close(signal_fd_);
  close(begun_fd_);
  close(end_fd_);
}

void StopSignals::stop_has_begun() { notify(begun_fd_); }

void StopSignals::cut_short(const std::string& why) {
  log_.error("ending at once, without a clean stop", {{"why", why}});
  _exit(kExitCutShort);  // no destructors: what they would wait for may be stuck
}

void StopSignals::run() {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  while (true) {
    int wait_ms = -1;
    if (deadline) {
      const auto left = *deadline - std::chrono::steady_clock::now();
      if (left <= Duration::zero()) cut_short("the stop took over " + human_duration(limit_));
      wait_ms = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count());
    }
    std::array<pollfd, 3> fds = {
        {{signal_fd_, POLLIN, 0}, {begun_fd_, POLLIN, 0}, {end_fd_, POLLIN, 0}}};
    if (poll(fds.data(), fds.size(), wait_ms) <= 0) continue;
    if (fds[2].revents != 0) return;
    if (fds[1].revents != 0) {
      drain(begun_fd_);
      if (!deadline) deadline = std::chrono::steady_clock::now() + limit_;
    }
    signalfd_siginfo info{};
    if (fds[0].revents == 0 || read(signal_fd_, &info, sizeof(info)) != sizeof(info)) continue;
    const std::string name = info.ssi_signo == SIGINT ? "SIGINT" : "SIGTERM";
    if (deadline) cut_short("a second signal, " + name);
    deadline = std::chrono::steady_clock::now() + limit_;
    on_stop_(name);
  }
}

}  // namespace holdfast::runtime
