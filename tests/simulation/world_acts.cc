// What the script's acts do, the end of all faults, and the exam.
#include <algorithm>
#include <utility>

#include "tests/simulation/world.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

}  // namespace

void World::begin(const ScriptEvent& event) {
  trace(std::string("act ") + std::to_string(event.id) + " " + to_string(event.act) +
        (event.lasts > Duration::zero() ? " for " + human_duration(event.lasts) : ""));
  if (users_.act(event)) return;
  switch (event.act) {
    case Act::kWorkerFails:
    case Act::kImageError:
    case Act::kUnschedulable:
    case Act::kEviction:
    case Act::kNodeSilent:
    case Act::kNodePowerLoss:
    case Act::kNodeDeleted:
    case Act::kWorkerHangs:
    case Act::kAgentSilent:
    case Act::kNextImageError:
    case Act::kTakeBackStart:
      return act_on_nodes(event);
    case Act::kKillWorker:
    case Act::kCutWorker:
    case Act::kFreezeWorker:
    case Act::kLossyWorkers:
    case Act::kRestartWorker:
      return act_on_workers(event);
    case Act::kOutage:
    case Act::kRestart:
    case Act::kEtcdStall:
    case Act::kRestore:
    case Act::kWatchCacheLag:
    case Act::kCompaction:
    case Act::kServerClockStep:
      return act_on_server(event);
    case Act::kSpoilGuard:
      strikes_.fired(event.act);
      return guard_.spoil(event.seed);
    default:
      return act_on_replicas(event);
  }
}

void World::act_on_workers(const ScriptEvent& event) {
  if (event.act == Act::kLossyWorkers) {
    strikes_.fired(event.act);
    return workers_.losing(event.permille);
  }
  const std::string pod = workers_.pick(event.seed);
  if (pod.empty()) return;
  const bool for_memory = mix(event.seed, 41) % 3 > 0;
  if (event.act == Act::kKillWorker && !cluster_.kill_container(pod, for_memory)) return;
  if (event.act == Act::kRestartWorker && !cluster_.restart_container(pod)) return;
  if (event.act == Act::kCutWorker) workers_.cut_off(pod);
  if (event.act == Act::kFreezeWorker) workers_.freeze(pod);
  strikes_.fired(event.act);
}

void World::act_on_nodes(const ScriptEvent& event) {
  const int node = event.target % options_.script.nodes;
  switch (event.act) {
    case Act::kWorkerFails:
      workers_.failing(event.permille);
      return cluster_.failing(event.permille);
    case Act::kWorkerHangs:
      workers_.hanging(event.permille);
      return cluster_.hanging(event.permille);
    case Act::kAgentSilent:
      return cluster_.falling_silent(event.permille);
    case Act::kNextImageError:
      return cluster_.next_image_errors(true);
    case Act::kImageError:
      return cluster_.image_errors(true);
    case Act::kUnschedulable:
      return cluster_.unschedulable(true);
    case Act::kTakeBackStart:
      if (cluster_.take_back_start(event.seed)) strikes_.fired(event.act);
      return;
    case Act::kEviction: {
      std::vector<std::string> pods;
      server_.for_each("pods", [&](const Json& pod) {
        const std::string phase = string_at(at(pod, "status"), "phase");
        if (phase == "Pending" || phase == "Running") pods.push_back(key_of(pod));
      });
      if (pods.empty() || gateway_.in_trouble()) return;
      strikes_.fired(event.act);
      return cluster_.evict(pods[event.seed % pods.size()], mix(event.seed, 9));
    }
    case Act::kNodeSilent:
    case Act::kNodePowerLoss:
      strikes_.fired(event.act);
      return cluster_.silence(node, event.act == Act::kNodePowerLoss);
    default:
      if (gateway_.in_trouble()) return;
      strikes_.fired(event.act);
      return cluster_.remove_node(node);
  }
}

