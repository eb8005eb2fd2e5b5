// The verbs, each a VerbFunction. One file each.
#pragma once

#include "plugin/verbs/verb.h"

namespace holdfast::plugin {

int submit(const Command& command, Api& api, Terminal& terminal);
int logs(const Command& command, Api& api, Terminal& terminal);
int retry(const Command& command, Api& api, Terminal& terminal);
int cancel(const Command& command, Api& api, Terminal& terminal);
int suspend(const Command& command, Api& api, Terminal& terminal);
int resume(const Command& command, Api& api, Terminal& terminal);
int completion(const Command& command, Api& api, Terminal& terminal);
int explain(const Command& command, Api& api, Terminal& terminal);
int top(const Command& command, Api& api, Terminal& terminal);
int convert(const Command& command, Api& api, Terminal& terminal);
int report(const Command& command, Api& api, Terminal& terminal);
int help(const Command& command, Api& api, Terminal& terminal);
int version(const Command& command, Api& api, Terminal& terminal);

// The function of a verb of the table (command.h); null for any other name, and for `ui`, which
// calls the others (plugin/ui).
VerbFunction function_of(std::string_view verb);

}  // namespace holdfast::plugin
