// The terminal's alternate screen, without a cursor: there is one for the process. Whatever stops
// or ends the process gives the user's own screen back first: a signal that a user, a shell or a
// crash sends. A process that goes on after Ctrl-Z has its screen again, but only in the
// foreground: in the background it would write over what the shell shows.
//
//   if (full_screen::enter(STDOUT_FILENO)) write(frame);
//   full_screen::leave();
//
// One thread draws, and it is the one that calls these functions. Signals that the process's parent
// has made it ignore stay ignored.
#pragma once

#include <string_view>

namespace holdfast::plugin::full_screen {

// Shows it on this terminal, if it is not shown yet. False: the process is in the background, and
// nothing may be drawn. Then the process stops, as the kernel stops one that writes to a terminal
// with `stty tostop`; the call returns after that.
bool enter(int terminal);

// Gives the user's screen back, if enter() has taken it.
void leave();

// 0, or the errno of what could not be written. A signal handler may call it.
int write_all(int descriptor, std::string_view text);

}  // namespace holdfast::plugin::full_screen
