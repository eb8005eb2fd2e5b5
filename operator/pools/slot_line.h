// The jobs that wait for free slots of one pool, in their order: creation, then UID. A job may take
// slots if the jobs before it want fewer than there are. A job that was woken and does not look
// holds up others for kTurn at most. A call costs what is free, not how many wait. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/time.h"

namespace holdfast::pools {

class SlotLine {
 public:
  // A job that was woken has this long to look, then the next ones may go first.
  static constexpr std::chrono::seconds kTurn{1};
  // A look takes so many slots at most. Beyond that, a large job keeps no slot from the next ones,
  // because its next look may be seconds away.
  static constexpr std::int64_t kMostAtOnce = 64;
  // In builds with assertions, each change of a line of so many jobs is checked.
  static constexpr std::size_t kCheckedJobs = 100;

  // The job wants so many slots now. Zero: it leaves.
  void ask(const std::string& uid, const std::string& name, Time created, std::int64_t wants,
           SteadyTime now);
  void leave(const std::string& uid);

  // How many slots the jobs before this one want; counted up to `limit`. A job that does not wait
  // has the place that it would have.
  std::int64_t wanted_before(const std::string& uid, Time created, std::int64_t limit,
                             SteadyTime now);
  // None: it does not wait.
  std::optional<std::int64_t> wants(const std::string& uid) const;
  std::optional<SteadyTime> since(const std::string& uid) const;
  // The job looks at what is free now.
  void looks(const std::string& uid);

  // The names of those to wake for so many free slots. None is woken twice before it looks.
  std::vector<std::string> wake(std::int64_t free, SteadyTime now);
  std::vector<std::string> names() const;

  std::int64_t wanted() const { return wanted_; }
  // Since when the oldest job exists that waits; none: none waits.
  std::optional<Time> oldest() const {
    return order_.empty() ? std::nullopt : std::optional(order_.begin()->first.first);
  }
  bool empty() const { return order_.empty(); }
  // Throws if the sums are not those of the jobs (core/invariant.h).
  void check() const;

 private:
  enum class Turn {
    kNotYet,
    kWoken,
    kLate,  // it was woken and did not look
  };
  struct Asker {
    std::string name;
    std::int64_t wants = 0;
    SteadyTime since{};
    Turn turn = Turn::kNotYet;
    SteadyTime woken{};
    std::int64_t takes_at_once() const { return std::min(wants, kMostAtOnce); }
  };
  using Place = std::pair<Time, std::string>;
  using Line = std::map<Place, Asker>;
  // Askers in the order of the line, and how many slots they take at once.
  struct Part {
    std::map<Place, Asker*> askers;
    std::int64_t takes = 0;
  };

  Asker* find(const std::string& uid);
  const Asker* find(const std::string& uid) const;
  void set_turn(const Place& place, Asker& asker, Turn turn);
  void enter(const Place& place, Asker& asker);
  void leave_part(const Place& place, const Asker& asker);
  void pass_turns(SteadyTime now);
  bool is_sound() const;

  Line order_;
  std::unordered_map<std::string, Time> created_;  // by UID
  // Those whose turn it is not yet, and those that were woken: without the late ones.
  Part waiting_;
  Part woken_;
  std::deque<std::pair<SteadyTime, Place>> turns_;  // when they were woken
  std::int64_t wanted_ = 0;
};

}  // namespace holdfast::pools
