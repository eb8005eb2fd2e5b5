// The creations of pods in progress. They use no workers, so a hanging creation delays only its own
// job. Each namespace has a fair share of slots. A job without a slot waits for its turn before its
// intent is written, so that no intent waits long for its pod.
//
//   if (creations.admits(key)) ...             // may a new pod be asked for now?
//   std::optional<Creations::Slot> slot = creations.take(key);
//   ... the creation holds the slot until its answer is there ...
//   creations.wait(key);                       // else: `turn` names the key when it is its turn
//
// A job with many runs records several intents in one turn. Their other creations get their slots
// one after the other, in the same line:
//
//   const auto ticket = creations.queue(key, [](Slot slot) { ... });
//
// Loop only.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "core/loop.h"
#include "reconciler/types.h"

namespace holdfast::jobs {

class Creations {
 public:
  // `each`: the most for a single namespace; see FairShare. `turn` runs in a later turn of the
  // loop.
  Creations(Loop& loop, int each, std::function<void(const std::string& key)> turn);
  ~Creations();

  // Hold it while the creation is in progress.
  using Slot = std::shared_ptr<void>;

  // True if take() would succeed: it is the job's turn, or a slot is free and no job of its
  // namespace waits.
  bool admits(const std::string& key) const;
  Slot take(const std::string& key);
  void wait(const std::string& key);
  // `begin` runs once, in a later turn of the loop. Its slot is null after stop() or withdraw().
  using Ticket = std::uint64_t;
  Ticket queue(const std::string& key, std::function<void(Slot)> begin);
  void withdraw(Ticket ticket);
  // None: the job does not wait.
  std::optional<reconciler::TurnWait> waits(const std::string& key) const;
  // It is the job's turn, and it has not taken it yet.
  bool has_turn(const std::string& key) const;
  // The job was reconciled. If it did not use its turn, another job gets it.
  void looked_at(const std::string& key);

  // From now on no job gets a turn. `on_idle` runs in a later turn of the loop, once no creation is
  // in progress.
  void stop(std::function<void()> on_idle);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::jobs
