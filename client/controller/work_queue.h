// The work queue: keys that must be looked at, each at most once at a time. It works as
// client-go's:
//
// - A key added while it is processed is handed out again when it is done. Adds coalesce.
// - Of two delays for one key the earlier wins. A pending delay stays when the key is added at
//   once, because it may have another reason.
// - Failures delay each key (5 ms * 2^n, capped), and one bucket limits them all. Tenants that fail
//   have equal parts of it, so that one with many failures delays no other. A success forgets them.
// - Keys have priorities. An add with a higher priority raises the key. After a wait of 5 s a key
//   takes turns with higher priorities, so that it does not starve.
// - Within a priority the tenants (namespaces) take turns, each in its own order.
//
// Loop only, and nothing blocks. `on_ready` runs in a later turn when a key can be taken.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/loop.h"

namespace holdfast::controller {

enum class Priority {
  kFresh,  // a running job has an event or is due: a verdict may follow
  kStart,  // a job waits for its first or next attempt
  kLow,    // lists and resyncs
};
inline constexpr std::size_t kPriorities = 3;

class WorkQueue {
 public:
  struct Config {
    Duration base_delay = std::chrono::milliseconds(5);
    Duration max_delay = std::chrono::seconds(30);
    double failures_per_second = 50;  // the overall bucket
    double failure_burst = 200;
  };
  struct Metrics {  // any may be empty
    std::function<void()> on_add;
    std::function<void()> on_retry;
    std::function<void(Duration queued)> on_take;
    std::function<void(Duration worked)> on_done;
  };

  WorkQueue(Loop& loop, Config config, std::function<void()> on_ready, Metrics metrics = {});
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(const std::string& key, Priority priority = Priority::kFresh);
  void add_after(const std::string& key, Duration delay, Priority priority = Priority::kFresh);
  // Counts a failure and adds the key after its delay, which is `at_least` or longer.
  void add_rate_limited(const std::string& key, Duration at_least = Duration::zero(),
                        Priority priority = Priority::kFresh);
  void forget(const std::string& key);

  // Takes the next key of an admitted tenant for processing. None: nothing is ready, or after
  // shut_down().
  using Admits = std::function<bool(const std::string& tenant)>;
  std::optional<std::string> take(const Admits& admits = nullptr);
  // Processing of a taken key has ended.
  void done(const std::string& key);

  std::size_t depth() const;  // ready, not taken
  std::size_t processing() const;
  Duration unfinished_work() const;  // the sum over keys in process
  Duration longest_running() const;

  // Hands out no further key, and drops timers and adds.
  void shut_down();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::controller
