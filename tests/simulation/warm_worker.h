// One warm worker (docs/internals/workers.md): the agent in a worker's pod, and the commands that
// it runs. The code of the real agent decides (agent::Slots), and reads Leases and jobs. Simulated
// are the processes, the clock and the network. The world's scheduler calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/serve/slots.h"
#include "agent/wire/job_record.h"
#include "agent/wire/pool_leases.h"
#include "core/random.h"
#include "core/worker_protocol.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class WarmWorker {
 public:
  struct Settings {
    std::string namespace_, pod_name, pod_uid, node;
    int slots = 1;
    int life = 1;  // how often the pod's container has begun
    Duration lease_duration{0};
    Duration stop_grace{0};  // of a command
    Duration grace{0};       // of the pod, as its template has it
    SimLoop::Clock clock;
    std::uint64_t seed = 0;
  };
  // The behaviour of a command.
  struct Plan {
    Duration lasts{0};
    int exit_code = 0;
    bool hangs = false;  // it makes no progress and never ends
    bool ignores_sigterm = false;
    Duration sigterm_takes{0};
    int exit_code_on_sigterm = 143;
    Duration leftovers{0};  // its descendants outlive it for so long, if nobody kills them
  };
  // What the world knows and decides.
  struct World {
    std::function<bool()> reaches;  // the API server, both ways
    std::function<bool()> loses;    // this request, or this answer
    std::function<Plan(const AttemptId& id, const std::string& payload)> plan;
    std::function<void(const WarmWorker& worker, const AttemptId& id)> began;
    // By itself, with this exit code. Its descendants may live.
    std::function<void(const AttemptId& id, int exit_code)> ended;
    std::function<void(const AttemptId& id)> progressed;
    std::function<void(const AttemptId& id)> dead;  // the whole process tree
    std::function<void(int exit_code)> exits;
  };
  WarmWorker(Scheduler& scheduler, Gateway& gateway, Settings settings, World world);
  // The container is gone, and all of its processes.
  ~WarmWorker();

  void sigterm();
  // The agent alone stands still. Its commands go on.
  // Its commands end soon, as they were to end.
  void hurry();
  void freeze();
  void thaw();
  bool frozen() const { return loop_.paused(); }
  Duration thawed_at() const { return thawed_at_; }
  bool has_ended() const { return over_; }

  const Settings& settings() const { return settings_; }
  // Of its worker Lease, as it has read that; empty: it has not.
  std::string lease_uid() const { return lease_.uid(); }
  std::string holder() const { return settings_.pod_name + "/" + settings_.pod_uid; }
  agent::Slots::Phase phase() const { return slots_.phase(); }
  bool draining() const { return slots_.draining(); }
  // Since when it has known the real end of its pod; none: it has not.
  std::optional<Duration> knows_end_since() const { return knows_end_; }
  // A command runs that was not asked to end; anything of one is alive.
  bool has_unasked() const;
  bool has_alive() const;
  // In the world's time: when the API server last took a renewal. None: never.
  std::optional<Duration> renewed_at() const { return renewed_at_; }

 private:
  struct Child {
    AttemptId id;
    Plan plan;
    bool runs = false;       // the command itself
    bool alive = false;      // it, or what it left
    bool signalled = false;  // SIGTERM was sent
    bool asked = false;      // and it obeys
    std::int64_t checkpoints = 0;
    std::optional<Duration> progress_deadline;
    std::vector<Scheduler::EventId> events;
  };
  struct Look {
    std::uint64_t number = 0;
    AttemptId id;
    agent::JobAnswer answer;
  };
  using Handler = std::function<void(std::optional<ApiAnswer>)>;

  template <class Event>
  void notify(Event event);
  void obey(const agent::SlotOrders& orders);
  void set_timer(SteadyTime due);
  // Requests.
  Duration latency();
  void send(const std::string& method, const std::string& path, std::string body, Handler handler);
  void get_work();
  void write_worker(const std::optional<WorkerReport>& report);
  std::optional<ApiAnswer> fence(const std::string& method, const std::string& path) const;
  void look(const agent::SlotOrders::Look& look, bool for_message);
  // The watch of the work Lease, as agent/wire/work_watch.h has it.
  void seen(const agent::WorkReading& reading);
  void hears(const agent::WorkReading& reading);
  void open_watch();
  void line_has_come(const std::string& line);
  void watch_again();
  void close_watch();
  // Commands.
  void start(const agent::SlotOrders::Start& start);
  void child_ends(int slot, int exit_code);
  void child_is_dead(int slot);
  void child_works(int slot);
  void ask_to_end(int slot);
  void kill(int slot);
  Child& child(int slot) { return children_[static_cast<std::size_t>(slot)]; }
  void later(Child& child, Duration delay, std::function<void()> what);
  void end(int exit_code);

  Scheduler& scheduler_;
  Gateway& gateway_;
  const Settings settings_;
  const World world_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  SimLoop loop_;
  SeededRandom random_;
  agent::Slots slots_;
  const agent::WorkLease work_;
  agent::WorkerLease lease_;
  std::uint64_t request_ = 0;
  std::uint64_t look_number_ = 0;
  std::vector<Look> looks_;      // by slot
  std::vector<Child> children_;  // by slot
  TimerId timer_ = 0;
  std::optional<Duration> renewed_at_;
  std::optional<Duration> knows_end_;
  Duration thawed_at_{0};
  bool over_ = false;
  // The watch.
  bool begun_ = false;
  bool open_ = false;
  bool deaf_ = false;  // a line was lost: nothing more comes, and it does not end
  std::uint64_t watch_number_ = 0;
  WatchId watch_ = 0;
  std::string version_;
  std::int64_t seq_ = 0;
  Duration pause_{0};
};

}  // namespace holdfast::simulation
