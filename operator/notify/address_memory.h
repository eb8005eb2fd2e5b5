// Which addresses of a target have failed lately. They are tried last, so that a dead one of
// several does not take the time of each try. Pure; the target's thread.
#pragma once

#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "core/time.h"

namespace holdfast::notify {

class AddressMemory {
 public:
  // Those that have failed lately come last, the oldest failure first of them. The others keep
  // their order.
  std::vector<std::string> in_order(std::vector<std::string> addresses, SteadyTime now) const;
  void failed(const std::string& address, SteadyTime now);
  void worked(const std::string& address);

  // An address may be back after that time.
  static constexpr std::chrono::minutes kRemembered{10};
  // A name can lead to others each time.
  static constexpr std::size_t kMost = 64;

 private:
  std::deque<std::pair<std::string, SteadyTime>> failures_;  // oldest first
};

}  // namespace holdfast::notify
