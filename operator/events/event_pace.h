// How fast Events about one object are written: one a second, 25 at first, and then one each five
// minutes on average. An Event that comes too early waits. Of those that wait with the same type,
// reason and action, only the last is written, and its note says how many there were. How an object
// ends (action Finish) goes first and costs nothing of the 25. Pure.
//
//   pace.add({true, "AttemptLost", "Retry", note, 1, now});
//   while (const auto next = pace.take(now)) report(*next);
//   if (const auto wake = pace.wake()) ...   // take() again then
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::events {

class EventPace {
 public:
  struct Entry {
    bool warning = false;
    std::string reason, action, note;
    std::int64_t count = 1;  // how often exactly this was added
    SteadyTime at{};         // when it was added last
  };

  explicit EventPace(SteadyTime now) : filled_(now) {}

  void add(Entry entry);
  // The next Event that may be written now.
  std::optional<Entry> take(SteadyTime now);
  // When take() has the next one; none: nothing waits.
  std::optional<SteadyTime> wake() const;
  // For an object that is forgotten: how it ends, if that still waits. All others that wait are
  // dropped.
  std::vector<Entry> give_up();
  // How many will never be written, since the last call.
  std::uint64_t take_dropped();
  // How the object ends.
  static constexpr const char* kFinish = "Finish";
  static bool ends(const Entry& entry) { return entry.action == kFinish; }

 private:
  struct Waiting {
    Entry last;
    std::int64_t others = 0;  // with other notes, before it
  };
  static Entry entry_of(const Waiting& taken);
  void drop(const Waiting& one) {
    dropped_ += static_cast<std::uint64_t>(one.others + one.last.count);
  }
  bool may_spend(SteadyTime now);

  std::vector<Waiting> waiting_;  // of different kinds, oldest first
  std::optional<SteadyTime> taken_at_;
  double tokens_ = kBurst;
  SteadyTime filled_;
  std::uint64_t dropped_ = 0;

  // client-go's spam filter.
  static constexpr double kBurst = 25;
};

}  // namespace holdfast::events
