#include "plugin/ui/ui_verb.h"

#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "plugin/base/installation.h"
#include "plugin/terminal/cells.h"
#include "plugin/ui/actions.h"
#include "plugin/ui/page_server.h"

extern char** environ;

namespace holdfast::plugin {
namespace {

// A file that leads to the page, for this user alone: an address among a program's arguments can be
// read by everybody. It is gone when the page ends.
class Door {
 public:
  explicit Door(const std::string& address) {
    const char* const folder = std::getenv("XDG_RUNTIME_DIR");
    path_ = std::string(folder ? folder : "/tmp") + "/holdfast-XXXXXX.html";
    constexpr int kSuffix = 5;
    const int file = ::mkstemps(path_.data(), kSuffix);  // mode 0600
    if (file < 0) {
      path_.clear();
      return;
    }
    const std::string page = "<!doctype html><meta http-equiv=refresh content=\"0;url=" + address +
                             "\"><a href=\"" + address + "\">The page</a>\n";
    const bool is_whole =
        ::write(file, page.data(), page.size()) == static_cast<ssize_t>(page.size());
    ::close(file);
    if (!is_whole) remove();
  }
  ~Door() { remove(); }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // Without a shell. A machine without a browser says nothing: the address is on the screen.
  void open() {
    if (path_.empty()) return;
    for (const char* const program : {"xdg-open", "open"}) {
      std::string name = program;
      std::array<char*, 3> words = {name.data(), path_.data(), nullptr};
      // A browser that it starts is not in our group: Ctrl-C ends the page and not the browser.
      posix_spawnattr_t own;
      posix_spawnattr_init(&own);
      posix_spawnattr_setflags(&own, POSIX_SPAWN_SETSID);
      posix_spawn_file_actions_t quiet;
      posix_spawn_file_actions_init(&quiet);
      for (const int stream : {0, 1, 2}) {
        posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_RDWR, 0);
      }
      pid_t child = 0;
      const int error = posix_spawnp(&child, program, &quiet, &own, words.data(), environ);
      posix_spawn_file_actions_destroy(&quiet);
      posix_spawnattr_destroy(&own);
      if (error == 0) return;
    }
  }

 private:
  void remove() {
    if (!path_.empty()) ::unlink(path_.c_str());
    path_.clear();
  }

  std::string path_;  // empty: there is none
};

int told_to_end[2] = {-1, -1};  // a pipe

void end(int signal) {
  std::signal(signal, SIG_DFL);  // a second one is not waited for
  const char byte = 0;
  // A full pipe has been told already.
  [[maybe_unused]] const ssize_t written = ::write(told_to_end[1], &byte, 1);
}

// Until Ctrl-C, or another signal that ends a program.
void wait_for_the_end() {
  char byte = 0;
  while (::read(told_to_end[0], &byte, 1) < 0 && errno == EINTR) {
  }
}

}  // namespace

int ui(const Command& command, Api& api, Terminal& terminal) {
  if (assets().empty()) {
    return refuse(terminal, command,
                  "this program was built without the page: take that of a release, or build it "
                  "with make plugin");
  }
  const Result<std::string> namespace_ = namespace_of(command, api);
  if (!namespace_.ok()) return refuse(terminal, command, namespace_.error().message);
  if (!namespace_->empty() && !is_object_name(*namespace_)) {
    return refuse(terminal, command, "'" + *namespace_ + "' cannot be a namespace: give its name");
  }
  const std::int64_t port = command.number("port").value_or(0);
  if (port > 65535) return refuse(terminal, command, "--port is 0 to 65535");
  if (::pipe2(told_to_end, O_CLOEXEC) != 0) {
    return refuse(terminal, command, std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  std::string where;
  for (const char* const flag : {"context", "kubeconfig"}) {
    if (!command.has(flag)) continue;
    where +=
        (where.empty() ? "--" : " --") + std::string(flag) + " " + shell_word(command.text(flag));
  }
  const PageServer::Options options{*namespace_, operator_namespace(command), assets(), where,
                                    command.text("context")};
  auto page = std::make_unique<PageServer>(api, options);
  const Result<std::string> address = page->start(static_cast<std::uint16_t>(port));
  if (!address.ok()) {
    return refuse(terminal, command, advice(address.error(), {"list", kJobs, *namespace_, ""}));
  }
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, end);
  terminal.out(
      "The page is at\n\n  " + *address +
      "\n\nOpen this address if no browser shows it. Whoever has it can do what you may do. "
      "Ctrl-C ends the page.\n");
  std::optional<Door> door;
  if (!command.has("no-open")) door.emplace(*address).open();
  wait_for_the_end();
  // Its handlers may wait for the API server for a minute, and the user does not: the process ends
  // without destructors (main.cc).
  [[maybe_unused]] const PageServer* const left = page.release();
  return kExitDone;
}

}  // namespace holdfast::plugin
