#include "agent/base/signals.h"

#include <array>

namespace holdfast::agent {
namespace {

// Not handled: signals of the agent's own faults, and signals that cannot or must not be caught.
constexpr std::array kNotHandled = {SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,  SIGTRAP, SIGABRT,
                                    SIGSYS,  SIGPIPE, SIGKILL, SIGSTOP, SIGTTIN, SIGTTOU};

}  // namespace

sigset_t handled_signals() {
  sigset_t set;
  sigfillset(&set);
  for (const int number : kNotHandled) sigdelset(&set, number);
  return set;
}

void block_signals() {
  const sigset_t set = handled_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
}

bool asks_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace holdfast::agent
