// Result<T>: a value or an Error. Errors across modules are values; exceptions end where a library
// throws them. Error codes are named by what the caller does next.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast {

enum class ErrorCode {
  kConflict,       // 409 Conflict: what was read is old; read again and decide again
  kAlreadyExists,  // 409 AlreadyExists: look whose it is
  kNotFound,       // 404
  kGone,           // 410: the version is compacted; list anew
  kThrottled,      // 429: come back after retry_after
  kUnauthorized,   // 401: read the credentials again
  kForbidden,      // 403: RBAC, quota, admission; ask a person, try later
  kInvalid,        // 400, 413, 415, 422: the same request can never succeed
  kTransient,      // 5xx, time-out, connection: try again; see maybe_applied
  kCancelled,      // we gave up on it (shutdown, lost ownership)
  kTerminal,       // anything else: no retry helps
};

const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kTerminal;
  std::string message;                                  // for people, never a secret
  int http_status = 0;                                  // 0: no answer
  std::string reason;                                   // Status.reason, e.g. "AlreadyExists"
  std::optional<std::chrono::nanoseconds> retry_after;  // the server's Retry-After
  // The request was sent and no answer came: it may have been applied.
  bool maybe_applied = false;
  // Status.details.causes: how many there are, and the fields that they name.
  int cause_count = 0;
  std::vector<std::string> cause_fields;
};

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT: implicit
  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  Error& error() { return std::get<1>(state_); }
  const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
using Status = Result<Unit>;

inline Error make_error(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}

}  // namespace holdfast
