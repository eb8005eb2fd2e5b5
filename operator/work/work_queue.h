// The work queue: keys that must be looked at, each at most once at a time.
//
// As client-go's workqueue: a key that is added while it is processed is handed out again when it
// is done; adds coalesce; of two delays for one key the earlier wins; failures are delayed per key
// (5 ms * 2^n, capped) and by one overall bucket, forgotten on success. Keys go by priority; an add
// of a higher one raises a key, and one that has waited for 5 s takes turns with those above it, so
// that it does not starve. Of one priority the tenants (namespaces) take turns, each in its own
// order. A pending delay stays when the key is added at once: whoever asked for it may have meant
// something else. On the loop; nothing here blocks: `on_ready` is called (in a later turn) when a
// key can be taken.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/loop.h"

namespace holdfast::controller {

enum class Priority {
  kFresh,  // something has happened to a job that is under way, or is due: a verdict may follow
  kStart,  // a job that waits for its first or next attempt
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
  // After a failure: counts it and adds the key after its delay, which is `at_least` this.
  void add_rate_limited(const std::string& key, Duration at_least = Duration::zero(),
                        Priority priority = Priority::kFresh);
  void forget(const std::string& key);

  // The next key of a tenant that is admitted, now being processed; none: nothing is ready. After
  // shut_down() none.
  using Admits = std::function<bool(const std::string& tenant)>;
  std::optional<std::string> take(const Admits& admits = nullptr);
  // Processing of a taken key has ended. Of one that was taken only.
  void done(const std::string& key);

  std::size_t depth() const;  // ready, not taken
  std::size_t processing() const;
  Duration unfinished_work() const;  // the sum over keys in process
  Duration longest_running() const;

  // Nothing is handed out any more, timers and adds are dropped.
  void shut_down();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace holdfast::controller
