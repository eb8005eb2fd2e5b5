// kubectl-holdfast. kubectl runs it for `kubectl holdfast`.
#include <nss.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "plugin/base/cluster_api.h"
#include "plugin/terminal/full_screen.h"
#include "plugin/terminal/std_terminal.h"
#include "plugin/ui/ui_verb.h"
#include "plugin/verbs/completion.h"
#include "plugin/verbs/verbs.h"

namespace {

using namespace holdfast;
using namespace holdfast::plugin;

// What the shells' scripts call: prints what may stand in place of the last word. kubectl calls
// kubectl_complete-holdfast, and wants to know that no file may stand there.
int complete(const std::vector<std::string>& words, bool for_kubectl, Terminal& terminal) {
  ClusterApi api("", "");
  std::string text;
  for (const std::string& word : candidates(words, api)) {
    if (word == ":files" && for_kubectl) return terminal.out(":0\n"), kExitDone;
    text += word + "\n";
  }
  terminal.out(for_kubectl ? text + ":4\n" : text);
  return kExitDone;
}

// A static program must not load the modules that /etc/nsswitch.conf may name: they belong to
// another libc. Its own has /etc/hosts and DNS. And the authorities of public servers are not
// everywhere where Debian's OpenSSL looks for them.
void stand_alone() {
#ifdef HOLDFAST_STATIC
  __nss_configure_lookup("hosts", "files dns");
#endif
  for (const char* const bundle :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    if (::access(bundle, R_OK) != 0) continue;
    ::setenv("SSL_CERT_FILE", bundle, 0);
    return;
  }
}

// The person at the terminal, if there is one: who reads standard error can log in. Standard input
// is the program's for a login, unless the command itself reads it.
std::optional<kube::Login> person(const Command& command) {
  const bool has_terminal = ::isatty(STDIN_FILENO) == 1;
  if (!has_terminal && ::isatty(STDERR_FILENO) != 1) return std::nullopt;
  return kube::Login{has_terminal && command.text("filename") != "-", full_screen::lend,
                     full_screen::take_back};
}

// Ends the process right after its last line, as kubectl does. No destructor runs, neither ours nor
// one of a static: cpprestsdk's threads may still close connections, and would use statics of Asio
// and OpenSSL that are gone.
[[noreturn]] void end(StdTerminal& terminal, int code) { ::_exit(finish(terminal, code)); }

}  // namespace

int main(int argc, char** argv) {
  stand_alone();
  StdTerminal terminal;
  try {
    std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    if (argc > 0 && std::string_view(argv[0]).ends_with("kubectl_complete-holdfast")) {
      end(terminal, complete(words, true, terminal));
    }
    if (!words.empty() && words[0] == "__complete") {
      end(terminal, complete({words.begin() + 1, words.end()}, false, terminal));
    }
    const Result<Command> command = parse_command(words);
    if (!command.ok()) end(terminal, refuse(terminal, {}, command.error().message));
    ClusterApi api(command->text("kubeconfig"), command->text("context"), person(*command));
    // The page calls the other verbs, so it is above them.
    const VerbFunction verb = command->verb == "ui" ? ui : function_of(command->verb);
    const int code = verb(*command, api, terminal);
    // A plugin that asks is in our process group: it would go on to read what the user types.
    api.end_login();
    end(terminal, code);
  } catch (const std::exception& exception) {
    end(terminal, refuse(terminal, {}, std::string("this is a bug: ") + exception.what()));
  }
}
