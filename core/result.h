// Result<T>: a value or an Error. Errors between modules are values. Exceptions are caught where a
// library throws them. Error codes are named after the caller's next step.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace holdfast {

enum class ErrorCode {
  kConflict,       // 409 Conflict: the object has changed; read again and decide again
  kAlreadyExists,  // 409 AlreadyExists: find out who owns it
  kNotFound,       // 404
  kGone,           // 410: the version is compacted; list again
  kThrottled,      // 429: retry after retry_after
  kUnauthorized,   // 401: read the credentials again
  kForbidden,      // 403: RBAC, quota, admission; a human must help, retry later
  kInvalid,        // 400, 413, 415, 422: the same request can never succeed
  kTransient,      // 5xx, timeout, connection: retry; see maybe_applied
  kCancelled,      // the caller gave up (shutdown, lost ownership)
  kTerminal,       // anything else: no retry helps
};

const char* to_string(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kTerminal;
  std::string message;                                  // for people, never a secret
  int http_status = 0;                                  // 0: no answer
  std::string reason;                                   // Status.reason, e.g. "AlreadyExists"
  std::optional<std::chrono::nanoseconds> retry_after;  // the server's Retry-After
  // The request was sent but no answer came, so the server may have applied it.
  bool maybe_applied = false;
  // Status.details.causes: their number, and the fields that they name.
  int cause_count = 0;
  std::vector<std::string> cause_fields;
  // Of a page whose token has expired: the list goes on there, with what is there now.
  std::string continue_token;
};

struct Unit {};

// Result<>: an Error, or it is done.
template <class T = Unit>
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

inline Error make_error(ErrorCode code, std::string message) {
  Error error;
  error.code = code;
  error.message = std::move(message);
  return error;
}
inline Error invalid(std::string message) {
  return make_error(ErrorCode::kInvalid, std::move(message));
}

}  // namespace holdfast
