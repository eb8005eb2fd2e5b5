#include "plugin/ui/pulse.h"

#include <utility>

#include "core/utf8.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

constexpr seconds kPeriod{10};
constexpr seconds kLimit{8};
// An answer that takes longer than that is said to be missing.
constexpr seconds kSlow{3};
constexpr std::size_t kText = 300;

// Who may not list, or is asked to wait, has been answered.
bool is_answer(const Error& error) {
  constexpr int kServerError = 500;  // of a proxy, or of a server without its etcd
  return error.code == ErrorCode::kForbidden ||
         (error.http_status != 0 && error.http_status < kServerError);
}

}  // namespace

Pulse::Pulse(Ask ask, Clocks clocks)
    : ask_(std::move(ask)),
      clocks_(std::move(clocks)),
      began_(clocks_.steady()),
      heard_(clocks_.server()) {}

std::string Pulse::trouble() {
  {
    MutexLock lock(mutex_);
    const SteadyTime now = clocks_.steady();
    if (asks_) {
      return trouble_.empty() && now - began_ > kSlow ? "the API server does not answer" : trouble_;
    }
    if (now - began_ < kPeriod) return trouble_;
    asks_ = true;
    began_ = now;
  }
  const std::optional<Error> error = ask_(kLimit);
  const Time at = clocks_.server();
  MutexLock lock(mutex_);
  asks_ = false;
  if (!error || is_answer(*error)) {
    heard_ = at;
    trouble_.clear();
  } else {
    trouble_ = "the API server does not answer: " + clean_text(error->message, kText);
  }
  return trouble_;
}

std::string Pulse::known() const {
  MutexLock lock(mutex_);
  return trouble_;
}

Time Pulse::heard() const {
  MutexLock lock(mutex_);
  return heard_;
}

}  // namespace holdfast::plugin
