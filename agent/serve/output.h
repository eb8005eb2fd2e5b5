// What commands write, copied to the worker's own stdout or stderr: each line with the attempt that
// wrote it before it.
//
//   Output out(STDOUT_FILENO);
//   int write_end = out.open("[resize-17 3] ");   // give it to the command, and close it
//
// A thread of its own copies. If nobody reads the worker's output, only that thread waits, and then
// the commands that write. The loop never does.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/thread_annotations.h"
#include "core/time.h"

namespace holdfast::agent {

// A longer line goes on in the next one.
inline constexpr std::size_t kMaxLineBytes = 16 << 10;

// Cuts what one stream wrote into lines, each with the prefix and a line break. Pure.
class LinePrefixer {
 public:
  explicit LinePrefixer(std::string prefix) : prefix_(std::move(prefix)) {}

  // The whole lines so far. The rest waits for its line break.
  std::string add(std::string_view text);
  // The last line, if it had no line break.
  std::string finish();

 private:
  const std::string prefix_;
  std::string rest_;
};

// The end of what one command has written to its pipes. Any thread.
class Tail {
 public:
  // `pipes`: how many will be reported to it as closed.
  explicit Tail(int pipes) : open_(pipes) {}

  void add(std::string_view text);
  void close();
  // Its last lines, of at most `limit` bytes. First waits so long for the pipes to be closed. The
  // command's last words may not be copied yet, and a descendant may keep a pipe open.
  std::string lines(std::size_t limit, Duration wait);

 private:
  Mutex mutex_;
  std::condition_variable_any closed_;
  std::string text_ HOLDFAST_GUARDED_BY(mutex_);
  int open_ HOLDFAST_GUARDED_BY(mutex_);
};

class Output {
 public:
  // Starts the thread, as a FileThread does.
  explicit Output(int to);
  // Does not wait for a thread that hangs.
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // A new pipe's end to write to, close-on-exec; -1: no pipe, see errno. `tail` may be null.
  int open(std::string prefix, std::shared_ptr<Tail> tail = nullptr);
  // Returns when all pipes that were opened are copied and closed, or after the limit.
  void finish(Duration limit);

 private:
  struct Shared;
  static void copy(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace holdfast::agent
