// The work Lease as the agent of a warm worker saw it last. It shows which version the agent obeys,
// and since when it has heard of no newer one. No clock inside.
//
// - The watch and the reads may overtake each other. A version below the last one changes nothing.
// - But the seq never falls, and each seq has one text. A version that breaks this was set back.
//   Somebody has changed the Lease, or the cluster's data are older than what the agent saw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/wire/readings.h"
#include "core/time.h"
#include "core/worker_protocol.h"

namespace holdfast::agent {

class WorkSeen {
 public:
  // Of the Lease that was read last; empty: none, or it is gone.
  const std::string& uid() const { return uid_; }
  std::int64_t seq() const { return seq_; }  // -1: none

  // Another Lease: no version of it was seen yet.
  void begins(const std::string& uid);
  void is_gone() { uid_.clear(); }

  // The view has what was not seen before.
  bool is_news(const WorkView& view) const;
  // `asked`: when it was asked for; none: the watch has it. What was asked for later shows no
  // earlier version.
  bool is_set_back(const Work& work, std::optional<SteadyTime> asked) const;
  // Newer than the last version: it is obeyed from now on.
  bool is_newer(const Work& work) const { return work.seq > seq_; }
  void obeys(SteadyTime now, const Work& work);

  // The text is not understood. Returns whether that is another reason than the last version's.
  bool not_understood(const std::string& why);
  void understood() { not_understood_.clear(); }

  // When the Lease was asked for that was read last, or its event came.
  void heard(SteadyTime when) { heard_ = when; }
  // A renewal may echo it: nothing older than the last renewal, or only if it is very young.
  bool heard_lately(SteadyTime now, std::optional<SteadyTime> renewed, Duration lease) const;

 private:
  std::string uid_;
  std::int64_t seq_ = -1;
  std::string words_;  // the same version's
  SteadyTime obeyed_{};
  std::optional<SteadyTime> heard_;
  std::string not_understood_;
};

}  // namespace holdfast::agent
