// The terminal's alternate screen, without a cursor: there is one for the process. Whatever stops
// or ends the process gives the user's own screen back first: a signal that a user, a shell or a
// crash sends. A process that goes on after Ctrl-Z has its screen again, but only in the
// foreground. In the background it would write over the shell's lines.
//
//   full_screen::draw(STDOUT_FILENO, frame);
//   full_screen::leave();
//
// One thread calls draw() and leave(). Signals that the process's parent has made it ignore stay
// ignored.
#pragma once

#include <string_view>

namespace holdfast::plugin::full_screen {

// Writes a frame to this terminal's alternate screen, and takes that before. Returns 0, or the
// errno of what could not be written. In the background the process stops first, as under `stty
// tostop`. After that the call draws only if the process is in the foreground by then.
int draw(int terminal, std::string_view frame);

// Gives the user's screen back, if draw() has taken it.
void leave();

// In between, the user's screen is shown, and draw() does nothing: somebody else asks the user. Any
// thread. take_back() also restores the terminal's settings, such as echo: who asked may have been
// killed in the middle.
void lend();
void take_back();

// 0, or the errno of what could not be written. A signal handler may call it.
int write_all(int descriptor, std::string_view text);

}  // namespace holdfast::plugin::full_screen
