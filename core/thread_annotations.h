// A mutex whose use Clang checks at compile time (-Wthread-safety). Members marked with
// HOLDFAST_GUARDED_BY can be used only where a MutexLock is in scope. Other compilers see a plain
// mutex.
//
//   Mutex mutex_;
//   std::vector<Callback> posted_ HOLDFAST_GUARDED_BY(mutex_);
//
// Nothing above http/ has a lock.
#pragma once

#include <mutex>

#if defined(__clang__)
#define HOLDFAST_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define HOLDFAST_THREAD_ATTRIBUTE(x)
#endif

#define HOLDFAST_GUARDED_BY(mutex) HOLDFAST_THREAD_ATTRIBUTE(guarded_by(mutex))
// The caller holds the mutex.
#define HOLDFAST_REQUIRES(mutex) HOLDFAST_THREAD_ATTRIBUTE(requires_capability(mutex))
// The caller must not hold the mutex: the function takes it, or runs foreign callbacks.
#define HOLDFAST_EXCLUDES(mutex) HOLDFAST_THREAD_ATTRIBUTE(locks_excluded(mutex))

namespace holdfast {

// Works with std::condition_variable_any.
class HOLDFAST_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  void lock() HOLDFAST_THREAD_ATTRIBUTE(acquire_capability()) { mutex_.lock(); }
  void unlock() HOLDFAST_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

class HOLDFAST_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) HOLDFAST_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() HOLDFAST_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace holdfast
