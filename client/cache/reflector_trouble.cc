#include "client/cache/reflector_trouble.h"

#include <algorithm>

namespace holdfast::cache {

bool version_ahead(const Error& error) {
  return error.http_status == 504 &&
         error.message.find("Too large resource version") != std::string::npos;
}

bool needs_consistent_list(const Error& error) {
  return error.code == ErrorCode::kGone || version_ahead(error);
}

bool is_incomplete(const Error& error) {
  return error.http_status == 0 && (error.code == ErrorCode::kTerminal || error.maybe_applied);
}

Duration asked_by(const Error& error) {
  return std::min(error.retry_after.value_or(Duration::zero()), kLongestAsked);
}

Duration ReflectorTrouble::next_wait(const Error& error, SteadyTime now) {
  Backoff& backoff = error.code == ErrorCode::kThrottled ? throttled_
                     : error.code == ErrorCode::kGone    ? expired_
                                                         : unanswered_;
  return backoff.next(now, random_);
}

void ReflectorTrouble::good(SteadyTime now) {
  text_.clear();
  for (Backoff* backoff : {&unanswered_, &throttled_, &expired_}) backoff->good(now);
}

}  // namespace holdfast::cache
