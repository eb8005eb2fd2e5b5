// What has become of the command of a slot, and of its processes.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace holdfast::agent {

struct Progressed {
  std::string message;
};
// Numbers of a slot's attempt rise from one. The renewal that carries it comes soon.
struct Checkpointed {
  std::int64_t number = 0;
  std::string text;
};
// The command was to start, and never began: there was no time, process or descriptor for it.
struct Missed {};
// If the command does not exist or is not executable, that is its end, too.
struct Ended {
  int exit_code = 0;
  std::string result;
};
// No process of the slot is left. This comes even if the command left none.
struct AllDead {};

using SlotEvent = std::variant<Progressed, Checkpointed, Missed, Ended, AllDead>;

}  // namespace holdfast::agent