void World::act_on_server(const ScriptEvent& event) {
  strikes_.fired(event.act);
  switch (event.act) {
    case Act::kOutage:
      return gateway_.go_down();
    case Act::kRestart:
      return gateway_.restart(/*cut_off=*/event.seed % 2 == 0);
    case Act::kEtcdStall:
      return gateway_.stall();
    case Act::kRestore:
      snapshots_[event.id] = server_.snapshot();
      return;
    case Act::kWatchCacheLag:
      return gateway_.lag(milliseconds(200 + event.seed % 12'000));
    case Act::kCompaction:
      return server_.compact();
    default:
      // As NTP does it: forward, and by less than a second at a time.
      return gateway_.step_wall_clock(milliseconds(50 + event.seed % 900));
  }
}

void World::act_on_replicas(const ScriptEvent& event) {
  const int index = event.target % options_.script.replicas;
  Seat& seat = seats_[static_cast<std::size_t>(index)];
  switch (event.act) {
    case Act::kCrash:
      if (seat.replica) strikes_.fired(event.act);
      return crash(index, event.lasts);
    case Act::kCleanRestart:
      if (seat.replica) strikes_.fired(event.act);
      return stop_cleanly(index, event.lasts);
    case Act::kPause:
      if (!seat.replica) return;
      strikes_.fired(event.act);
      return seat.replica->pause();
    case Act::kCutSilently:
    case Act::kCutRefused:
      strikes_.fired(event.act);
      network_.break_watches(event.act == Act::kCutRefused ? index : -2);
      return network_.cut(
          index, event.act == Act::kCutSilently ? Network::Cut::kSilent : Network::Cut::kRefused);
    case Act::kHalfOpenWatch:
      if (network_.silence_watches(index) > 0) strikes_.fired(event.act);
      return;
    case Act::kBreakWatch:
      if (network_.break_watches(index) > 0) strikes_.fired(event.act);
      return;
    case Act::kHangingWebhook:
    case Act::kLongRetryAfter:
    case Act::kNamespaceFails:
    case Act::kDeletionsFail:
      tenants_[event.id] = event;
      if (event.act == Act::kNamespaceFails) network_.break_watches(-1);
      return;
    default:
      // A third of them strikes every replica.
      return strikes_.open(event, event.seed % 3 == 0 ? -1 : index);
  }
}

void World::end(const ScriptEvent& event) {
  trace(std::string("act ") + std::to_string(event.id) + " " + to_string(event.act) + " is over");
  const int index = event.target % options_.script.replicas;
  users_.end(event);
  switch (event.act) {
    case Act::kWorkerFails:
      workers_.failing(0);
      return cluster_.failing(0);
    case Act::kWorkerHangs:
      workers_.hanging(0);
      return cluster_.hanging(0);
    case Act::kCutWorker:
      return workers_.reconnect_all();
    case Act::kFreezeWorker:
      return workers_.thaw_all();
    case Act::kLossyWorkers:
      return workers_.losing(0);
    case Act::kSpoilGuard:
      return guard_.restore();
    case Act::kAgentSilent:
      return cluster_.falling_silent(0);
    case Act::kNextImageError:
      return cluster_.next_image_errors(false);
    case Act::kImageError:
      return cluster_.image_errors(false);
    case Act::kUnschedulable:
      return cluster_.unschedulable(false);
    case Act::kNodeSilent:
    case Act::kNodePowerLoss:
    case Act::kNodeDeleted:
      return cluster_.bring_back(event.target % options_.script.nodes);
    case Act::kOutage:
      return gateway_.come_up();
    case Act::kEtcdStall:
      return gateway_.unstall();
    case Act::kRestore:
      return restore(event);
    case Act::kWatchCacheLag:
      return gateway_.lag(Duration::zero());
    case Act::kPause:
      if (Seat& seat = seats_[static_cast<std::size_t>(index)]; seat.replica) {
        seat.replica->resume();
      }
      return;
    case Act::kCutSilently:
    case Act::kCutRefused:
      return network_.cut(index, Network::Cut::kNone);
    default:
      tenants_.erase(event.id);
      return strikes_.close(event.id);
  }
}

// What an act on one namespace does to a request about it. Kubelets and users are spared.
Gateway::Fate World::fate_of(const ApiRequest& request) {
  const bool pods = request.target.find("/pods") != std::string::npos;
  const bool creation = request.method == "POST" && pods;
  for (const auto& [id, event] : tenants_) {
    const std::string ns = kNamespaces[event.seed % std::size(kNamespaces)];
    if (request.target.find("/namespaces/" + ns + "/") == std::string::npos) continue;
    const std::uint64_t drawn = mix(event.seed, gateway_.server().version());
    if (event.act == Act::kNamespaceFails) {
      // Its lists and watches: of one kind, or of all.
      if (request.method != "GET" || (event.seed % 2 == 0 && !pods)) continue;
      if (request.target.find('?') == std::string::npos) continue;
      strikes_.fired(event.act);
      if (event.seed % 3 == 0) return {seconds(61), 500, 0};
      return {Duration::zero(), event.seed % 3 == 1 ? 500 : 503, 0};
    }
    if (request.method == "GET") continue;
    if (event.act == Act::kDeletionsFail) {
      if (request.method != "DELETE" || !pods) continue;
      strikes_.fired(event.act);
      trace("  " + request.user + " DELETE " + request.target + " fails");
      static constexpr int kStatus[] = {500, 429, 403};
      return {Duration::zero(), kStatus[event.seed % 3], event.seed % 3 == 1 ? 2 : 0};
    }
    if (event.act == Act::kLongRetryAfter && static_cast<int>(drawn % 1000) < event.permille) {
      strikes_.fired(event.act);
      return {Duration::zero(), 429, 2 + static_cast<int>(drawn % 40)};
    }
    // Of creations, or of all writes.
    if (event.act == Act::kHangingWebhook && (creation || event.seed % 2 == 0)) {
      strikes_.fired(event.act);
      return {seconds(2 + drawn % 30)};
    }
  }
  return {};
}

// The API server is down while etcd is set back.
void World::restore(const ScriptEvent& event) {
  gateway_.go_down();
  scheduler_.after(seconds(1 + event.seed % 40), [this, id = event.id] {
    if (healthy_) return;
    server_.restore(snapshots_[id]);
    snapshots_.erase(id);
    ledger_.data_restored();
    workers_.data_restored();
    cluster_.look_at_everything();
    trace("the data are those of an earlier moment");
    gateway_.come_up();
  });
}

// From here on the world is kind: all faults stop, and workers do their work.
void World::heal() {
  trace("all faults stop");
  healthy_ = true;
  strikes_.close_all();
  tenants_.clear();
  gateway_.unstall();
  gateway_.come_up();
  gateway_.lag(Duration::zero());
  gateway_.quota(false);
  gateway_.broken_pods(false);
  cluster_.failing(0);
  cluster_.hanging(0);
  cluster_.falling_silent(0);
  cluster_.image_errors(false);
  cluster_.next_image_errors(false);
  cluster_.unschedulable(false);
  cluster_.calm();
  receivers_.heal();
  workers_.calm();
  guard_.restore();
  for (int i = 0; i < options_.script.nodes; ++i) {
    if (!cluster_.nodes()[static_cast<std::size_t>(i)].usable()) cluster_.bring_back(i);
  }
  for (int i = 0; i < options_.script.replicas; ++i) {
    network_.cut(i, Network::Cut::kNone);
    Seat& seat = seats_[static_cast<std::size_t>(i)];
    if (seat.replica) {
      seat.replica->resume();
    } else {
      start_replica(i);
    }
  }
  // A silent watch is found within its idle limit of ten minutes: L7 has looked at that.
  network_.break_silent_watches();
  // Namespaces that are going must be gone before users make them anew.
  scheduler_.after(seconds(5), [this] { users_.make_peace(); });
  scheduler_.after(seconds(30), [this] { users_.make_peace(); });
}

// Single troubles, each on a job of its own, while all else is well: Liveness measures each.
void World::examine() {
  const std::string ns = kNamespaces[0];
  users_.ensure_namespaces();
  const auto on_pod_of = [this, ns](const std::string& job, auto act) {
    std::string key;
    // One that runs at a worker: the worker's pod.
    if (const Json* const its = server_.find("durablejobs", ns, job)) {
      for (const Json& run : at(at(*its, "status"), "runs")) {
        if (run.contains("workerName")) key = ns + "/" + string_at(run, "workerName");
      }
    }
    if (!key.empty()) return act(key);
    server_.for_each("pods", [&](const Json& pod) {
      const std::string phase = string_at(at(pod, "status"), "phase");
      if (key_of(pod).find("/" + job + "-") == std::string::npos) return;
      if (phase == "Pending" || phase == "Running") key = key_of(pod);
    });
    if (!key.empty()) act(key);
  };
  std::uint64_t drawn = mix(options_.script.seed, 0xE8A);
  for (int i = 0; i < 5 && !scheduler_.stopped(); ++i) {
    drawn = mix(drawn, static_cast<std::uint64_t>(i));
    const std::string name = "exam-" + std::to_string(i);
    Json spec = users_.spec_of(drawn);
    spec.erase("suspend");
    spec["backoffLimit"] = 6;
    spec["disruptionLimit"] = 50;
    const int node = static_cast<int>((drawn >> 20) % 1000) % options_.script.nodes;
    const int trouble = static_cast<int>(drawn % (options_.script.heartbeats ? 12 : 9));
    trace("exam: trouble " + std::to_string(trouble));
    if (trouble == 9) cluster_.hanging(1000);
    if (trouble == 10) cluster_.falling_silent(1000);
    if (trouble == 11) cluster_.next_image_errors(true);
    users_.create(ns, name, spec);
    if (options_.script.lane) users_.create_batch_job(ns, "batch-" + name, drawn);
    scheduler_.after(milliseconds(500 + (drawn >> 30) % 8000), [&, name, node, trouble, drawn] {
      if (trouble == 0) on_pod_of(name, [&](auto& pod) { users_.delete_pod(pod, false); });
      if (trouble == 1) on_pod_of(name, [&](auto& pod) { users_.delete_pod(pod, true); });
      if (trouble == 2) on_pod_of(name, [&](auto& pod) { cluster_.evict(pod, drawn); });
      if (trouble == 3) users_.patch(kNamespaces[0], name, {{"cancel", true}});
      if (trouble == 4) users_.patch(kNamespaces[0], name, {{"suspend", true}});
      if (trouble == 5 || trouble == 6) cluster_.silence(node, trouble == 6);
      if (trouble == 7) cluster_.remove_node(node);
      const int replica = static_cast<int>((drawn >> 12) % 1000) % options_.script.replicas;
      if (trouble == 8 && !is_often_killed(replica)) crash(replica, seconds(40));
    });
    const bool often_killed = options_.script.kills_every > Duration::zero();
    if (!run_part(often_killed ? seconds(200) : seconds(110))) return;
    cluster_.hanging(0);
    cluster_.falling_silent(0);
    cluster_.next_image_errors(false);
    if (trouble == 4) users_.patch(kNamespaces[0], name, {{"suspend", false}});
    if (trouble >= 5 && trouble <= 7) cluster_.bring_back(node);
    if (!run_part(seconds(30))) return;
    if (options_.script.lane) users_.create_stray(ns, "batch-" + name, drawn);
  }
}

}  // namespace holdfast::simulation
