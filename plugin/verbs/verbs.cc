#include "plugin/verbs/verbs.h"

#include <utility>

namespace holdfast::plugin {

int help(const Command& command, Api&, Terminal& terminal) {
  const std::string verb = command.arguments.empty() ? "" : command.arguments[0];
  if (!verb.empty() && find_verb(verb) == nullptr) {
    return refuse(terminal, command,
                  "there is no command '" + verb + "'; kubectl holdfast --help lists the commands");
  }
  terminal.out(help_text(verb));
  return kExitDone;
}

int version(const Command&, Api&, Terminal& terminal) {
  terminal.out("kubectl-holdfast " HOLDFAST_VERSION "\n");
  return kExitDone;
}

VerbFunction function_of(std::string_view verb) {
  static constexpr std::pair<std::string_view, VerbFunction> kFunctions[] = {
      {"submit", submit},         {"logs", logs},       {"retry", retry},
      {"cancel", cancel},         {"suspend", suspend}, {"resume", resume},
      {"completion", completion}, {"help", help},       {"version", version},
      {"explain", explain},       {"top", top},         {"convert", convert},
      {"report", report},
  };
  for (const auto& [name, function] : kFunctions) {
    if (name == verb) return function;
  }
  return nullptr;
}

}  // namespace holdfast::plugin
