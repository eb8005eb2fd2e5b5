// Keeps one Lease for its holder. It says when to read and renew the Lease, what an answer changes,
// and when all that depends on the Lease must end. The Guard keeps a job's Lease with it, Slots a
// worker's. Times and answers go in. No clock and no socket inside.
//
//   LeaseKeeper lease(duration, random);
//   if (!lease.in_progress() && now >= lease.due(wanted)) lease.send(now);  // may_renew(): a PUT
//   const SteadyTime sent = lease.answered();
//   lease.confirmed();         // the answer is the Lease, and it is ours
//   lease.acknowledged(sent);  // to a PUT
//
// The agent's half of S22: while the agent gets to run, no process of an attempt lives
// beside one of its successor. D is the Lease's duration.
// - Times count from when the last acknowledged renewal was SENT. The operator sees it later. It
//   waits D from then, and only then gives the Lease to another holder.
// - At 2/3 D (terminate_at()) the agent asks the processes to end. At 49/60 D (kill_at()) it kills
//   them. By 5/6 D the agent has ended, too (kill_limit()). The last sixth is for clocks of other
//   rates.
// - If the Lease is refused, or somebody else's, the agent asks the processes to end at once, and
//   kills them after grace().
// - The agent gives up a request that takes too long, and ignores its answer. By then the Lease may
//   belong to somebody else.
// - A conflict is no verdict: the agent reads the Lease again before the next renewal. A failure is
//   no verdict, either.
// - Before the first renewal nothing depends on the Lease. It is polled until it is granted.
#pragma once

#include <optional>
#include <string>

#include "agent/base/lease_times.h"
#include "core/random.h"
#include "core/time.h"

namespace holdfast::agent {

class LeaseKeeper {
 public:
  LeaseKeeper(Duration duration, Random& random) : duration_(duration), random_(random) {}

  Duration duration() const { return duration_; }
  // When the last acknowledged renewal, or what counts as one, was sent; none before the first.
  std::optional<SteadyTime> renewed() const { return renewed_; }
  // The Lease was read since the last conflict, and is ours: the next request may renew it.
  bool may_renew() const { return may_renew_; }

  // The request in progress; one at most.
  void send(SteadyTime now) { sent_ = now; }
  bool in_progress() const { return sent_.has_value(); }
  // It is answered. Returns when it was sent.
  SteadyTime answered();
  // Its answer does not count any more. Returns whether there was one.
  bool give_up();
  // Gives it up if it takes too long, and says so; empty: it does not.
  std::string give_up_late(SteadyTime now);
  SteadyTime late_at() const { return *sent_ + request_limit(duration_); }

  void confirmed() { may_renew_ = true; }
  void acknowledged(SteadyTime sent);
  // An answer that is as good as a renewal for the deadlines, and for nothing else.
  void postpone(SteadyTime sent) { renewed_ = sent; }
  // The Lease is read again at once. After repeated conflicts there is a pause before each read.
  void conflict(SteadyTime now);
  // No verdict: it is tried again after a pause. Returns whether the last one failed for another
  // reason.
  bool failed(SteadyTime now, const std::string& why);
  // After failed(): the API server asks for this pause. One try is left until `latest`.
  void put_off(SteadyTime now, Duration asked, SteadyTime latest);
  // The next try is not later than this.
  void try_by(SteadyTime latest);

  // When the next request is due: a renewal, at `wanted` if that is earlier than its turn.
  SteadyTime due(SteadyTime wanted) const;

  // After the first renewal.
  SteadyTime terminate_at() const { return *renewed_ + terminate_after(duration_); }
  SteadyTime kill_at() const { return *renewed_ + kill_after(duration_); }
  // For humans: for how long no renewal was acknowledged, and why.
  std::string silence(SteadyTime now) const;

 private:
  // Constant after construction.
  const Duration duration_;
  Random& random_;

  std::optional<SteadyTime> sent_;
  std::optional<SteadyTime> renewed_;
  bool may_renew_ = false;
  SteadyTime not_before_{};  // no request before this time
  SteadyTime next_renewal_{};
  int conflicts_ = 0;  // in a row
  std::string last_failure_;
};

}  // namespace holdfast::agent
