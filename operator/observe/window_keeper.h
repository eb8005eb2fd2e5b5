// Windows that survive the process: what its trackers know of silent subjects goes into the shards'
// Leases (Membership writes them), and what stands there comes into the trackers of every replica.
//
//   WindowKeeper windows(loop, log);
//   windows.add("node", {tracker, clock, wanted});
//   ... a shard's Lease is seen:        windows.carry(text);
//   ... a shard's Lease is written:     text = windows.record(shard);
//
// A kind's trackers, clocks and functions must live as long as the keeper. Loop only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/loop.h"
#include "operator/observe/window_codec.h"
#include "reconciler/staleness.h"

namespace holdfast::controller {

// A silence is on record from here on: a healthy kubelet or agent renews before.
inline constexpr std::chrono::seconds kRecordFrom{15};

class WindowKeeper {
 public:
  // Who waits for a subject's silence, and for how much of it: more is not recorded, so that a
  // silence which decides nothing any more costs no writes. No shards: nobody does.
  struct Wanted {
    std::vector<int> shards;
    Duration most{0};
  };
  struct Kind {
    reconciler::RecordTracker& tracker;
    reconciler::RecordTracker::ClockOf clock;
    std::function<Wanted(const std::string& name, Duration silent)> wanted;
  };
  WindowKeeper(Loop& loop, Log log) : loop_(loop), log_(log) {}

  void add(const std::string& name, Kind kind) { kinds_.emplace(name, std::move(kind)); }

  // What another life or another replica has put on record.
  void carry(const std::string& text);

  // What should stand on record of this shard now. Empty: nothing.
  std::string record(int shard);

 private:
  void collect();

  Loop& loop_;
  Log log_;
  std::map<std::string, Kind> kinds_;
  std::map<int, std::vector<SilentSubject>> found_;  // by shard, at collected_at_
  SteadyTime collected_at_{};
  SteadyTime told_at_{};
};

}  // namespace holdfast::controller
