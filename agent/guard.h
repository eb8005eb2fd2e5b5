// What decides: when the child may start, when the Lease is renewed, and when everything must die.
// Times and answers go in, orders come out; no clock, socket or process inside.
//
//   Guard guard(settings, random);
//   Orders orders = guard.begin(now);            // what to do now, in the order of its members
//   ... at orders.wake_at:            orders = guard.woke(now);
//   ... the API server has answered:  orders = guard.answered(now, answer);
//
// The rules, with D for the Lease's duration, counted from when the last acknowledged renewal was
// SENT: at 2/3 D the child is told to end, shortly before 5/6 D everything is killed. A Lease that
// is somebody else's does the same at once, with D/6 in between. There is no way back from that.
// A Lease that is gone is no renewal, and no verdict: its job may have been deleted, and the pod
// has its grace. From a signal that asks to end on it puts these deadlines off as a renewal does.
// Every call checks these deadlines before it looks at what it was called for: after a pause of any
// length nothing else comes first.
//
// What cannot be killed is not waited for: a few rounds of SIGKILL, and the agent ends all the
// same. As a container's first process it takes the others with it, whoever they belong to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/random.h"
#include "core/time.h"

namespace holdfast::agent {

struct GuardSettings {
  Duration duration{};                        // of the Lease
  std::optional<Duration> progress_deadline;  // none: the job has none
  std::int64_t attempt = 0;
  std::string holder;  // "<pod name>/<pod UID>"
};

struct LeaseView {
  std::string uid;
  std::string holder;
  std::int64_t attempt = 0;
};

// What became of a request. Only the first four say something about the Lease.
struct Answer {
  enum class Kind {
    kLease,     // 200: the Lease as it is now
    kConflict,  // 409: somebody has written it since it was read
    kGone,      // 404
    kFenced,    // 403 by the fence in the API server
    kNone,      // anything else: no verdict, try again
  };
  Kind kind = Kind::kNone;
  LeaseView lease;  // kLease
  std::string why;  // for people, of the others
};

struct Renewal {
  std::int64_t mark = 0;  // how often progress was seen
  std::int64_t age_seconds = 0;
  std::string message;
  std::optional<int> ended;  // the child's exit code: the last renewal
};

struct Orders {
  enum class Stop { kNone, kTerminate, kKill };
  // To the child's process group; kKill: to everything that descends from the agent.
  Stop stop = Stop::kNone;
  // What was asked before is no longer waited for.
  bool abort_request = false;
  // Start the child, unless this time has passed by then.
  std::optional<SteadyTime> start_before;
  // Read the Lease, or write this into it. At most one is under way.
  bool get = false;
  std::optional<Renewal> put;
  std::string say;  // a line for people, when not empty
  std::optional<int> exit_code;
  std::string fenced;     // why, with exit_code kFencedExitCode
  Duration last_words{};  // how long these may take then
  SteadyTime wake_at{};
};

class Guard {
 public:
  enum class Phase {
    kWaiting,  // for its turn; no child
    kRunning,
    kFencing,  // the child must die; no way back
    kEnding,   // the child has ended by itself: kill what it left, then the last renewal
    kDone,
  };

  Guard(GuardSettings settings, Random& random);

  Orders begin(SteadyTime now) { return woke(now); }
  // The time has come that was asked for, or an earlier one.
  Orders woke(SteadyTime now);
  // Only what the deadlines ask for. Whoever has other work to do calls this first.
  Orders deadlines(SteadyTime now);
  // Of the request that is under way; one that comes when none is changes nothing.
  Orders answered(SteadyTime now, const Answer& answer);
  Orders progressed(SteadyTime now, std::string message);
  Orders child_ended(SteadyTime now, int exit_code);
  // Nothing that descends from the agent is left. Also when the child had left nothing.
  Orders all_dead(SteadyTime now);
  // A signal that asks to end; the child, if there is one, has been told too.
  Orders told_to_end(SteadyTime now);

  Phase phase() const { return phase_; }
  // When the last acknowledged renewal, or what counts as one, was sent; none before the first.
  std::optional<SteadyTime> renewed() const { return renewed_; }

 private:
  struct Pending {
    bool put = false;
    bool last = false;  // carries the end mark
    std::int64_t mark = 0;
    SteadyTime sent{};
  };

  template <class Event>
  Orders step(SteadyTime now, Event event);
  void check_deadlines(SteadyTime now);
  void plan(SteadyTime now);
  SteadyTime renewal_due() const;

  void answered_waiting(SteadyTime now, const Pending& request, const Answer& answer);
  void answered_running(SteadyTime now, const Pending& request, const Answer& answer);
  void answered_ending(SteadyTime now, const Pending& request, const Answer& answer);
  void renewed(const Pending& request);
  // Why this Lease is not this attempt's any more; empty: it is.
  std::string lost(const LeaseView& lease) const;
  void failed(SteadyTime now, const std::string& why);
  void conflict(SteadyTime now);
  void wait(SteadyTime now, const std::string& why);
  void fence(SteadyTime kill_at, std::string why);
  void kill(SteadyTime now);
  void settle(SteadyTime now, SteadyTime give_up);
  void finish(int exit_code, std::string fenced = "");
  Duration about(Duration duration, double part);

  // Constant after construction.
  const GuardSettings settings_;
  Random& random_;

  Orders orders_;
  Phase phase_ = Phase::kWaiting;
  std::optional<Pending> pending_;
  std::optional<SteadyTime> renewed_;
  std::string uid_;          // the Lease's, from the first renewal on
  bool may_renew_ = false;   // the Lease was read since the last conflict, and is ours
  SteadyTime not_before_{};  // no request earlier
  SteadyTime next_renewal_{};
  int conflicts_ = 0;  // in a row
  std::string last_failure_;
  std::string waiting_why_;

  std::int64_t mark_ = 0;
  std::int64_t told_mark_ = 0;  // the last acknowledged
  std::string message_;
  SteadyTime last_progress_{};
  bool told_overdue_ = false;
  bool told_to_end_ = false;

  std::string fenced_why_;
  SteadyTime kill_at_{};
  SteadyTime kill_again_{};
  std::optional<SteadyTime> killed_;  // when for the first time
  bool settled_ = false;              // what the child left is dead, or was waited for long enough
  bool lost_ = false;                 // the Lease, when the child had ended already
  int child_exit_code_ = 0;
  SteadyTime give_up_{};  // the last renewal
};

}  // namespace holdfast::agent
