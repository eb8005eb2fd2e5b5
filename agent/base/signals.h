// The signals of an agent's process.
#pragma once

#include <csignal>

namespace holdfast::agent {

// The signals that the agent reads from a descriptor: the signals that it forwards to the child,
// and SIGCHLD.
sigset_t handled_signals();
// Blocks these signals, and ignores SIGPIPE (a lost reader of stderr must not end the agent).
void block_signals();
// Whether this signal asks the agent to end.
bool asks_to_end(int signal);

}  // namespace holdfast::agent
