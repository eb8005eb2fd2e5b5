#include "client/http/stream_inbox.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace holdfast::http {
namespace {

constexpr std::size_t kMaxBodyBytes = 64u << 10;

}  // namespace

bool StreamInbox::feed(const char* data, std::size_t size, std::function<void()> resume,
                       SteadyTime now) {
  int status = 0;
  {
    MutexLock lock(mutex_);
    last_activity_ = now;
    if (closed_ || error_) return true;
    status = status_;
    if (status == 0) {
      partial_.append(data, size);
      resume_ = std::move(resume);
      return false;
    }
    if (status != 200) {
      body_.append(data, std::min(size, kMaxBodyBytes - body_.size()));
      return true;
    }
  }
  split(data, size);
  MutexLock lock(mutex_);
  cut_off_ = !partial_.empty();
  if (closed_ || waiting_bytes_ + taken_bytes_ <= config_.max_waiting_bytes) return true;
  resume_ = std::move(resume);
  return false;
}

void StreamInbox::set_status(int status, Framing framing) {
  std::string early;
  {
    MutexLock lock(mutex_);
    framing_ = framing;
    status_ = status;
    if (partial_.empty()) return;  // no reader waits; partial_ belongs to the reader from now on
    early.swap(partial_);
    if (status != 200) body_ = early.substr(0, kMaxBodyBytes);
  }
  if (status == 200) split(early.data(), early.size());
  {
    MutexLock lock(mutex_);
    cut_off_ = !partial_.empty();
    if (waiting_bytes_ + taken_bytes_ > config_.max_waiting_bytes) return;  // resumed by the loop
  }
  resume();
}

void StreamInbox::split(const char* data, std::size_t size) {
  framing_ == Framing::kFrames ? split_frames(data, size) : split_lines(data, size);
}

void StreamInbox::split_frames(const char* data, std::size_t size) {
  constexpr std::size_t kPrefix = 4;
  partial_.append(data, size);
  std::string_view rest = partial_;
  while (rest.size() >= kPrefix) {
    std::size_t length = 0;
    for (std::size_t i = 0; i < kPrefix; ++i)
      length = length << 8 | static_cast<unsigned char>(rest[i]);
    if (length > config_.max_line_bytes) return fail(too_long());
    if (rest.size() - kPrefix < length) break;
    push(rest.substr(kPrefix, length));
    rest.remove_prefix(kPrefix + length);
  }
  partial_.erase(0, partial_.size() - rest.size());
}

void StreamInbox::split_lines(const char* data, std::size_t size) {
  while (size > 0) {
    const char* const end = static_cast<const char*>(std::memchr(data, '\n', size));
    const std::size_t length = end == nullptr ? size : static_cast<std::size_t>(end - data);
    if (partial_.size() + length > config_.max_line_bytes) return fail(too_long());
    if (end == nullptr) {
      partial_.append(data, length);
      return;
    }
    if (partial_.empty()) {
      push(std::string_view(data, length));
    } else {
      partial_.append(data, length);
      push(partial_);
      partial_.clear();
    }
    data += length + 1;
    size -= length + 1;
  }
}

void StreamInbox::push(std::string_view line) {
  if (line.empty()) return;
  std::any decoded;
  try {
    decoded = config_.decode ? config_.decode(line) : std::any(std::string(line));
  } catch (...) {
    return fail(make_error(ErrorCode::kTerminal, "a line of the stream cannot be decoded"));
  }
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (closed_ || error_) return;
    lines_.push_back(std::move(decoded));
    waiting_bytes_ += line.size();
    wake = !std::exchange(woken_, true);
  }
  if (wake) config_.wake();
}

Error StreamInbox::too_long() const {
  return make_error(ErrorCode::kTerminal, "a line of the stream is longer than " +
                                              std::to_string(config_.max_line_bytes) + " bytes");
}

void StreamInbox::fail(Error error) {
  bool wake = false;
  {
    MutexLock lock(mutex_);
    if (closed_ || error_) return;
    error_ = std::move(error);
    wake = !std::exchange(woken_, true);
  }
  if (wake) config_.wake();
}

StreamInbox::Batch StreamInbox::take() {
  MutexLock lock(mutex_);
  woken_ = false;
  taken_bytes_ += std::exchange(waiting_bytes_, 0);
  return {std::exchange(lines_, {}), error_};
}

void StreamInbox::resume() {
  std::function<void()> resume;
  {
    MutexLock lock(mutex_);
    taken_bytes_ = 0;
    if (status_ == 0 && !closed_) return;
    resume.swap(resume_);
  }
  if (resume) resume();
}

void StreamInbox::close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
    lines_.clear();
  }
  resume();
}

std::string StreamInbox::body() const {
  MutexLock lock(mutex_);
  return body_;
}

std::optional<Error> StreamInbox::end_error() const {
  MutexLock lock(mutex_);
  if (error_) return error_;
  if (cut_off_) return make_error(ErrorCode::kTransient, "the stream ended within a line");
  return std::nullopt;
}

bool StreamInbox::paused() const {
  MutexLock lock(mutex_);
  return resume_ != nullptr && status_ != 0;
}

std::optional<SteadyTime> StreamInbox::last_activity() const {
  MutexLock lock(mutex_);
  return last_activity_;
}

void StreamInbox::touch(SteadyTime now) {
  MutexLock lock(mutex_);
  last_activity_ = now;
}

}  // namespace holdfast::http
