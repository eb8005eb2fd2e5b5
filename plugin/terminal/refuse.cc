#include "plugin/terminal/refuse.h"

#include <string>

#include "core/utf8.h"
#include "plugin/base/exit_codes.h"

namespace holdfast::plugin {

int refuse(Terminal& terminal, const Command& command, std::string_view message) {
  std::string line = "kubectl holdfast";
  if (!command.verb.empty()) line += " " + command.verb;
  line += ": ";
  // One line that the terminal only shows, whatever the server or a tenant wrote.
  constexpr std::size_t kMaxLine = 4096;
  terminal.err(line + clean_text(message, kMaxLine) + "\n");
  return kExitRefused;
}

}  // namespace holdfast::plugin
