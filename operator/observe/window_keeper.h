// Windows that survive the process. The trackers' silences are recorded in the shards' Leases
// (Membership writes them), and every replica's trackers take them over from there.
//
//   WindowKeeper windows(loop, log);
//   windows.add("node", {tracker, clock, wanted});
//   ... a shard's Lease is seen:        windows.carry(text);
//   ... a shard's Lease is written:     text = windows.record(shard);
//
// Trackers, clocks and functions must live as long as the keeper. Loop only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/log.h"
#include "core/loop.h"
#include "operator/observe/window_codec.h"
#include "reconciler/staleness.h"

namespace holdfast::observe {

// A healthy kubelet or agent renews within this time.
inline constexpr std::chrono::seconds kRecordFrom{15};

class WindowKeeper {
 public:
  // Which shards wait for a subject's silence, and for how long. No longer silence is recorded, so
  // a silence that already decided everything costs no writes. No shards: nobody waits.
  struct Wanted {
    std::vector<int> shards;
    Duration most{0};
  };
  struct Kind {
    reconciler::RecordTracker& tracker;
    reconciler::RecordTracker::ClockOf clock;
    std::function<Wanted(const std::string& name, Duration silent)> wanted;
    // The mark that this process has for the silence to which another process gave `mark`. Null:
    // the same one.
    std::function<std::uint64_t(const std::string& name, std::uint64_t mark)> mark_here = nullptr;
    // A subject that has the same mark twice was silent in between.
    bool mark_proves_silence = false;
    // Shorter silences are not recorded.
    Duration record_from = kRecordFrom;
  };
  WindowKeeper(Loop& loop, Log log) : loop_(loop), log_(std::move(log)) {}

  void add(const std::string& name, Kind kind) { kinds_.emplace(name, std::move(kind)); }

  // Takes over the record of another process or replica.
  void carry(const std::string& text);

  // The record to write for this shard now. Empty: nothing.
  std::string record(int shard);

 private:
  void collect();

  Loop& loop_;
  Log log_;
  std::map<std::string, Kind> kinds_;
  std::map<int, std::vector<SilentSubject>> found_;  // by shard, at collected_at_
  SteadyTime collected_at_{};
  SteadyTime warned_at_{};
};

}  // namespace holdfast::observe
