// Decides when the child may start, when the Lease is renewed, and when everything must die. Times
// and answers go in, orders come out. No clock, socket or process inside.
//
//   Guard guard(settings, random);
//   Orders orders = guard.begin(now);            // what to do now, in the order of its members
//   ... at orders.wake_at:            orders = guard.woke(now);
//   ... the API server has answered:  orders = guard.answered(now, answer);
//
// The rules. D is the Lease's duration; times count from the moment when the last acknowledged
// renewal was SENT.
// - At 2/3 D the agent asks the child to end. Shortly before 5/6 D it kills everything.
// - If the Lease belongs to somebody else, the agent asks at once, and kills D/6 later.
// - Nothing undoes these steps.
// - A missing Lease is no renewal, and no verdict: the job may have been deleted, and the pod has
//   its grace. After a signal that asks the agent to end, a missing Lease postpones the deadlines
//   as a renewal does.
// - A pause that the API server asks for is kept, but it always leaves time for one more try.
// - A command that ends with a deferred exit code runs again in the same pod, after its pause. The
//   attempt stays the same. Meanwhile the Lease is renewed, and each renewal is progress.
// - Every call checks the deadlines first, so they come first after a pause of any length.
//
// The agent does not wait for processes that cannot be killed: it ends after a few rounds of
// SIGKILL. It is the container's first process, so its end kills all others.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/wire/lease_answer.h"
#include "core/random.h"
#include "core/time.h"

namespace holdfast::agent {

// The job's rule for an exit code that means "not yet".
struct Deferral {
  int exit_code = 0;
  Duration pause{};        // until the command runs again
  std::int64_t limit = 0;  // in a row, with those of earlier attempts
};

struct GuardSettings {
  Duration duration{};                        // of the Lease
  std::optional<Duration> progress_deadline;  // the job's, if it has one
  std::int64_t attempt = 0;
  std::string holder;  // "<pod name>/<pod UID>"
  std::vector<Deferral> deferrals = {};
  std::int64_t deferred_before = 0;  // in a row, by earlier attempts
};

struct Orders {
  enum class Stop { kNone, kTerminate, kKill };
  // kTerminate: the child's process group. kKill: all descendants of the agent.
  Stop stop = Stop::kNone;
  // Give up the request in progress.
  bool abort_request = false;
  // Start the child, for the first time or again, but not after this time.
  std::optional<SteadyTime> start_before;
  // Read the Lease, or write this renewal into it. At most one request is in progress.
  bool get = false;
  std::optional<Renewal> put;
  // The API server has the checkpoint with this number.
  std::optional<std::int64_t> kept;
  std::string say;  // a line for humans, if not empty
  std::optional<int> exit_code;
  std::string fenced;     // why; with exit_code kFencedExitCode
  Duration last_words{};  // how long leave_last_words() may take then
  SteadyTime wake_at{};
};

class Guard {
 public:
  enum class Phase {
    kWaiting,  // for the Lease's grant; no child
    kRunning,
    kFencing,  // the child must die; no way back
    kEnding,   // the child has ended by itself: kill its descendants, then the last renewal
    kDone,
  };

  Guard(GuardSettings settings, Random& random);

  Orders begin(SteadyTime now) { return woke(now); }
  // At `wake_at`, or earlier.
  Orders woke(SteadyTime now);
  // Only checks the deadlines. Call it before other work.
  Orders deadlines(SteadyTime now);
  // The answer to the request in progress. Ignored if there is none.
  Orders answered(SteadyTime now, const Answer& answer);
  Orders progressed(SteadyTime now, std::string message);
  // Numbers rise. The renewal that carries it comes soon.
  Orders checkpointed(SteadyTime now, std::int64_t number, std::string text);
  Orders child_ended(SteadyTime now, int exit_code);
  // No descendant of the agent is left. Call it even if the child left none.
  Orders all_dead(SteadyTime now);
  // A signal asked the agent to end. The child, if any, has received it too.
  Orders told_to_end(SteadyTime now);

  Phase phase() const { return phase_; }
  // The command has said "not yet", and does not run now.
  bool resting() const { return phase_ == Phase::kRunning && resting_; }
  // When the last acknowledged renewal (or its equivalent) was sent; none before the first.
  std::optional<SteadyTime> renewed() const { return renewed_; }

 private:
  struct Pending {
    bool put = false;
    bool last = false;  // carries the end mark
    std::int64_t mark = 0;
    std::int64_t checkpoint = 0;
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
  // Why the Lease no longer belongs to this attempt; empty: it does.
  std::string lost(const LeaseView& lease) const;
  void failed(SteadyTime now, const std::string& why, std::optional<Duration> asked = std::nullopt);
  void put_off(SteadyTime now, Duration asked);
  void conflict(SteadyTime now);
  void wait(SteadyTime now, const std::string& why);
  void fence(SteadyTime kill_at, std::string why);
  void kill(SteadyTime now);
  void settle(SteadyTime now, SteadyTime give_up);
  void finish(int exit_code, std::string fenced = "");
  const Deferral* deferral(int exit_code) const;
  void rest(SteadyTime now, int exit_code, Duration pause);
  void end_rest(SteadyTime now);
  void end_resting_pod(SteadyTime now);

  // Constant after construction.
  const GuardSettings settings_;
  Random& random_;

  Orders orders_;
  Phase phase_ = Phase::kWaiting;
  std::optional<Pending> pending_;
  std::optional<SteadyTime> renewed_;
  std::string uid_;          // the Lease's, from the first renewal on
  bool may_renew_ = false;   // the Lease was read since the last conflict, and is ours
  SteadyTime not_before_{};  // no request before this time
  SteadyTime next_renewal_{};
  int conflicts_ = 0;  // in a row
  std::string last_failure_;
  std::string waiting_why_;

  std::int64_t mark_ = 0;
  std::int64_t told_mark_ = 0;  // in the last acknowledged renewal
  std::string message_;
  std::int64_t checkpoint_ = 0;  // the number of the last one; zero: none
  std::int64_t kept_ = 0;        // in an acknowledged renewal
  std::string checkpoint_text_;
  SteadyTime last_progress_{};
  bool told_overdue_ = false;
  bool told_to_end_ = false;

  bool resting_ = false;  // after a deferral, until the command runs again
  bool swept_ = false;    // none of the command's descendants is left then
  SteadyTime again_at_{};
  std::int64_t deferrals_ = 0;  // of this attempt

  std::string fenced_why_;
  SteadyTime kill_at_{};
  SteadyTime kill_again_{};
  std::optional<SteadyTime> killed_;  // the first SIGKILL
  bool settled_ = false;              // the child's descendants are dead or given up
  bool lost_ = false;                 // the Lease was lost after the child's end
  int child_exit_code_ = 0;
  SteadyTime give_up_{};  // when to give up the last renewal
};

}  // namespace holdfast::agent
