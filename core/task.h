// Coroutines on the loop. Task<T> is a chain of asynchronous steps that reads like sequential code.
// It starts when it is awaited, or by spawn(). One thread, so no locks.
//
//   Task<Result<Response>> fetch(Client& client) {
//     auto request = client.send(...);          // name the operand: GCC 12 miscompiles some
//     auto response = co_await request;         // co_await expressions with temporaries
//     co_return response;
//   }
//
// A Task that is awaited must be an lvalue (the compiler refuses a temporary) and outlive the
// await. Everything that a coroutine awaits must complete, also at shutdown (a cancelled request
// answers too). Frames are never destroyed half-way.
#pragma once

#include <coroutine>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

namespace holdfast {

template <class T>
class Task;

namespace internal {

struct TaskPromiseBase {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::exception_ptr exception;

  std::suspend_always initial_suspend() noexcept { return {}; }
  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> handle) noexcept {
      return handle.promise().continuation;
    }
    void await_resume() noexcept {}
  };
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() { exception = std::current_exception(); }
};

template <class T>
struct TaskPromise : TaskPromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& result) {
    value.emplace(std::forward<U>(result));
  }
  T take() {
    if (exception) std::rethrow_exception(exception);
    return std::move(*value);
  }
};

template <>
struct TaskPromise<void> : TaskPromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {
    if (exception) std::rethrow_exception(exception);
  }
};

}  // namespace internal

template <class T = void>
class [[nodiscard]] Task {
 public:
  using promise_type = internal::TaskPromise<T>;

  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  Task& operator=(Task&&) = delete;
  ~Task() {
    if (handle_) handle_.destroy();
  }

  struct Awaiter {
    std::coroutine_handle<promise_type> handle;
    bool await_ready() const noexcept { return handle.done(); }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> caller) noexcept {
      handle.promise().continuation = caller;
      return handle;
    }
    T await_resume() { return handle.promise().take(); }
  };
  Awaiter operator co_await() & noexcept { return Awaiter{handle_}; }

 private:
  std::coroutine_handle<promise_type> handle_;
};

namespace internal {

template <class T>
Task<T> TaskPromise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<TaskPromise<T>>::from_promise(*this));
}
inline Task<void> TaskPromise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<TaskPromise<void>>::from_promise(*this));
}

struct Detached {
  struct promise_type {
    Detached get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() { std::terminate(); }
  };
};

}  // namespace internal

// Starts the task now, without a caller that awaits it. At its end `done` runs on the loop, with
// the exception that left the task, or null.
inline internal::Detached spawn(Task<void> task,
                                std::function<void(std::exception_ptr)> done = nullptr) {
  std::exception_ptr exception;
  try {
    co_await task;
  } catch (...) {
    exception = std::current_exception();
  }
  if (done) {
    done(exception);
  } else if (exception) {
    std::rethrow_exception(exception);
  }
}

// Makes a callback API awaitable:
//   Callback<Result<Response>> answer([&](auto done) { transport.send(request, done); });
//   auto response = co_await answer;
// Call `done` exactly once, on the loop, and not inside `start`.
template <class T>
class Callback {
 public:
  using Done = std::function<void(T)>;
  explicit Callback(std::function<void(Done)> start) : start_(std::move(start)) {}
  Callback(const Callback&) = delete;
  Callback& operator=(const Callback&) = delete;

  struct Awaiter {
    Callback* self;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> caller) {
      Callback* const callback = self;
      callback->start_([callback, caller](T value) {
        callback->value_.emplace(std::move(value));
        caller.resume();
      });
    }
    T await_resume() { return std::move(*self->value_); }
  };
  Awaiter operator co_await() & noexcept { return Awaiter{this}; }

 private:
  std::function<void(Done)> start_;
  std::optional<T> value_;
};

}  // namespace holdfast
