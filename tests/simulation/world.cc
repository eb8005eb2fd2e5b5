#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include "reconciler/names.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr milliseconds kTick{500};
// Everything goes on within a minute of the faults' end; reflectors and queues have backed off.
constexpr seconds kRecovery{90};
// For a job to end once nothing is in its way: windows, budgets and back-offs are minutes at most.
constexpr minutes kSettleLimit{40};
// One after the other, in a queue of one; or on warm workers by an only replica that works for 8 s
// of each 25 s.
constexpr minutes kSlowSettleLimit{240};
constexpr minutes kRest{4};
constexpr int kOftenKilled = 0;

// Some resources have far higher versions than others.
std::int64_t versions_of(std::uint64_t seed, const std::string& target) {
  const std::string path = target.substr(0, target.find('?')) + "/";
  for (const char* const resource :
       {"pods", "leases", "nodes", "durablejobs", "jobqueues", "jobs", "workerpools"}) {
    if (path.find(std::string("/") + resource + "/") == std::string::npos) continue;
    return static_cast<std::int64_t>(mix(seed, reconciler::hash64(resource)) % 4) * 1'000'000;
  }
  return 0;
}

}  // namespace

World::World(Options options)
    : options_(std::move(options)),
      strikes_(options_.selection),
      server_([this] { return built_ ? gateway_.wall_clock() : Gateway::beginning(); },
              mix(options_.script.seed, 1)),
      gateway_(scheduler_, server_, mix(options_.script.seed, 2)),
      network_(scheduler_, gateway_, strikes_, mix(options_.script.seed, 3)),
      cluster_(scheduler_, gateway_, strikes_, mix(options_.script.seed, 4)),
      workers_(scheduler_, gateway_, cluster_, strikes_, mix(options_.script.seed, 5)),
      ledger_(scheduler_, gateway_, cluster_, workers_),
      guard_(server_, scheduler_, [this](const std::string& what) { ledger_.complain(what); }),
      users_(scheduler_, gateway_, ledger_, strikes_),
      others_(scheduler_, gateway_),
      liveness_(scheduler_, gateway_, cluster_, network_, ledger_, workers_),
      states_(gateway_, cluster_) {
  built_ = true;
  ledger_.on_violation = [this] {
    violated_at_ = scheduler_.now();
    trace("VIOLATION " + ledger_.violation());
    scheduler_.stop();
  };
  ledger_.receivers(receivers_);
  network_.slower_server = options_.script.slower_server;
  if (options_.script.own_versions) {
    network_.versions_from = [seed = options_.script.seed](const std::string& target) {
      return versions_of(seed, target);
    };
  }
  ledger_.shards(options_.script.shards);
  cluster_.on_overlap = [this](const std::string& what) {
    ledger_.complain("S22 OnePlace: " + what);
  };
  cluster_.agents(&workers_);
  workers_.complain = [this](const std::string& what) { ledger_.complain(what); };
  server_.on_applied([this](const Applied& write) { applied(write); });
  network_.on_send = [this](const Delivery& delivery) { ledger_.sent(delivery); };
  network_.on_answer = [this](const Delivery& delivery, const ApiAnswer& answer) {
    ledger_.answered(delivery, answer);
  };
  gateway_.fate_of = [this](const ApiRequest& request) { return fate_of(request); };
  gateway_.on_quota = [this] { strikes_.fired(Act::kQuota); };
  gateway_.before_request = [this](const Delivery& delivery) { ledger_.arrives(delivery); };
  gateway_.after_request = [this](const Delivery& delivery, const ApiAnswer& answer) {
    if (options_.trace && delivery.request.method != "GET") {
      trace("  " + delivery.request.user + " " + delivery.request.method + " " +
            delivery.request.target + " -> " + std::to_string(answer.status) +
            (delivery.copy != 0 ? " (second delivery)" : ""));
    }
    ledger_.handled(delivery, answer);
  };
}

World::~World() = default;

