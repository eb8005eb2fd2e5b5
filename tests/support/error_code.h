// error_code(result): why a result is an error; none: it is not, or it has not come.
#pragma once

#include <memory>
#include <optional>

#include "core/result.h"

namespace holdfast {

template <class T>
std::optional<ErrorCode> error_code(const Result<T>& result) {
  if (result.ok()) return std::nullopt;
  return result.error().code;
}

template <class T>
std::optional<ErrorCode> error_code(const std::shared_ptr<std::optional<Result<T>>>& result) {
  if (!result->has_value()) return std::nullopt;
  return error_code(**result);
}

}  // namespace holdfast
