// Runs one program to its end, without a shell, with bounded output and time. It blocks: use it on
// a thread of its own. Linux.
#pragma once

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::kube {

struct ProgramRun {
  std::string command;  // looked for in PATH if it has no slash
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // on top of our own
  Duration limit = std::chrono::seconds(30);
  std::size_t max_output_bytes = 1u << 20;
};

// An event that stops a run from another thread: a file descriptor that becomes readable.
class StopEvent {
 public:
  StopEvent();
  ~StopEvent();
  StopEvent(const StopEvent&) = delete;
  StopEvent& operator=(const StopEvent&) = delete;
  void set();
  int fd() const { return fd_; }

 private:
  int fd_;
};

// What the program wrote to its standard output when it ended with 0. Its standard input is empty,
// its standard error is ours. kNotFound: there is no such program; kCancelled: stopped; kTransient:
// it ended otherwise, wrote too much, or took too long: it and its children are killed then.
Result<std::string> run_program(const ProgramRun& run, const StopEvent& stop);

}  // namespace holdfast::kube
