#include "operator/pools/worker_times.h"

namespace holdfast::pools {
namespace {

// Bounded: forgetting only starts the windows again.
constexpr std::size_t kMaxMissing = 10'000;
// The watch of a new Lease may come later than the record that names it.
constexpr std::chrono::seconds kRecordMissingFrom{5};

}  // namespace

reconciler::LiveTime WorkerTimes::time(const std::string& key, SteadyTime now) {
  return clocks_.read(key.substr(0, key.find('/')), now);
}

void WorkerTimes::seen(const std::string& key, const CachedWorkerLease& lease,
                       const CachedWorkerLease* work, const CachedWorkerLease* before,
                       SteadyTime now) {
  const reconciler::LiveTime live = time(key, now);
  const bool is_ours = lease.refused.empty();
  const auto is = is_ours ? lease.is() : reconciler::WorkerIs::kCutOff;
  if (is == reconciler::WorkerIs::kRevoked) {
    see_revoked(key, lease, before, live);
  } else {
    revoked_.gone(key);
  }
  const bool is_renewed = is == reconciler::WorkerIs::kLive && lease.renewed;
  if (is_renewed) {
    renewed_.seen(key, lease.version, live.now);
    see_echo(key, lease, work, live.now);
  } else {
    renewed_.gone(key);
    lags_.erase(key);
    lagging_.gone(key);
  }
}

// A revocation is no renewal. The silence goes on if the Lease has the renewal that was seen last:
// the agent's deadlines count from when it sent that one.
void WorkerTimes::see_revoked(const std::string& key, const CachedWorkerLease& lease,
                              const CachedWorkerLease* before, reconciler::LiveTime live) {
  const bool is_same_renewal = before && renewed_.version(key) == before->version &&
                               lease.renewed == before->renewed && lease.words == before->words;
  const auto silent =
      is_same_renewal ? renewed_.silent_for(key, live.now, live.epoch) : std::optional<Duration>();
  revoked_.seen(key, lease.version, live.now);
  if (silent) revoked_.carry(key, lease.version, *silent, live);
}

void WorkerTimes::see_echo(const std::string& key, const CachedWorkerLease& lease,
                           const CachedWorkerLease* work, Duration live_now) {
  using Is = reconciler::EchoLag::Is;
  reconciler::EchoLag& lag = lags_[key];
  const Is is = lag.seen(work ? work->uid : "", work ? work->work.seq : 0, lease.report);
  if (is == Is::kSame) return;
  // Another process may have recorded the lag before this one saw the worker.
  const auto recorded = lagging_.knows(key) ? std::nullopt : lagging_.version(key);
  const bool goes_on = is == Is::kOther && recorded && lag.take_over(*recorded);
  if (!goes_on) lagging_.gone(key);
  if (is == Is::kOther) lagging_.seen(key, goes_on ? *recorded : lag.mark(), live_now);
}

void WorkerTimes::gone(const std::string& key) {
  renewed_.gone(key);
  revoked_.gone(key);
  lags_.erase(key);
  lagging_.gone(key);
}

// Nobody can renew the Lease of a revoked worker. So its silence needs no first look.
Duration WorkerTimes::silent_for(const std::string& key, Duration duration, SteadyTime now) {
  const reconciler::LiveTime live = time(key, now);
  const auto silent =
      revoked_.knows(key)
          ? revoked_.silent_for(key, live.now, live.epoch)
          : renewed_.counted(key, duration, reconciler::agent_first_look(duration), live);
  return silent.value_or(Duration::zero());
}

Duration WorkerTimes::lags_for(const std::string& key, Duration duration, SteadyTime now) {
  return lagging_.counted(key, duration, reconciler::agent_first_look(duration), time(key, now))
      .value_or(Duration::zero());
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

void WorkerTimes::keep_windows(observe::WindowKeeper& windows,
                               const std::function<SteadyTime()>& clock, const WantedBy& wanted) {
  const auto live = [this, clock](const std::string& key) { return time(key, clock()); };
  const auto echo_here = [this](const std::string& key, std::uint64_t mark) {
    const auto lag = lags_.find(key);
    const bool is_known = lag != lags_.end() && lagging_.knows(key);
    return is_known && lag->second.take_over(mark) ? *lagging_.version(key) : mark;
  };
  windows.add("worker", {renewed_, live, wanted.silent});
  windows.add("revoked", {revoked_, live, wanted.revoked});
  windows.add("echo", {lagging_, live, wanted.lagging, echo_here});
  // It does not come back. A process may see it late: only once it lists the jobs of a shard that it
  // will have.
  windows.add("lease", {.tracker = missing_,
                        .clock = live,
                        .wanted = wanted.missing,
                        .mark_proves_silence = true,
                        .record_from = kRecordMissingFrom});
}

}  // namespace holdfast::pools