void World::trace(const std::string& line) {
  trace_hash_ = mix(trace_hash_, reconciler::hash64(line));
  trace_hash_ = mix(trace_hash_, static_cast<std::uint64_t>(scheduler_.now().count()));
  if (!options_.trace) return;
  std::fprintf(options_.trace, "%12.6f %s\n", to_seconds(scheduler_.now()), line.c_str());
}

void World::applied(const Applied& write) {
  if (write.resource != "leases") ++writes_;
  const Json& object = write.after ? *write.after : *write.before;
  const Json& meta = at(object, "metadata");
  std::string line = write.resource + " " + key_of(object) + " v" +
                     string_at(meta, "resourceVersion") + (write.after ? "" : " gone");
  if (write.request) line += " by " + write.request->user;
  if (write.resource == "durablejobs" || write.resource == "pods") {
    const Json& status = at(object, "status");
    line += " " + string_at(status, "phase");
    if (at(meta, "deletionTimestamp").is_string()) line += " deleting";
    if (write.resource == "durablejobs") {
      line += "(" + std::to_string(int_at(status, "attempt")) + ") [" +
              string_at(at(status, "waiting"), "reason") + "]";
      const Json& history = at(status, "history");
      if (!history.empty()) {
        line += " last " + string_at(history.back(), "outcome") + " (" +
                string_at(history.back(), "reason") + ")";
      }
    } else {
      line += " on " + string_at(at(object, "spec"), "nodeName");
    }
  } else if (write.resource == "jobqueues") {
    const Json& status = at(object, "status");
    line += " runs " + std::to_string(int_at(status, "running")) + " waits " +
            std::to_string(int_at(status, "waiting")) + " admits " +
            std::to_string(at(status, "admitting").size()) + " held by " +
            string_at(status, "holderIdentity");
  } else if (write.resource == "leases" && write.after) {
    line += " held by " + string_at(at(object, "spec"), "holderIdentity");
  }
  trace(line);
  ledger_.applied(write);
  guard_.applied(write);
  if (write.resource == "jobqueues") liveness_.queue_written(key_of(object));
  gateway_.changed();
  std::uint64_t up = 0;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (seats_[i].replica && !seats_[i].replica->paused()) up |= std::uint64_t{1} << i;
  }
  if (write.resource == "pods") {
    cluster_.pod_changed(write.before, write.after);
    if (write.after) states_.seen_pod(*write.after, up);
  } else if (write.resource == "durablejobs" && write.after) {
    states_.seen_job(*write.after, up);
  }
}

// ---- Replicas.

void World::start_replica(int index) {
  Seat& seat = seats_[static_cast<std::size_t>(index)];
  if (seat.replica) return;
  Replica::Config config;
  config.index = index;
  config.life = ++seat.lives;
  config.seed =
      mix(mix(options_.script.seed, 0x5EED), mix(static_cast<std::uint64_t>(index), seat.lives));
  config.clock = options_.script.clocks[static_cast<std::size_t>(index)];
  config.receivers = &receivers_;
  config.shards = options_.script.shards;
  config.batch_jobs = options_.script.lane;
  config.requires_guard = options_.script.guard;
  config.rescues = options_.script.rescue;
  if (options_.script.by_namespace) {
    config.namespaces.assign(std::begin(kNamespaces), std::end(kNamespaces));
  }
  config.log = options_.log.with({{"replica", std::to_string(index)}});
  config.on_hot_loop = [this, index] {
    ledger_.complain("a hot loop in replica " + std::to_string(index));
  };
  config.on_exception = [this, index] {
    ledger_.complain("a reconcile of replica " + std::to_string(index) + " threw an exception");
  };
  config.on_refusal = [this](const Error& error) {
    ledger_.complain("a replica refuses to work: " + error.message);
  };
  if (config.clock.rate_ppm != 1'000'000 && seat.lives == 1) strikes_.fired(Act::kClockDrift);
  trace("replica " + std::to_string(index) + " starts");
  seat.replica = std::make_unique<Replica>(scheduler_, network_, std::move(config));
  if (!is_often_killed(index)) liveness_.replica_changed();
}

