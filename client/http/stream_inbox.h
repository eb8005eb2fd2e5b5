// The buffer between the I/O thread that reads a stream and the loop that handles its lines. The
// I/O thread splits bytes into lines, or into frames with their lengths in front, and decodes them.
// It stops reading while too many bytes wait for the loop.
//
// I/O threads call feed() and set_status(), never two at a time. The loop calls everything else. An
// I/O thread calls `wake` when there is something to take, once until the loop takes it.
#pragma once

#include <any>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "core/thread_annotations.h"
#include "core/time.h"

namespace holdfast::http {

class StreamInbox {
 public:
  enum class Framing {
    kLines,
    kFrames,  // each: four bytes with its length, the highest first, and then its bytes
  };
  struct Config {
    std::size_t max_line_bytes;
    std::size_t max_waiting_bytes;  // reading pauses above this
    std::function<std::any(std::string_view line)> decode;
    std::function<void()> wake;
  };
  explicit StreamInbox(Config config) : config_(std::move(config)) {}

  // Does not keep `data`. False: the reader must wait until `resume` runs, once, on another thread.
  bool feed(const char* data, std::size_t size, std::function<void()> resume, SteadyTime now);

  // The response's status. Bytes that came earlier wait for it. If it is not 200, the bytes are the
  // body, and the first 64 KiB are kept.
  void set_status(int status, Framing framing = Framing::kLines);

  struct Batch {
    std::vector<std::any> lines;
    std::optional<Error> error;  // the last batch
  };
  Batch take();

  // The loop has handled the batch: the reader may go on.
  void resume();

  // The loop stops reading. Releases a waiting reader.
  void close();

  // After the end: the body for a status that is not 200, or the error if a line was cut off.
  std::string body() const;
  std::optional<Error> end_error() const;

  bool paused() const;
  // When bytes last came, or the reader was last released. No value before that.
  std::optional<SteadyTime> last_activity() const;
  void touch(SteadyTime now);

 private:
  void split(const char* data, std::size_t size);
  void split_lines(const char* data, std::size_t size);
  void split_frames(const char* data, std::size_t size);
  void push(std::string_view line);
  Error too_long() const;
  void fail(Error error);

  const Config config_;

  // The I/O thread's.
  std::string partial_;  // the beginning of a line, or bytes that came before the head
  Framing framing_ = Framing::kLines;  // set before the status

  // Shared.
  mutable Mutex mutex_;
  int status_ HOLDFAST_GUARDED_BY(mutex_) = 0;  // 0: not known yet
  bool closed_ HOLDFAST_GUARDED_BY(mutex_) = false;
  bool woken_ HOLDFAST_GUARDED_BY(mutex_) = false;
  std::vector<std::any> lines_ HOLDFAST_GUARDED_BY(mutex_);
  std::size_t waiting_bytes_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::size_t taken_bytes_ HOLDFAST_GUARDED_BY(mutex_) = 0;
  std::string body_ HOLDFAST_GUARDED_BY(mutex_);
  bool cut_off_ HOLDFAST_GUARDED_BY(mutex_) = false;
  std::optional<Error> error_ HOLDFAST_GUARDED_BY(mutex_);
  std::function<void()> resume_ HOLDFAST_GUARDED_BY(mutex_);
  std::optional<SteadyTime> last_activity_ HOLDFAST_GUARDED_BY(mutex_);
};

}  // namespace holdfast::http
