// The verbs, each a VerbFunction. One file each.
#pragma once

#include "plugin/verb.h"

namespace holdfast::plugin {

int help(const Command& command, Api& api, Terminal& terminal);
int version(const Command& command, Api& api, Terminal& terminal);

// The verb's function. Null: not here yet.
VerbFunction function_of(std::string_view verb);

}  // namespace holdfast::plugin
