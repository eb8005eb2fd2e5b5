// Which replica observes: the one that holds one Lease. The Lease's annotation holds the windows, as
// those of shards do (observe/window_codec.h). So whoever takes it goes on counting.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/kube/client.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/task.h"
#include "reconciler/shards.h"

namespace holdfast::rescue {

class ObserverLease {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
  };
  struct Config {
    std::string namespace_;
    std::string self;  // no other process has it
    reconciler::MemberTimings timings;
  };
  struct Handlers {
    std::function<std::string()> record;                    // the windows to write now
    std::function<void(const std::string& text)> recorded;  // those of another replica
    std::function<void()> answered;                         // a consistent read or write succeeded
  };
  ObserverLease(const Dependencies& dependencies, Config config, Handlers handlers);

  void start();
  // Frees the Lease if it is held, and then calls `stopped`.
  void stop(std::function<void()> stopped);
  // This replica holds the Lease, and its last renewal is young enough.
  bool acting() const;

 private:
  struct Seen {
    std::string uid, holder, windows;
    std::uint64_t version = 0;
    std::int64_t transitions = 0;
  };
  static Seen seen_in(const JsonDocument& lease);
  void round_soon();
  Task<void> round();
  Task<void> write(Seen seen, std::string holder);
  Task<void> free(std::function<void()> stopped);
  bool may_take(const Seen& seen);
  std::string path(const std::string& name) const;
  std::string body(const Seen& seen, const std::string& holder) const;

  Loop& loop_;
  kube::Client& client_;
  Log log_;
  const Config config_;
  const Handlers handlers_;
  std::optional<SteadyTime> renewed_;  // when its last acknowledged renewal was sent
  std::uint64_t seen_version_ = 0;     // of another holder's Lease
  SteadyTime seen_at_{};
  TimerId timer_ = 0;
  bool stopping_ = false;
};

}  // namespace holdfast::rescue