void World::crash(int index, Duration down_for) {
  Seat& seat = seats_[static_cast<std::size_t>(index)];
  if (!seat.replica) return;
  trace("replica " + std::to_string(index) + " crashes");
  seat.replica.reset();
  if (!is_often_killed(index)) liveness_.replica_changed();
  scheduler_.after(down_for, [this, index] { start_replica(index); });
}

// Before any window of more than a few seconds can end in one life.
void World::kill_often() {
  scheduler_.after(options_.script.kills_every, [this] {
    crash(kOftenKilled, milliseconds(300));
    kill_often();
  });
}

bool World::is_often_killed(int index) const {
  return index == kOftenKilled && options_.script.kills_every > Duration::zero();
}

void World::stop_cleanly(int index, Duration down_for) {
  Seat& seat = seats_[static_cast<std::size_t>(index)];
  if (!seat.replica) return;
  trace("replica " + std::to_string(index) + " is told to stop");
  seat.replica->stop([this, index, down_for, life = seat.lives] {
    Seat& left = seats_[static_cast<std::size_t>(index)];
    if (left.lives != life || !left.replica) return;
    trace("replica " + std::to_string(index) + " has stopped");
    left.replica.reset();
    liveness_.replica_changed();
    scheduler_.after(down_for, [this, index] { start_replica(index); });
  });
  // As a kubelet does after a pod's grace.
  scheduler_.after(seconds(30), [this, index, down_for, life = seat.lives] {
    if (seats_[static_cast<std::size_t>(index)].lives == life) crash(index, down_for);
  });
}

// ---- The run.

