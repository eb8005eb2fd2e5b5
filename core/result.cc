#include "core/result.h"

namespace holdfast {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kAlreadyExists:
      return "already exists";
    case ErrorCode::kNotFound:
      return "not found";
    case ErrorCode::kGone:
      return "gone";
    case ErrorCode::kThrottled:
      return "throttled";
    case ErrorCode::kUnauthorized:
      return "unauthorized";
    case ErrorCode::kForbidden:
      return "forbidden";
    case ErrorCode::kInvalid:
      return "invalid";
    case ErrorCode::kTransient:
      return "transient";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kTerminal:
      return "terminal";
  }
  return "unknown";
}

}  // namespace holdfast
