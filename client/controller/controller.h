// The calls of a process to each of its controllers: begin, stop, and changes that concern all of
// them. A manager holds a list of controllers. Loop only.
#pragma once

#include <functional>

namespace holdfast::controller {

class Controller {
 public:
  virtual ~Controller() = default;

  // The caches are synced. Called once.
  virtual void begin() = 0;
  // Begins nothing new, and calls `idle` once nothing is in hand. Queued work is left to others.
  virtual void stop(std::function<void()> idle) = 0;

  // This shard was gained, or kept.
  virtual void look_at_all(int shard) = 0;
  // A cache has advanced. Called after time_travelled(), if both are due.
  virtual void on_progress() {}
  // The API server's data was set back (restored from a snapshot): our own writes may never show.
  virtual void time_travelled() = 0;
};

}  // namespace holdfast::controller
