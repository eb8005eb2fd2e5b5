// Judges whether a record (e.g. a Lease) is stale: how long the observer has seen no change of it.
// The observer's clock runs only while it would have seen a change.
//
// Three parts, all pure:
// - LiveClock says how much of the time counts.
// - RecordTracker remembers when each record last changed on that clock.
// - breaker() says when so many records fell silent together that the path to them is the likelier
//   cause. Records that were silent long before are no sign of that.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"

namespace holdfast::reconciler {

// A longer gap starts all windows again. A shorter gap does not count, and nothing else happens.
inline constexpr std::chrono::seconds kGapLimit{5};

// Counts "live time": time in which the watch is open and one of our consistent (etcd-backed)
// operations has succeeded within kGapLimit. Its readings are durations since some start.
class LiveClock {
 public:
  // The watch opened or closed. A repeated state is ignored.
  void watch(bool open, SteadyTime at);
  // One of our consistent reads or writes succeeded; `at` is the time of the answer.
  void proof(SteadyTime at);

  // The live time at `at`, which must not go back. It also notices gaps, so call it often (every
  // evaluation does).
  Duration read(SteadyTime at);

  // The earliest start of windows: the live time at the end of the last gap over kGapLimit. Call
  // read() first.
  Duration epoch() const { return epoch_; }
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
};

// A reading of a LiveClock.
struct LiveTime {
  Duration now{0};
  Duration epoch{0};
};

// After an outage of the API server a kubelet or an agent may need this long to renew. A hanging
// request takes 10 s, and the retry comes a few seconds later. No operator sees an outage between
// two of its processes. So silence from a record counts only after this process has itself seen
// this much.
inline constexpr std::chrono::seconds kFirstLook{15};
// Whoever was silent for kFirstLook has been silent for longer than this, whatever others have seen.
// Nodes renew every 10 s.
inline constexpr std::chrono::seconds kSilentAtFirstLook{14};
// A node renews its Lease every 10 s, so silence up to here is normal. Then the node monitor tells of
// it. So a job needs no timer for the report, only one for the verdict.
inline constexpr std::chrono::seconds kNodeHeard{12};
// The same for an agent's Lease of this duration. Half of it is enough for an agent, which retries
// every second, and is shorter than any window.
Duration agent_first_look(Duration lease_duration);

// When each record (e.g. a node's Lease) last changed, in live time. Also the silence that earlier
// processes or other replicas have seen (carry()).
class RecordTracker {
 public:
  // The clock of a record. Records of separate watches may have different clocks.
  using ClockOf = std::function<LiveTime(const std::string& name)>;

  // Records of one group, e.g. of one namespace, may fall silent together although the path to the
  // others is fine. Null: all are of one group.
  using GroupOf = std::function<std::string(const std::string& name)>;
  // Whether the path to all is in doubt by other records, for when fewer than three of these count.
  using Elsewhere = std::function<bool(Duration window)>;
  explicit RecordTracker(GroupOf group_of = nullptr, Elsewhere elsewhere = nullptr)
      : group_of_(std::move(group_of)), elsewhere_(std::move(elsewhere)) {}

  // A record was seen with this version. An unchanged version is no sign of life.
  void seen(const std::string& name, std::uint64_t version, Duration live_now);
  // The same, for at most `limit` records. If a new one has no room, all others are forgotten,
  // which only starts their windows again.
  void seen_within(std::size_t limit, const std::string& name, std::uint64_t version,
                   Duration live_now);
  void gone(const std::string& name);
  bool knows(const std::string& name) const { return records_.count(name) != 0; }

  // Another observer has seen no change of this version for `silent`, up to now. The longer of its
  // silence and ours counts; two observers never add up. A gap ends it, as it ends our own. It may
  // come before the record is seen. With `counts_on` it counts on meanwhile: a record that has the
  // same version then has not changed.
  void carry(const std::string& name, std::uint64_t version, Duration silent, LiveTime time,
             bool counts_on = false);
  // The version of the record seen here, or else of the carried one. None: neither exists.
  std::optional<std::uint64_t> version(const std::string& name) const;

