// The descriptors that wake an agent's loop.
#pragma once

#include "core/time.h"

namespace holdfast::agent {

// A timer of CLOCK_BOOTTIME. Throws std::system_error.
int make_timer();
// Readable from this time on.
void set_timer(int timer, SteadyTime due);
// The signals of handled_signals(). Throws std::system_error.
int make_signals();

}  // namespace holdfast::agent
