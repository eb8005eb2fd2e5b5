// kubectl-holdfast. kubectl runs it for `kubectl holdfast`.
#include <exception>
#include <string>
#include <vector>

#include "plugin/cluster_api.h"
#include "plugin/std_terminal.h"
#include "plugin/verbs.h"

int main(int argc, char** argv) {
  using namespace holdfast;
  using namespace holdfast::plugin;
  StdTerminal terminal;
  try {
    const Result<Command> command =
        parse_command(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
    if (!command.ok()) return refuse(terminal, {}, command.error().message);
    ClusterApi api(command->text("kubeconfig"), command->text("context"));
    const VerbFunction run = function_of(command->verb);
    if (run == nullptr) return refuse(terminal, *command, "this build has no such command yet");
    return run(*command, api, terminal);
  } catch (const std::exception& exception) {
    return refuse(terminal, {}, std::string("this is a bug: ") + exception.what());
  }
}
