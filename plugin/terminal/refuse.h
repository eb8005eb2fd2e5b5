// The last line of a verb that was refused.
#pragma once

#include <string_view>

#include "plugin/base/command.h"
#include "plugin/terminal/terminal.h"

namespace holdfast::plugin {

// Writes "kubectl holdfast VERB: MESSAGE" to standard error and returns kExitRefused.
int refuse(Terminal& terminal, const Command& command, std::string_view message);

}  // namespace holdfast::plugin
