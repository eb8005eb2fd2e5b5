#include "plugin/ui/ui_verb.h"

#include <fcntl.h>
#include <spawn.h>

#include <array>
#include <cstdlib>

#include "plugin/ui/page_server.h"

extern char** environ;

namespace holdfast::plugin {
namespace {

constexpr const char* kOperatorVariable = "HOLDFAST_OPERATOR_NAMESPACE";

// Without a shell. A machine without a browser says nothing: the address is on the screen.
void open_browser(std::string address) {
  for (const char* const program : {"xdg-open", "open"}) {
    std::string name = program;
    std::array<char*, 3> words = {name.data(), address.data(), nullptr};
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    for (const int stream : {0, 1, 2}) {
      posix_spawn_file_actions_addopen(&quiet, stream, "/dev/null", O_RDWR, 0);
    }
    pid_t child = 0;
    const int error = posix_spawnp(&child, program, &quiet, nullptr, words.data(), environ);
    posix_spawn_file_actions_destroy(&quiet);
    if (error == 0) return;
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
  const std::int64_t port = command.number("port").value_or(0);
  if (port > 65535) return refuse(terminal, command, "--port is 0 to 65535");
  const char* const variable = std::getenv(kOperatorVariable);
  PageServer page(
      api, {*namespace_, command.text("operator-namespace", variable == nullptr ? "" : variable),
            assets()});
  const Result<std::string> address = page.start(static_cast<std::uint16_t>(port));
  if (!address.ok()) {
    return refuse(terminal, command, advice(address.error(), {"list", kJobs, *namespace_, ""}));
  }
  terminal.out("The page is at\n\n  " + *address +
               "\n\nWhoever has this address can do what you may do. Ctrl-C ends it.\n");
  if (!command.has("no-open")) open_browser(*address);
  while (terminal.wait(std::chrono::seconds(1))) {
  }
  return kExitDone;
}

}  // namespace holdfast::plugin
