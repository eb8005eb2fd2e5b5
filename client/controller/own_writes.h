// This process's own writes, until the watches show them. A decision on a cache from before an own
// write would repeat or undo that write.
//
// - raise() keeps the version of the last own write of a kind. A cache shows the write once its
//   version is as high (cache::Informer::version()).
// - OwnWrite<T> is the newest state of one object: from the cache, or from the own write.
// - OwnWriteWait is how long one key waits for the caches before its next look.
// - OwnWrites are the keys and coroutines of one controller that wait for the caches.
//
//   raise(memory.version, *answer);
//   ... the next reconcile ...
//   cache::Informer* const behind = memory.version > jobs.version(ns) ? &jobs : nullptr;
//   if (behind) own_writes.wake_when_shown(key);
//   result.wake_after = memory.wait.left(behind, ns, {{"job", key}}, loop.now());
//
// When the server's data was set back, the versions of own writes are void. Set them to zero, and
// call OwnWrite::forget().
//
// Loop only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "client/cache/informer.h"
#include "core/json_view.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"

namespace holdfast::controller {

// A watch that has not shown our own write after this time lags.
inline constexpr std::chrono::seconds kOwnWriteTimeout{5};

// Raises `version` to the version of the object in an answer. `version` never falls.
void raise(std::uint64_t& version, const JsonView& object);

template <class T>
class OwnWrite {
 public:
  // The API server has accepted this state, as this version of the object.
  void accepted(T state, std::uint64_t version) {
    state_ = std::move(state);
    version_ = version;
  }
  // Zero: no state.
  std::uint64_t version() const { return version_; }
  const T& state() const { return state_; }
  // The cache's version of the object (zero: none) is from before the write.
  bool is_newer_than(std::uint64_t cached) const { return cached < version_; }
  // The newest state that is known. `version`: of `cached`.
  const T& newest(const T& cached, std::uint64_t version) const {
    return is_newer_than(version) ? state_ : cached;
  }
  // The object is another one now, or the server's data was set back.
  void forget() { *this = OwnWrite(); }

 private:
  T state_{};
  std::uint64_t version_ = 0;
};

class OwnWriteWait {
 public:
  // Zero: act. Else look again after this time, or sooner. `behind`: the first cache that does not
  // show the key's own writes yet; null: all do. After each kOwnWriteTimeout it calls the cache's
  // watch_lags() with `seen`, which names the key for the log.
  Duration left(cache::Informer* behind, const std::string& namespace_, Log::Fields seen,
                SteadyTime now);

 private:
  std::optional<SteadyTime> since_;
};

class OwnWrites {
 public:
  using IsShown = std::function<bool(const std::string& key)>;
  using Wake = std::function<void(const std::string& key)>;
  // `is_shown`: the caches show all own writes for the key, or nobody remembers any.
  OwnWrites(Loop& loop, IsShown is_shown, Wake wake);
  ~OwnWrites();
  OwnWrites(const OwnWrites&) = delete;
  OwnWrites& operator=(const OwnWrites&) = delete;

  // `wake` gets the key once, when a cache advances and its own writes are shown.
  void wake_when_shown(const std::string& key) { keys_.insert(key); }
  // Ends once `is_shown` holds, after kOwnWriteTimeout, or at stop().
  Task<void> shown(std::function<bool()> is_shown);
  // A cache has advanced.
  void on_progress();
  // Ends the waits in progress, and those that begin later.
  void stop();

 private:
  struct Waiter {
    std::function<bool()> is_shown;
    std::function<void(Unit)> done;
    TimerId timer = 0;
  };
  std::list<Waiter>::iterator end(std::list<Waiter>::iterator waiter);

  Loop& loop_;
  const IsShown is_shown_;
  const Wake wake_;
  std::unordered_set<std::string> keys_;
  std::list<Waiter> waiters_;
  bool stopped_ = false;
};

}  // namespace holdfast::controller
