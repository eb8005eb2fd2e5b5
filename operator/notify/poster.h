// Sends one message to one target. HttpsPoster implements it; the simulator has its own. Loop only:
// `done` runs on the loop, in a later turn, exactly once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "core/result.h"
#include "core/time.h"
#include "operator/notify/targets.h"

namespace holdfast::notify {

struct Message {
  std::string id;
  std::int64_t timestamp = 0;  // seconds since 1970
  std::string signature;
  std::string body;
};

// The target's answer. Its body is never read.
struct Answer {
  int status = 0;
  std::optional<Duration> retry_after;
};

class Poster {
 public:
  using Done = std::function<void(Result<Answer>)>;
  virtual ~Poster() = default;
  // An error says, in words without secrets, why no answer came within kTryTimeout. kTransient: the
  // target or its network. Anything else: the administrator must correct the target.
  virtual void post(const Target& target, Message message, Done done) = 0;
};

// One try, from the look-up of the name to the head of the answer.
inline constexpr std::chrono::seconds kTryTimeout{15};

}  // namespace holdfast::notify
