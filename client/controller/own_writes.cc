#include "client/controller/own_writes.h"

#include <algorithm>

#include "client/kube/object.h"

namespace holdfast::controller {

void raise(std::uint64_t& version, const JsonView& object) {
  kube::Object meta;
  if (kube::decode_meta(object, meta)) version = std::max(version, meta.version);
}

Duration OwnWriteWait::left(cache::Informer* behind, const std::string& namespace_,
                            Log::Fields seen, SteadyTime now) {
  if (!behind) {
    since_.reset();
    return Duration::zero();
  }
  if (!since_) since_ = now;
  const Duration waited = now - *since_;
  if (waited < kOwnWriteTimeout) return kOwnWriteTimeout - waited;
  since_ = now;
  behind->watch_lags(namespace_, std::move(seen));
  return kOwnWriteTimeout;
}

OwnWrites::OwnWrites(Loop& loop, IsShown is_shown, Wake wake)
    : loop_(loop), is_shown_(std::move(is_shown)), wake_(std::move(wake)) {}

OwnWrites::~OwnWrites() {
  for (const Waiter& waiter : waiters_) loop_.cancel(waiter.timer);
}

Task<void> OwnWrites::shown(std::function<bool()> is_shown) {
  if (stopped_ || is_shown()) co_return;
  Callback<Unit> ended([&](Callback<Unit>::Done done) {
    const auto waiter = waiters_.insert(waiters_.end(), {std::move(is_shown), std::move(done)});
    waiter->timer = loop_.call_after(kOwnWriteTimeout, [this, waiter] { end(waiter); });
  });
  co_await ended;
}

std::list<OwnWrites::Waiter>::iterator OwnWrites::end(std::list<Waiter>::iterator waiter) {
  loop_.cancel(waiter->timer);
  loop_.post([done = std::move(waiter->done)] { done(Unit{}); });
  return waiters_.erase(waiter);
}

void OwnWrites::on_progress() {
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) {
    waiter = waiter->is_shown() ? end(waiter) : std::next(waiter);
  }
  for (auto key = keys_.begin(); key != keys_.end();) {
    if (!is_shown_(*key)) {
      ++key;
      continue;
    }
    wake_(*key);
    key = keys_.erase(key);
  }
}

void OwnWrites::stop() {
  stopped_ = true;
  for (auto waiter = waiters_.begin(); waiter != waiters_.end();) waiter = end(waiter);
}

}  // namespace holdfast::controller
