// Decides when the child may start, when the Lease is renewed, and when everything must die. Times
// and answers go in, orders come out. No clock, socket or process inside.
//
//   Guard guard(settings, random);
//   Orders orders = guard.begin(now);            // what to do now, in the order of its members
//   ... at orders.wake_at:            orders = guard.woke(now);
//   ... the API server has answered:  orders = guard.answered(now, reading);
//
// The rules, with those of agent/base/lease_keeper.h. D is the Lease's duration.
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

#include "agent/base/command_reports.h"
#include "agent/base/kill_rounds.h"
#include "agent/base/lease_keeper.h"
#include "agent/run/lease_grant.h"
#include "agent/run/rests.h"
#include "agent/wire/lease_answer.h"
#include "core/random.h"
#include "core/time.h"

namespace holdfast::agent {

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
  // The answer to the request in progress. Ignored if no request is in progress.
  Orders answered(SteadyTime now, const LeaseReading& reading);
  Orders progressed(SteadyTime now, std::string message);
  // Numbers rise. The renewal that carries it comes soon.
  Orders checkpointed(SteadyTime now, std::int64_t number, std::string text);
  Orders child_ended(SteadyTime now, int exit_code);
  // No descendant of the agent is left. Call it even if the child left none.
  Orders all_dead(SteadyTime now);
  // A signal asked the agent to end. The child, if any, has received it too.
  Orders asked_to_end(SteadyTime now);

  Phase phase() const { return phase_; }
  // The command has said "not yet", and does not run now.
  bool resting() const { return phase_ == Phase::kRunning && rest_.lasts(); }
  // When the last acknowledged renewal (or its equivalent) was sent; none before the first.
  std::optional<SteadyTime> renewed() const { return lease_.renewed(); }

 private:
  // The request in progress.
  struct Request {
    bool put = false;
    bool last = false;  // carries the end mark
  };

  template <class Event>
  Orders step(SteadyTime now, Event event);
  void check_deadlines(SteadyTime now);
  void plan(SteadyTime now);
  void plan_request(SteadyTime now);
  // Throws if what must agree does not (core/invariant.h).
  void check() const;

  void granted(SteadyTime now, SteadyTime sent, const LeaseView& lease);
  void held(SteadyTime now, SteadyTime sent, const LeaseView& lease);
  void refused(SteadyTime now, SteadyTime sent, const LeaseRefusal& refusal);
  void last_answer(bool lost);
  void acknowledged(SteadyTime sent);
  void failed(SteadyTime now, const std::string& why, std::optional<Duration> asked = std::nullopt);
  void fence(SteadyTime kill_at, std::string why);
  void kill(SteadyTime now);
  void settle(SteadyTime now, SteadyTime give_up);
  void finish(int exit_code, std::string fenced = "");
  void end_rest(SteadyTime now);
  void end_resting_pod(SteadyTime now);

  // Constant after construction.
  const std::optional<Duration> progress_deadline_;

  Orders orders_;
  Phase phase_ = Phase::kWaiting;
  LeaseKeeper lease_;
  LeaseGrant grant_;
  Request request_;
  CommandReports reports_;
  Rests rest_;
  bool asked_to_end_ = false;

  std::string fenced_why_;
  KillRounds rounds_;
  int child_exit_code_ = 0;
  bool lost_ = false;  // the Lease was, after the child's end
  // When to give up the last renewal. Set: the child's descendants are dead or given up.
  std::optional<SteadyTime> give_up_;
};

}  // namespace holdfast::agent
