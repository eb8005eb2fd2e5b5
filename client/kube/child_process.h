// Runs one program to its end, without a shell, with bounded output. Blocks, so give it its own
// thread. Linux only.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "core/time.h"

namespace holdfast::kube {

// Who is at our terminal for the program.
enum class Person {
  kNobody,   // it has a process group of its own, and reads nothing
  kReader,   // somebody reads what it writes: it has our process group, so it may use /dev/tty
  kAnswers,  // and answers it: it has our standard input, too
};

struct ProgramRun {
  std::string command;  // searched in PATH if it has no slash
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  // added to ours
  std::optional<Duration> limit = std::chrono::seconds(30);      // none: a person takes any time
  Person person = Person::kNobody;
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

// The program's standard output, if it exits with 0. Its standard error is ours. Errors:
// - kNotFound: there is no such program.
// - kCancelled: `stop` was set.
// - kTransient: another exit code, too much output, or too slow. A program that is stopped, too
//   slow or too loud is killed, with its children if its process group is its own.
Result<std::string> run_program(const ProgramRun& run, const StopEvent& stop);

}  // namespace holdfast::kube
