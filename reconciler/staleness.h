// What is alive: staleness is judged by the observer's steady clock since a record was last seen to
// change, and that clock runs only while a change would have been seen.
//
// Three parts, all pure: the LiveClock says how much of the time counts; a RecordTracker remembers
// when each record last changed on that clock; breaker() says when so many fell silent together
// that the path to them is the likelier culprit.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "core/time.h"

namespace holdfast::reconciler {

// A gap longer than this starts all windows anew; a shorter one just does not count.
inline constexpr std::chrono::seconds kGapLimit{5};

// Time that counts: both the watch is open and a consistent (etcd-backed) operation of ours has
// succeeded within kGapLimit. Reads are in "live time", a duration since some start.
class LiveClock {
 public:
  // The watch opened or closed; reports of the same state are ignored.
  void watch(bool open, SteadyTime at);
  // A consistent read or write of ours succeeded; `at` is when it was answered.
  void proof(SteadyTime at);

  // The live time at `at`, which must not go back. Also notices gaps, so ask it often enough
  // (every evaluation does).
  Duration read(SteadyTime at);

  // Where the windows now start: the live time at the end of the last gap over kGapLimit.
  // Evaluate read() first.
  Duration epoch() const { return epoch_; }
  // Counts the gaps: trackers compare it.
  std::uint64_t epochs() const { return epochs_; }
  bool running(SteadyTime at) const;

 private:
  void settle(SteadyTime at);

  bool open_ = false;
  bool proven_ = false;
  SteadyTime last_proof_{};
  SteadyTime counted_until_{};  // live time is counted up to here
  std::optional<SteadyTime> stopped_since_{SteadyTime{}};
  Duration live_{0};
  Duration epoch_{0};
  std::uint64_t epochs_ = 0;
};

// A reading of a LiveClock.
struct LiveTime {
  Duration now{0};
  Duration epoch{0};
};

// After an outage of the API server a kubelet or an agent may need this long to renew: a request
// that hangs takes 10 s, and the next try comes within a few. An outage may lie between two lives
// of an operator, where nobody sees it: so what an earlier life saw counts only once this life has
// seen so much silence itself.
inline constexpr std::chrono::seconds kFirstLook{15};

// When each record (a node's Lease) was last seen to change, in live time; and what earlier lives
// or other replicas have seen of the same silence (carry()).
class RecordTracker {
 public:
  // Each record's own clock: records that are watched apart may have different ones.
  using ClockOf = std::function<LiveTime(const std::string& name)>;

  // A record was seen with this version. Unchanged versions are no sign of life.
  void seen(const std::string& name, std::uint64_t version, Duration live_now);
  void gone(const std::string& name);
  bool knows(const std::string& name) const { return records_.count(name) != 0; }

  // Somebody else has seen it stand still at this version for so long, up to now. That takes the
  // place of what was seen here, if it is more: two who watch side by side never add up. A gap ends
  // it, as it ends what was seen here.
  void carry(const std::string& name, std::uint64_t version, Duration silent, LiveTime time);
  // The version of a record that is known here; else, of one that was carried. None: neither.
  std::optional<std::uint64_t> version(const std::string& name) const;

  // How long it has been silent: since its last change or the epoch, whichever is later, and what
  // was carried. None: it is not known.
  std::optional<Duration> silent_for(const std::string& name, Duration live_now,
                                     Duration epoch) const;
  // The same, as it counts towards a window: what was carried brings the window's end no nearer
  // than `first_look` of silence that was seen here.
  std::optional<Duration> counted(const std::string& name, Duration window, Duration first_look,
                                  LiveTime time) const;

  using Visit = std::function<void(const std::string& name, std::uint64_t version, Duration)>;
  // Every record that has been silent for so long.
  void for_each_silent(Duration at_least, const ClockOf& clock, const Visit& visit) const;

  // True when, of the other records that changed since the epoch or were carried (at least three),
  // more than 55 % have been silent for over half of `window`: the path to them all is in doubt.
  bool breaker(const std::string& name, Duration window, const ClockOf& clock) const;

  // Whether the verdict on a record that has been silent for `window` or more is held back: where
  // the breaker holds, for one window more, once for each silence.
  bool held_back(const std::string& name, Duration window, const ClockOf& clock);

  std::size_t size() const { return records_.size(); }

 private:
  struct Record {
    std::uint64_t version = 0;
    Duration first_seen{0};
    std::optional<Duration> changed;  // none: not seen to change since it was first seen
    Duration carried{0};              // comes on top of what was seen here
    Duration carried_at{0};           // in live time: a gap after that ends it
  };
  struct Waiting {
    std::uint64_t version = 0;
    Duration silent{0};
    Duration at{0};
  };
  static Duration seen_here(const Record& record, LiveTime time);
  static Duration carried(const Record& record, LiveTime time);

  std::unordered_map<std::string, Record> records_;
  std::unordered_map<std::string, Waiting> waiting_;  // carried, before the record was seen
  // By record and window: the start of the silence for which the verdict was held back.
  std::map<std::pair<std::string, Duration>, Duration> held_back_;
};

}  // namespace holdfast::reconciler
