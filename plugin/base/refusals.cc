#include "plugin/base/refusals.h"

namespace holdfast::plugin {

bool is_refusal(const Error& error) {
  if (error.code == ErrorCode::kUnauthorized || error.code == ErrorCode::kForbidden) return true;
  return error.http_status == 0 && error.message.find("exec plugin") != std::string::npos;
}

bool Refusals::note(const std::optional<Error>& error, SteadyTime now) {
  if (!error) since_.reset();
  if (!error || !is_refusal(*error)) return false;
  if (!since_) since_ = now;
  return now - *since_ >= kRefusedFor;
}

}  // namespace holdfast::plugin
