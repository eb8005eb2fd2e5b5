#include "client/kube/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <system_error>

extern char** environ;

namespace holdfast::kube {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

Error failure(const std::string& command, const std::string& what,
              ErrorCode code = ErrorCode::kTransient) {
  return make_error(code, "\"" + command + "\" " + what);
}

Error system_failure(const std::string& command, const std::string& what, int number) {
  const ErrorCode code = number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kTransient;
  return failure(command, what + ": " + std::generic_category().message(number), code);
}

std::vector<std::string> full_environment(const ProgramRun& run) {
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : run.environment) values[name] = value;
  std::vector<std::string> entries;
  entries.reserve(values.size());
  for (const auto& [name, value] : values) entries.emplace_back(name).append("=").append(value);
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// Without a person the program gets its own process group, so that its children can be killed with
// it. With one it has ours: only the terminal's foreground group may use the terminal, and Ctrl-C
// and Ctrl-Z are for both. No signal is blocked or ignored. It inherits none of our descriptors
// (cpprestsdk's sockets are not close-on-exec).
int spawn(const ProgramRun& run, int output, pid_t& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  if (run.person != Person::kAnswers) {
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  }
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  sigset_t none;
  sigemptyset(&none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  const int group = run.person == Person::kNobody ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  std::vector<std::string> arguments = {run.command};
  arguments.insert(arguments.end(), run.arguments.begin(), run.arguments.end());
  std::vector<std::string> environment = full_environment(run);
  const int error = posix_spawnp(&pid, run.command.c_str(), &actions, &attributes,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

enum class Ending { kExited, kTooMuchOutput, kTooLong, kStopped };

// Reads the available output. False: end of output.
bool read_some(int fd, std::string& output) {
  char block[16 << 10];
  const ssize_t count = ::read(fd, block, sizeof block);
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  output.append(block, static_cast<std::size_t>(count));
  return count > 0;
}

// Runs until the program ends. Does not wait for output of its children after that.
Ending follow(const ProgramRun& run, int process, FileDescriptor& pipe, const StopEvent& stop,
              std::string& output) {
  using std::chrono::milliseconds;
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {
    milliseconds left{-1};  // any time
    if (run.limit) {
      left = std::chrono::ceil<milliseconds>(begun + *run.limit - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Ending::kTooLong;
    }
    pollfd events[] = {{process, POLLIN, 0}, {stop.fd(), POLLIN, 0}, {pipe.get(), POLLIN, 0}};
    const int count = ::poll(events, 3, static_cast<int>(left.count()));
    if (count < 0 && errno != EINTR) return Ending::kStopped;
    if (count <= 0) continue;
    if (events[1].revents != 0) return Ending::kStopped;
    // Output first: it is all in the pipe when the program has ended.
    if (events[2].revents != 0) {
      if (!read_some(pipe.get(), output)) pipe.reset();
      if (output.size() > run.max_output_bytes) return Ending::kTooMuchOutput;
    } else if (events[0].revents != 0) {
      return Ending::kExited;
    }
  }
}

Result<std::string> judge(const ProgramRun& run, Ending ending, int status, std::string output) {
  switch (ending) {
    case Ending::kStopped:
      return failure(run.command, "was stopped", ErrorCode::kCancelled);
    case Ending::kTooLong:
      return failure(run.command,
                     "did not end within " + human_duration(run.limit.value_or(Duration::zero())));
    case Ending::kTooMuchOutput:
      return failure(run.command,
                     "wrote more than " + std::to_string(run.max_output_bytes) + " bytes");
    case Ending::kExited:
      break;
  }
  if (WIFSIGNALED(status)) {
    return failure(run.command, "was ended by signal " + std::to_string(WTERMSIG(status)));
  }
  const int code = WEXITSTATUS(status);
  if (code != 0) return failure(run.command, "ended with exit code " + std::to_string(code));
  return output;
}

}  // namespace

StopEvent::StopEvent() : fd_(::eventfd(0, EFD_CLOEXEC)) {}
StopEvent::~StopEvent() {
  if (fd_ >= 0) ::close(fd_);
}
void StopEvent::set() {
  const std::uint64_t one = 1;
  // Cannot fail: the counter is far from its end.
  [[maybe_unused]] const ssize_t written = ::write(fd_, &one, sizeof one);
}

Result<std::string> run_program(const ProgramRun& run, const StopEvent& stop) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return system_failure(run.command, "cannot be started", errno);
  FileDescriptor reading(ends[0]);
  FileDescriptor writing(ends[1]);
  pid_t pid = 0;
  const int error = spawn(run, writing.get(), pid);
  if (error != 0) return system_failure(run.command, "cannot be started", error);
  writing.reset();
  // glibc 2.36's sys/pidfd.h cannot be used from C++.
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  std::string output;
  const Ending ending =
      process.get() < 0 ? Ending::kStopped : follow(run, process.get(), reading, stop, output);
  // Not yet reaped, so no other process or group can have the number.
  if (ending != Ending::kExited) ::kill(run.person == Person::kNobody ? -pid : pid, SIGKILL);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return judge(run, ending, status, std::move(output));
}

}  // namespace holdfast::kube
