// What the verbs share: exit codes, the one line of an error, and the namespace.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "core/result.h"
#include "plugin/api.h"
#include "plugin/command.h"
#include "plugin/terminal.h"

namespace holdfast::plugin {

inline constexpr int kExitDone = 0;
inline constexpr int kExitJobFailed = 1;  // with --wait: the job failed or was cancelled
inline constexpr int kExitRefused = 2;    // wrong input, no rights, no such object, no server

// One verb. Returns the exit code.
using VerbFunction = int (*)(const Command& command, Api& api, Terminal& terminal);

// -n, or the namespace of the context; empty with -A.
Result<std::string> namespace_of(const Command& command, Api& api);

// What a request was about, for its error's line.
struct Subject {
  const char* verb;  // "get", "create": the RBAC verb
  Resource resource;
  std::string namespace_;
  std::string name;  // empty: several
};

// One line that says what to do, without its end.
std::string advice(const Error& error, const Subject& subject);

// The job of the first argument. The error has its line already.
Result<Json> job_of(const Command& command, Api& api);

// Writes "kubectl holdfast VERB: MESSAGE" to standard error and returns kExitRefused.
int refuse(Terminal& terminal, const Command& command, std::string_view message);

}  // namespace holdfast::plugin
