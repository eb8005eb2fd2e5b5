// The attempts of one worker, from their entries in the work Lease to their answers in the worker
// Lease. Part of Slots, which decides when anything may begin: see agent/serve/slots.h.
//
//   kWaits -> kLooks -> kRuns -> kDies -> kOver
//
// - An attempt gets its slot with the look at its job, and keeps it until nothing of it is alive.
//   Attempts that find no slot wait, in the order of the entries.
// - A look without a verdict gives the slot back, and is repeated after a pause.
// - Once the command has ended, or must not go on, the agent kills its processes until all are
//   dead. Only then there is an answer. The command's end or the order to stop decides it,
//   whichever came first.
// - If an entry is gone, the agent kills its processes at once.
// - If processes do not die, the worker can neither answer nor use the slot: it is stuck.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/command_reports.h"
#include "agent/base/kill_rounds.h"
#include "agent/serve/slot_event.h"
#include "agent/serve/slot_orders.h"
#include "agent/wire/readings.h"
#include "core/random.h"
#include "core/time.h"
#include "core/worker_protocol.h"

namespace holdfast::agent {

class Attempts {
 public:
  struct Settings {
    int slots = 1;
    Duration duration{};    // of the Lease
    Duration stop_grace{};  // between SIGTERM and SIGKILL
  };
  Attempts(Settings settings, Random& random);

  // A newer version of the work Lease.
  void apply(SteadyTime now, const Work& work, SlotOrders& orders);
  // Ignored if no such look is in progress. Nothing begins at `begin_before` or later.
  void looked(SteadyTime now, const AttemptId& id, const JobReading& reading,
              SteadyTime begin_before, SlotOrders& orders);
  // The job was read for its message, and the command has that. kNone: it has not.
  void message_read(SteadyTime now, const AttemptId& id, const JobReading& reading,
                    SlotOrders& orders);
  // A command that did not begin has its job looked at again, after a pause.
  void happened(SteadyTime now, int slot, SlotEvent event, SlotOrders& orders);

  // Nothing begins from now on. Hands back all attempts that have not begun.
  void drain(SlotOrders& orders);
  // Asks all commands to end, and kills them after their grace.
  void stop_all(SteadyTime now, SlotOrders& orders);
  // Whoever was asked to end is killed then at the latest. A later time may take its place.
  void kill_by(SteadyTime when) { kill_by_ = when; }
  void check_deadlines(SteadyTime now, SlotOrders& orders);
  // Looks at jobs, if something may begin, and wakes.
  void plan(SteadyTime now, std::optional<SteadyTime> begin_before, SlotOrders& orders);

  // For a renewal that is sent now.
  std::vector<Answer> answers(SteadyTime now);
  // The API server has this report.
  void recorded(const WorkerReport& report, SlotOrders& orders);
  // Grows with each piece of news that a renewal should carry at once.
  std::int64_t news() const { return news_; }
  // When the progress and the checkpoints of those that run should be reported.
  SteadyTime report_due(SteadyTime renewed) const;

  // A process of an attempt may be alive.
  bool alive() const;
  bool empty() const { return all_.empty(); }
  int count() const { return static_cast<int>(all_.size()); }
  // Processes do not die. `only`: there is nothing else.
  bool stuck() const;
  bool only_stuck() const;
  // Throws if the attempts disagree (core/invariant.h).
  void check() const;

 private:
  enum class State { kWaits, kLooks, kRuns, kDies, kOver };
  // The look at the job, and later the looks at its message.
  struct JobLook {
    SteadyTime not_before{};
    SteadyTime sent{};
    std::string last_failure;
  };
  // The numbers of the job's message, as its entry counts them.
  struct Message {
    std::int64_t asked = 0;  // the entry's
    std::int64_t sent = 0;   // with the last look
    std::int64_t got = 0;    // by the command
    bool reads = false;      // a look for it is in progress
  };
  struct One {
    AttemptId id;
    std::string job_name;
    State state = State::kWaits;
    int slot = -1;
    bool gone = false;  // its entry is; it is forgotten when it is dead
    JobLook look;
    Message message;
    // The end. Before kOver, `kind` says how it will end.
    std::optional<SteadyTime> asked;  // to end
    KillRounds rounds;
    bool stuck = false;
    AnswerKind kind = AnswerKind::kRunning;
    int exit_code = 0;
    std::string result;
    bool recorded = false;  // the API server's last report has the answer
    CommandReports reports;

    bool alive() const { return state == State::kRuns || state == State::kDies; }
    bool has_slot() const { return alive() || state == State::kLooks; }
    bool lacks_message() const {
      return state == State::kRuns && !gone && !asked && message.asked > message.got;
    }
    void give_slot_back() {
      state = State::kWaits;
      slot = -1;
    }
  };

  std::optional<int> free_slot() const;
  void read_message(SteadyTime now, One& one, SlotOrders& orders);
  void hand_back(One& one, SlotOrders& orders);
  void stop(SteadyTime now, One& one, SlotOrders& orders);
  SteadyTime kill_at(const One& one) const {
    return std::min(*one.asked + settings_.stop_grace, kill_by_);
  }
  void die(SteadyTime now, One& one, AnswerKind kind, SlotOrders& orders);
  void all_dead(One& one);
  void missed(SteadyTime now, One& one, SlotOrders& orders);
  void is_over(One& one, AnswerKind kind);
  void put_off(SteadyTime now, One& one, const std::string& why, std::optional<Duration> asked,
               SlotOrders& orders);
  void forget_gone();

  // Constant after construction.
  const Settings settings_;
  Random& random_;

  std::vector<One> all_;  // in the order in which their entries came
  bool draining_ = false;
  SteadyTime kill_by_ = SteadyTime::max();
  std::int64_t news_ = 0;
};

}  // namespace holdfast::agent
