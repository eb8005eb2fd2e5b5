#include "operator/pools/worker_times.h"

namespace holdfast::controller {
namespace {

// Bounded: forgetting only starts the windows again.
constexpr std::size_t kMaxMissing = 10'000;

}  // namespace

reconciler::LiveTime WorkerTimes::time(const std::string& key, SteadyTime now) {
  return clocks_.read(key.substr(0, key.find('/')), now);
}

void WorkerTimes::seen(const std::string& key, const CachedWorkerLease& lease,
                       const CachedWorkerLease* work, SteadyTime now) {
  const reconciler::LiveTime live = time(key, now);
  const bool is_ours = lease.refused.empty();
  const auto is = is_ours ? lease.is() : reconciler::WorkerIs::kCutOff;
  const bool is_renewed = is == reconciler::WorkerIs::kLive && lease.renewed;
  if (is_renewed) {
    renewed_.seen(key, lease.version, live.now);
    lags_[key].seen(work ? work->uid : "", work ? work->work.seq : 0, lease.report, live);
  } else {
    renewed_.gone(key);
    lags_.erase(key);
  }
  if (is == reconciler::WorkerIs::kRevoked) {
    revoked_.seen(key, lease.version, live.now);
  } else {
    revoked_.gone(key);
  }
}

void WorkerTimes::gone(const std::string& key) {
  renewed_.gone(key);
  revoked_.gone(key);
  lags_.erase(key);
}

Duration WorkerTimes::silent_for(const std::string& key, SteadyTime now) {
  const reconciler::LiveTime live = time(key, now);
  const auto& tracker = revoked_.knows(key) ? revoked_ : renewed_;
  return tracker.silent_for(key, live.now, live.epoch).value_or(Duration::zero());
}

Duration WorkerTimes::lags_for(const std::string& key, SteadyTime now) {
  const auto found = lags_.find(key);
  return found == lags_.end() ? Duration::zero() : found->second.lags_for(time(key, now));
}

bool WorkerTimes::held_back(const std::string& key, Duration window, SteadyTime now) {
  return renewed_.held_back(
      key, window, [&](const std::string& other) { return time(other, now); }, now);
}

Duration WorkerTimes::missing_for(const std::string& key, SteadyTime now) {
  const reconciler::LiveTime live = time(key, now);
  missing_.seen_within(kMaxMissing, key, 0, live.now);
  return missing_.silent_for(key, live.now, live.epoch).value_or(Duration::zero());
}

}  // namespace holdfast::controller
