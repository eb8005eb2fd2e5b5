// What the verbs share: the one line of an error, and the namespace.
#pragma once

#include <string>
#include <string_view>

#include "core/json.h"
#include "core/result.h"
#include "plugin/base/api.h"
#include "plugin/base/command.h"
#include "plugin/base/exit_codes.h"
#include "plugin/terminal/refuse.h"
#include "plugin/terminal/terminal.h"

namespace holdfast::plugin {

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

}  // namespace holdfast::plugin
