// Reads the job that a user gives in a file. Errors say in one line what to do.
#pragma once

#include <string>

#include "core/json.h"
#include "core/result.h"
#include "plugin/base/command.h"
#include "plugin/terminal/terminal.h"

namespace holdfast::plugin {

// The most bytes that the API server takes: a longer file is no job.
inline constexpr std::size_t kMaxManifestBytes = 3u << 20;

// The only object in the file of -f. `verb`: for the words of an error.
Result<Json> read_manifest(const Command& command, Terminal& terminal);

// Why this is no DurableJob that can be submitted; no error: it is one.
Result<> check_job(const Json& object);

}  // namespace holdfast::plugin
