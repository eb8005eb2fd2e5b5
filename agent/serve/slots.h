// Decides what the agent of a warm worker does (docs/internals/workers.md). It says which attempts
// begin and end on the slots, when to renew the worker Lease, and when everything must die. Times
// and answers go in, orders come out. No clock, socket or process inside.
//
//   Slots slots(settings, random);
//   SlotOrders orders = slots.begin(now);        // what to do now, in the order of its members
//   ... at orders.wake_at:            orders = slots.woke(now);
//   ... the watch has an event:       orders = slots.watched(now, reading);
//   ... the API server has answered:  orders = slots.work_answered(now, reading);
//
// The rules, with those of agent/base/lease_keeper.h. D is the worker Lease's duration.
// - Before the first renewal the agent reads the worker Lease. With the mark of another process or
//   another holder, this process never serves. It ends.
// - An attempt begins at most once, within 2/3 D, after a live look at its job. It does not begin
//   if its entry has ever said `stop`, or if the worker drains.
// - At 2/3 D with an attempt alive the agent fences itself: it asks all commands to end. Shortly
//   before 5/6 D it kills everything, and then it ends. Without an attempt it only waits, however
//   long the outage is. It begins nothing before the next renewal.
// - The agent fences itself at once if the worker Lease is refused, gone, or somebody else's. It
//   does the same if the work Lease is gone or made again. Then everything is dead within D/6.
// - The agent fences itself at once if the work Lease was set back (agent/serve/work_seen.h).
// - Nothing undoes a fence.
// - A renewal goes out each third of D, and at once if an attempt is over. On a busy worker it
//   waits 25 ms after the last one for each other attempt, so that several ends share it. An answer
//   is in each report until its entry is gone. After a start, progress or a checkpoint the renewal
//   waits a little.
// - A renewal echoes only a work Lease that was read after the last renewal was sent, or is younger
//   than a second (D/30 of a short Lease). If the watch was quiet, the agent reads it first.
// - If the agent does not understand a version of the work Lease, it changes and echoes nothing.
// - Before the pod ends (agent/serve/pod_grace.h) all commands end. Their answer is `stopped`. The
//   agent ends as soon as all entries are gone, and at the pod's end.
// - If processes cannot be killed, the worker drains. When only they are left, it ends, and the
//   kernel kills them. Their attempts have no answer: they are lost.
// - Every call checks the deadlines first, so they come first after a pause of any length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "agent/base/kill_rounds.h"
#include "agent/base/lease_keeper.h"
#include "agent/serve/attempts.h"
#include "agent/serve/pod_grace.h"
#include "agent/serve/slot_event.h"
#include "agent/serve/slot_orders.h"
#include "agent/serve/work_seen.h"
#include "agent/wire/readings.h"
#include "core/random.h"
#include "core/time.h"
#include "core/worker_protocol.h"

namespace holdfast::agent {

struct SlotSettings {
  Duration duration{};  // of the worker Lease
  int slots = 1;
  std::string holder;                              // "<pod name>/<pod UID>"
  std::string life;                                // this process' own mark; not empty
  Duration stop_grace = std::chrono::seconds(30);  // of a command, between SIGTERM and SIGKILL
  Duration pod_grace = std::chrono::seconds(30);   // as the pod's template has it
};

class Slots {
 public:
  enum class Phase {
    kStarting,  // before the first acknowledged renewal
    kServing,
    kFencing,  // everything must die; no way back
    kDone,
  };

  Slots(SlotSettings settings, Random& random);

  SlotOrders begin(SteadyTime now) { return woke(now); }
  // At `wake_at`, or earlier.
  SlotOrders woke(SteadyTime now);
  // Only checks the deadlines. Call it before other work.
  SlotOrders deadlines(SteadyTime now);

  // An event of the watch of the work Lease.
  SlotOrders watched(SteadyTime now, const WorkReading& reading);
  // The answer to the request in progress. Ignored if there is no such request.
  SlotOrders work_answered(SteadyTime now, const WorkReading& reading);
  SlotOrders worker_answered(SteadyTime now, const WorkerReading& reading);
  SlotOrders looked(SteadyTime now, const AttemptId& id, const JobReading& reading);

  // The answer to `messages`, once the command has the message.
  SlotOrders message_read(SteadyTime now, const AttemptId& id, const JobReading& reading);

  // What has become of the command of the slot.
  SlotOrders happened(SteadyTime now, int slot, SlotEvent event);
  // SIGTERM. The commands have not received it.
  SlotOrders asked_to_end(SteadyTime now);

  Phase phase() const { return phase_; }
  bool draining() const { return draining_; }
  // When the last acknowledged renewal was sent; none before the first.
  std::optional<SteadyTime> renewed() const { return lease_.renewed(); }

 private:
  enum class Wants { kWork, kWorker, kRenewal };
  // The request in progress.
  struct Request {
    Wants wants = Wants::kWork;
    std::int64_t news = 0;
    bool draining = false;
  };

  template <class Event>
  SlotOrders step(SteadyTime now, Event event);
  void check_deadlines(SteadyTime now);
  void check_grace(SteadyTime now);
  void plan(SteadyTime now);
  void plan_end();
  void plan_request(SteadyTime now);
  SteadyTime report_wanted() const;
  void wake(SteadyTime when);
  // Throws if what must agree does not (core/invariant.h).
  void check() const;

  // `asked`: when it was asked for; none: the watch has it.
  void read_work(SteadyTime now, const WorkView& view, std::optional<SteadyTime> asked);
  void work_is_gone(SteadyTime now, const std::string& why);
  void worker_refused(SteadyTime now, const LeaseRefusal& refusal);
  void acknowledged(SteadyTime sent);
  // Why the worker Lease is not this process'; empty: it is.
  std::string lost(const WorkerView& view) const;
  void failed(SteadyTime now, const std::string& why, std::optional<Duration> asked = std::nullopt);
  void drain(const std::string& why);
  void fence(SteadyTime now, SteadyTime kill_at, std::string why);
  void finish(int exit_code, std::string fenced = "");
  bool over() const { return phase_ == Phase::kFencing || phase_ == Phase::kDone; }

  // Constant after construction.
  const SlotSettings settings_;

  SlotOrders orders_;
  Phase phase_ = Phase::kStarting;
  Attempts attempts_;

  // The two Leases. Their UIDs are fixed once a renewal has named them.
  LeaseKeeper lease_;  // the worker Lease
  std::string worker_uid_;
  WorkSeen work_;
  bool named_ = false;
  Request request_;
  std::int64_t recorded_news_ = 0;  // in an acknowledged renewal

  bool draining_ = false;
  bool recorded_draining_ = false;  // in an acknowledged renewal
  PodGrace pod_;
  bool stopping_ = false;  // all commands, as the pod ends

  std::string fenced_why_;
  KillRounds rounds_;
};

}  // namespace holdfast::agent
