// `holdfast-agent serve`: carries out the orders of Slots (agent/serve/slots.h) on a warm worker,
// on an AgentLoop.
//
//   PoolAgent agent(settings, {"resize", "--fast"}, false);
//   return agent.run();              // the exit code of the process
//
// Before each event it checks the deadlines of Slots.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/agent_loop.h"
#include "agent/base/file_thread.h"
#include "agent/serve/output.h"
#include "agent/serve/serve_settings.h"
#include "agent/serve/slot_runner.h"
#include "agent/serve/slots.h"
#include "agent/wire/api_client.h"
#include "agent/wire/job_looks.h"
#include "agent/wire/lease_calls.h"
#include "agent/wire/pool_leases.h"
#include "agent/wire/work_watch.h"
#include "core/random.h"

namespace holdfast::agent {

class PoolAgent : private SlotRunner::Listener {
 public:
  // Call block_signals() first. With `no_op` each attempt ends at once, and no command runs.
  PoolAgent(ServeSettings settings, std::vector<std::string> command, bool no_op);

  int run();

 private:
  enum class LookFor { kStart, kMessage };
  // The look at the job of a slot's attempt.
  struct PendingLook {
    AttemptId id;
    std::uint64_t request = 0;
    std::uint64_t number = 0;  // of the look; answers to others are late
  };

  void happened(int slot, SlotEvent event) override;
  void says(std::string line) override;

  void time_has_come();
  void signals_have_come();
  void reap();
  void kill_orphans_of_slots();
  void tick();
  // Checks the deadlines, and then gives Slots the event. Nothing after the end.
  template <class Event>
  void notify(Event event);
  void obey(const SlotOrders& orders);
  void stop(const SlotOrders& orders);
  void send(const SlotOrders& orders);
  void get_work();
  void write_worker(const std::optional<WorkerReport>& report);
  void look(const SlotOrders::Look& look, LookFor purpose);
  bool is_pending(const SlotOrders::Look& look, std::uint64_t number) const;
  void job_read(const SlotOrders::Look& look, LookFor purpose, std::uint64_t number,
                const ApiReply& reply);
  void looked(const SlotOrders::Look& look, LookFor purpose, std::uint64_t number,
              JobReading reading, const std::string& why);
  void end(const SlotOrders& orders);
  void write_lines();

  // Constant after construction.
  const ServeSettings settings_;
  const bool no_op_;

  AgentLoop loop_;
  SeededRandom random_;
  Slots slots_;
  const WorkLease work_;
  WorkerLease worker_;
  LeaseCalls calls_;
  JobLooks looks_;
  WorkWatch watch_;
  Output out_;
  Output err_;
  FileThread files_;  // for stderr
  std::vector<std::unique_ptr<SlotRunner>> runners_;
  std::vector<PendingLook> slot_looks_;
  std::uint64_t look_numbers_ = 0;
  SteadyTime wake_at_{};
};

}  // namespace holdfast::agent