  // How long the record has been silent: since its last change or the epoch, whichever is later,
  // plus the carried silence. None: unknown record.
  std::optional<Duration> silent_for(const std::string& name, Duration live_now,
                                     Duration epoch) const;
  // The same, as it counts towards a window. Carried silence can end the window only after
  // `first_look` of silence seen here.
  std::optional<Duration> counted(const std::string& name, Duration window, Duration first_look,
                                  LiveTime time) const;

  using Visit = std::function<void(const std::string& name, std::uint64_t version, Duration)>;
  // Visits every record that has been silent for `at_least`.
  void for_each_silent(Duration at_least, const ClockOf& clock, const Visit& visit) const;

  // True if more than 55 % of the other records have been silent for over half of `window`. Only
  // records that changed since the epoch or were carried count. If there are fewer than three,
  // `elsewhere` decides; without it, it is false. A record that fell silent more than one `window`
  // before this one does not count, e.g. a node that was switched off. If true, the path to all of
  // them is in doubt. It is false if the record's own group has three others that are not mostly
  // silent. So one tenant's trouble rarely holds up another tenant's verdicts. `name` may be one
  // that is not known here.
  bool breaker(const std::string& name, Duration window, const ClockOf& clock) const;

  // The same, with all records: also those that nobody saw alive since the epoch. They are silent
  // over kSilentAtFirstLook. For verdicts that wait as long as this is true. A new observer does not
  // make it false, even if it takes over the silences of some records alone. The count of the others
  // may be 100 ms old, so that many looks cost as little as one.
  bool in_doubt(const std::string& name, Duration window, const ClockOf& clock, SteadyTime now);

  // True if the verdict on a record that has been silent for `window` or more must wait. While
  // breaker() is true it waits for one more window, once for each silence. The breaker's count of
  // the others may be 100 ms old, so that many looks cost as little as one.
  bool held_back(const std::string& name, Duration window, const ClockOf& clock, SteadyTime now);

  std::size_t size() const { return records_.size(); }

 private:
  struct Record {
    std::uint64_t version = 0;
    Duration first_seen{0};
    std::optional<Duration> changed;  // none: no change since it was first seen
    Duration carried{0};              // added to the silence seen here
    Duration carried_at{0};           // in live time; a later gap ends the carried silence
  };
  struct Waiting {
    std::uint64_t version = 0;
    Duration silent{0};
    Duration at{0};
    bool counts_on = false;
    Duration silent_at(Duration now) const { return counts_on ? silent + (now - at) : silent; }
  };
  // How many records count for the breaker, and how many of these are silent.
  struct Tally {
    std::size_t counted = 0;
    std::size_t silent = 0;
  };
  // How long each record that may count has been silent, in rising order.
  using Silences = std::vector<Duration>;
  struct AllSilences {
    Silences all;
    std::optional<std::map<std::string, Silences>> groups;  // none: nobody asked for them yet
  };
  // Which records count.
  enum class Counting { kSeenAlive, kAll };
  static bool mostly_silent(Tally sum);
  static std::optional<Duration> silence_that_counts(const Record& record, LiveTime time,
                                                     Counting counting);
  Tally tally(const Silences& silences, const std::string& name, Duration window, LiveTime time,
              Counting counting = Counting::kSeenAlive) const;
  bool in_doubt(AllSilences& silences, const std::string& name, Duration window,
                const ClockOf& clock) const;
  AllSilences measure(const ClockOf& clock, Counting counting = Counting::kSeenAlive) const;
  std::map<std::string, Silences> measure_groups(const ClockOf& clock) const;
  static Duration seen_here(const Record& record, LiveTime time);
  static Duration carried(const Record& record, LiveTime time);

  GroupOf group_of_;
  Elsewhere elsewhere_;
  std::unordered_map<std::string, Record> records_;
  std::unordered_map<std::string, Waiting> waiting_;  // carried, before the record was seen
  // By record and window: the start of the silence whose verdict was held back.
  std::map<std::pair<std::string, Duration>, Duration> held_back_;
  AllSilences measured_;
  std::optional<SteadyTime> measured_at_;
  AllSilences measured_all_;
  std::optional<SteadyTime> measured_all_at_;
};

}  // namespace holdfast::reconciler
