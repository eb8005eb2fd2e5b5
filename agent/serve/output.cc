#include "agent/serve/output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "core/utf8.h"

namespace holdfast::agent {
namespace {

constexpr std::size_t kPieceBytes = 16 << 10;

// A broken output loses lines, and nothing else.
void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(to, text.data(), text.size());
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    if (count >= 0 || errno == EINTR) continue;
    if (errno != EAGAIN) return;
    pollfd ready = {to, POLLOUT, 0};
    ::poll(&ready, 1, -1);
  }
}

struct Pipe {
  int from = -1;
  LinePrefixer lines;
  std::shared_ptr<Tail> tail;
};

// False: the other end is closed.
bool copy_some(Pipe& pipe, int to) {
  std::array<char, kPieceBytes> piece;
  const ssize_t count = ::read(pipe.from, piece.data(), piece.size());
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  if (count == 0) {
    if (pipe.tail) pipe.tail->close();
    write_all(to, pipe.lines.finish());
    return false;
  }
  const std::string_view text(piece.data(), static_cast<std::size_t>(count));
  if (pipe.tail) pipe.tail->add(text);
  write_all(to, pipe.lines.add(text));
  return true;
}

}  // namespace

std::string LinePrefixer::add(std::string_view text) {
  std::string whole;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::size_t room = kMaxLineBytes - rest_.size();
    rest_.append(text.substr(0, std::min(end, room)));
    const bool cut = end > room;
    if (!cut && end == text.size()) break;
    whole += prefix_ + std::exchange(rest_, "") + "\n";
    text.remove_prefix(cut ? room : end + 1);
  }
  return whole;
}

std::string LinePrefixer::finish() {
  if (rest_.empty()) return "";
  return prefix_ + std::exchange(rest_, "") + "\n";
}

void Tail::add(std::string_view text) {
  // With room for bytes that last_lines() leaves out.
  constexpr std::size_t kKept = 8192;
  const MutexLock lock(mutex_);
  text_.append(text);
  if (text_.size() > 2 * kKept) text_.erase(0, text_.size() - kKept);
}

void Tail::close() {
  const MutexLock lock(mutex_);
  --open_;
  closed_.notify_all();
}

std::string Tail::lines(std::size_t limit, Duration wait) {
  const auto until = std::chrono::steady_clock::now() + wait;
  const MutexLock lock(mutex_);
  while (open_ > 0) {
    if (closed_.wait_until(mutex_, until) == std::cv_status::timeout) break;
  }
  return last_lines(text_, limit);
}

// Lives until both sides are gone.
struct Output::Shared {
  int to = -1;
  int wakeup = -1;
  std::thread thread;  // loop only

  Mutex mutex;
  std::condition_variable_any changed;
  std::vector<Pipe> opened HOLDFAST_GUARDED_BY(mutex);
  std::size_t open HOLDFAST_GUARDED_BY(mutex) = 0;  // not closed yet
  bool ends HOLDFAST_GUARDED_BY(mutex) = false;

  ~Shared() { ::close(wakeup); }
  void wake() const {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wakeup, &one, sizeof one));
  }
};

Output::Output(int to) : shared_(std::make_shared<Shared>()) {
  shared_->to = to;
  shared_->wakeup = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  shared_->thread = std::thread(&Output::copy, shared_);
}

Output::~Output() {
  bool idle = false;
  {
    const MutexLock lock(shared_->mutex);
    shared_->ends = true;
    idle = shared_->open == 0;
  }
  shared_->wake();
  // With open pipes it may hang.
  if (idle) {
    shared_->thread.join();
  } else {
    shared_->thread.detach();
  }
}

int Output::open(std::string prefix, std::shared_ptr<Tail> tail) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return -1;
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  {
    const MutexLock lock(shared_->mutex);
    shared_->opened.push_back({ends[0], LinePrefixer(std::move(prefix)), std::move(tail)});
    ++shared_->open;
  }
  shared_->wake();
  return ends[1];
}

void Output::finish(Duration limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  const MutexLock lock(shared_->mutex);
  while (shared_->open > 0) {
    if (shared_->changed.wait_until(shared_->mutex, until) == std::cv_status::timeout) return;
  }
}

void Output::copy(const std::shared_ptr<Shared>& shared) {
  std::vector<Pipe> pipes;
  for (;;) {
    {
      const MutexLock lock(shared->mutex);
      for (Pipe& pipe : shared->opened) pipes.push_back(std::move(pipe));
      shared->opened.clear();
      if (shared->ends) return;
    }
    std::vector<pollfd> events = {{shared->wakeup, POLLIN, 0}};
    for (const Pipe& pipe : pipes) events.push_back({pipe.from, POLLIN, 0});
    ::poll(events.data(), events.size(), -1);
    std::uint64_t ignored = 0;
    static_cast<void>(!::read(shared->wakeup, &ignored, sizeof ignored));
    std::vector<Pipe> left;
    std::size_t closed = 0;
    for (std::size_t i = 0; i < pipes.size(); ++i) {
      const bool ready = events[i + 1].revents != 0;
      if (!ready || copy_some(pipes[i], shared->to)) {
        left.push_back(std::move(pipes[i]));
        continue;
      }
      ::close(pipes[i].from);
      ++closed;
    }
    pipes = std::move(left);
    if (closed == 0) continue;
    const MutexLock lock(shared->mutex);
    shared->open -= closed;
    shared->changed.notify_all();
  }
}

}  // namespace holdfast::agent
