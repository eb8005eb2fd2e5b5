// The creations of pods under way, apart from the workers: one that hangs holds up nothing but its
// own job. A namespace has its fair share of them; a job that finds none free waits for its turn
// before its intent is written, so that no intent waits long for its pod.
//
//   if (creations.admits(key)) ...             // may a new pod be asked for now?
//   std::optional<Creations::Slot> slot = creations.take(key);
//   ... the creation holds the slot until its answer is there ...
//   creations.wait(key);                       // else: `turn` names the key when it is its turn
//
// Loop only.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "core/loop.h"
#include "reconciler/types.h"

namespace holdfast::controller {

class Creations {
 public:
  // `each`: how many a namespace alone may have; see FairShare. `turn` is called in a later turn.
  Creations(Loop& loop, int each, std::function<void(const std::string& key)> turn);
  ~Creations();

  // Held for as long as the creation is under way.
  using Slot = std::shared_ptr<void>;

  // Whether take() would give one: it is the job's turn, or one is free and nobody of its namespace
  // waits.
  bool admits(const std::string& key) const;
  Slot take(const std::string& key);
  void wait(const std::string& key);
  // None: it does not wait.
  std::optional<reconciler::TurnWait> waits(const std::string& key) const;
  // The job has been looked at: a turn that it did not use is another's.
  void looked_at(const std::string& key);

  // Nobody gets a turn any more; `on_idle` is called in a later turn once none is under way.
  void stop(std::function<void()> on_idle);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::controller