void World::set_up() {
  users_.start({.heartbeats = options_.script.heartbeats,
                .many_runs = options_.script.many_runs,
                .queues = options_.script.queues,
                .pools = options_.script.pools,
                .lane = options_.script.lane});
  if (options_.script.guard) guard_.install(options_.script.guard_is_readable);
  cluster_.start(options_.script.nodes);
  if (options_.script.rescue) others_.start(options_.script.seed);
  if (options_.script.volume > 0) {
    users_.create_large_job(options_.script.volume, options_.script.seed);
    cluster_.work_of = [seed = options_.script.seed](const std::string& pod) {
      const std::uint64_t drawn = mix(seed, reconciler::hash64(pod));
      Cluster::Work work{milliseconds(200 + drawn % 10'000), 0, 143, seconds(1)};
      if ((drawn >> 20) % 20 == 0) work.exit_code = 1;
      return std::optional(work);
    };
  }
  seats_.resize(static_cast<std::size_t>(options_.script.replicas));
  std::int64_t slowest = 1'000'000;
  for (int i = 0; i < options_.script.replicas; ++i) {
    const std::int64_t rate = options_.script.clocks[static_cast<std::size_t>(i)].rate_ppm;
    ledger_.clock_rate(i, rate);
    slowest = std::min(slowest, rate);
    scheduler_.after(milliseconds(100 + 300 * i), [this, i] { start_replica(i); });
  }
  liveness_.slowest_clock(slowest);
  if (options_.script.kills_every > Duration::zero()) {
    liveness_.often_killed();
    kill_often();
  }
  for (const ScriptEvent& event : options_.script.events) {
    if (!options_.selection.has(event.id)) continue;
    scheduled_.insert(event.act);
    scheduler_.at(event.at, [this, &event] { begin(event); });
    if (event.lasts > Duration::zero()) {
      scheduler_.at(event.at + event.lasts, [this, &event] {
        if (!healthy_) end(event);
      });
    }
  }
  for (const auto& clock : options_.script.clocks) {
    if (clock.rate_ppm != 1'000'000) scheduled_.insert(Act::kClockDrift);
  }
  if (options_.stop_at > Duration::zero()) {
    scheduler_.at(options_.stop_at, [this] { scheduler_.stop(); });
  }
  tick();
}

// What goes on by itself.
void World::tick() {
  scheduler_.after(kTick, [this] { tick(); });
  if (!gateway_.in_trouble()) {
    while (server_.collect_garbage()) continue;
  }
  const std::int64_t ticks = scheduler_.now() / kTick;
  if (ticks % 120 == 0 && gateway_.up() && !gateway_.stalled()) server_.send_bookmarks();
  if (ticks % 600 == 0 && !gateway_.in_trouble()) server_.compact();
  std::vector<Replica*> replicas;
  for (const Seat& seat : seats_) {
    if (seat.replica && !seat.replica->paused()) replicas.push_back(seat.replica.get());
  }
  for (Replica* const replica : replicas) {
    if (replica->time_fell()) ledger_.complain("the server's time fell in a replica");
  }
  liveness_.look(replicas);
}

bool World::run_part(Duration length) {
  scheduler_.run_until(scheduler_.now() + length);
  return !scheduler_.stopped();
}

bool World::settle(Duration limit, const char* what) {
  const Duration until = scheduler_.now() + limit;
  while (run_part(seconds(5))) {
    const std::string unsettled = liveness_.unsettled();
    if (unsettled.empty()) return true;
    if (scheduler_.now() < until) continue;
    ledger_.complain(std::string("L2, ") + what + ": " + unsettled);
  }
  return false;
}

void World::rest() {
  if (!run_part(seconds(60))) return;
  if (const std::string untidy = liveness_.untidy(); !untidy.empty()) {
    return ledger_.complain("L5: at rest " + untidy);
  }
  const std::uint64_t before = ledger_.replica_writes();
  if (!run_part(kRest)) return;
  // Each new owner of a pool writes its name into the pool's status.
  const bool claims = options_.script.pools && options_.script.kills_every > Duration::zero();
  if (!claims && ledger_.replica_writes() != before) {
    return ledger_.complain("L6: replicas write " +
                            std::to_string(ledger_.replica_writes() - before) + " times at rest");
  }
  std::size_t objects = 0;
  for (const char* resource :
       {"durablejobs", "jobs", "jobqueues", "pods", "nodes", "leases", "workerpools"}) {
    server_.for_each(resource, [&](const Json&) { ++objects; });
  }
  for (const Seat& seat : seats_) {
    if (!seat.replica) continue;
    if (seat.replica->objects_held() > objects || seat.replica->queued() > 0) {
      ledger_.complain(
          "a replica keeps what is gone: " + std::to_string(seat.replica->objects_held()) +
          " objects of " + std::to_string(objects));
    }
  }
}

RunResult World::run() {
  set_up();
  if (options_.sabotage) options_.sabotage(*this);
  if (run_part(options_.script.length)) {
    heal();
    if (run_part(kRecovery)) {
      liveness_.watch(true);
      ledger_.permits().check_order(true);
      const Script& script = options_.script;
      const bool is_slow = script.queues || (script.pools && script.kills_every > Duration::zero());
      const minutes limit = is_slow ? kSlowSettleLimit : kSettleLimit;
      if (settle(limit, "after the faults")) examine();
      liveness_.watch(true);
      if (!scheduler_.stopped() && settle(limit, "after the exam")) rest();
    }
  }
  RunResult result;
  result.violation = ledger_.violation();
  result.violated_at = violated_at_;
  result.trace_hash = trace_hash_;
  result.simulated = scheduler_.now();
  result.events = scheduler_.events_run();
  result.requests = network_.requests();
  result.writes = writes_;
  result.checks = ledger_.checks();
  for (int i = 0; i < kActs; ++i) {
    const Act act = static_cast<Act>(i);
    if (strikes_.count(act) > 0) result.fired[act] = strikes_.count(act);
  }
  result.scheduled = scheduled_;
  result.struck = strikes_.struck();
  result.states = states_.all();
  server_.for_each("durablejobs", [&](const Json&) { ++result.jobs; });
  result.slowest = liveness_.slowest();
  for (Seat& seat : seats_) seat.replica.reset();
  return result;
}

}  // namespace holdfast::simulation
