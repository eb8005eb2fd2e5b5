#include "tests/simulation/warm_workers.h"

#include <charconv>
#include <utility>

#include "reconciler/names.h"
#include "reconciler/pool/pool.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// An agent that stood still has killed everything so soon after it goes on.
constexpr seconds kAfterThaw{2};
// An agent has made use of what it knows of its pod's end.
constexpr seconds kEndKnown{3};
// A kubelet that reaches nobody looks again.
constexpr seconds kKubeletRetry{5};

std::int64_t number_of(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

WarmWorkers::WarmWorkers(Scheduler& scheduler, Gateway& gateway, Cluster& cluster, Strikes& strikes,
                         std::uint64_t seed)
    : scheduler_(scheduler), gateway_(gateway), cluster_(cluster), strikes_(strikes), seed_(seed) {}

std::string WarmWorkers::text(const Key& key) {
  const auto& [job, run, attempt] = key;
  return "job " + job + ", run " + std::to_string(run) + ", attempt " + std::to_string(attempt);
}

// ---- Pods.

bool WarmWorkers::serves(const Json& pod) const {
  for (const Json& owner : at(at(pod, "metadata"), "ownerReferences")) {
    if (bool_at(owner, "controller")) return string_at(owner, "kind") == reconciler::kPoolKind;
  }
  return false;
}

void WarmWorkers::begin(const Json& pod) {
  WarmWorker::Settings settings;
  settings.namespace_ = string_at(at(pod, "metadata"), "namespace");
  settings.pod_name = string_at(at(pod, "metadata"), "name");
  settings.pod_uid = uid_of(pod);
  settings.node = string_at(at(pod, "spec"), "nodeName");
  for (const Json& variable : at(at(at(pod, "spec"), "containers")[0], "env")) {
    const std::string name = string_at(variable, "name");
    const std::int64_t number = number_of(string_at(variable, "value"));
    if (name == "HOLDFAST_SLOTS") settings.slots = static_cast<int>(number);
    if (name == "HOLDFAST_LEASE_DURATION_SECONDS") settings.lease_duration = seconds(number);
    if (name == "HOLDFAST_POD_GRACE_SECONDS") settings.grace = seconds(number);
    if (name == "HOLDFAST_STOP_GRACE_SECONDS") settings.stop_grace = seconds(number);
  }
  settings.life = ++lives_[settings.pod_uid];
  settings.seed = mix(seed_, reconciler::hash64(settings.pod_uid));
  settings.clock.offset = seconds(1 + settings.seed % 1000);
  // The rates of an agent's clock and a replica's differ by less than a sixth.
  settings.clock.rate_ppm += static_cast<std::int64_t>(settings.seed % 40'001) - 20'000;
  const std::string uid = settings.pod_uid;
  auto world = world_of(uid, settings.node);
  workers_[uid] = std::make_unique<WarmWorker>(scheduler_, gateway_, std::move(settings), world);
}

WarmWorker::World WarmWorkers::world_of(const std::string& pod_uid, const std::string& node) {
  WarmWorker::World world;
  world.reaches = [this, pod_uid, node] {
    const Cluster::Node* const host = cluster_.node(node);
    return host && host->powered && host->reaches && cut_.count(pod_uid) == 0;
  };
  world.loses = [this] {
    if (losing_permille_ == 0) return false;
    return static_cast<int>(mix(seed_, ++lost_) % 1000) < losing_permille_;
  };
  world.plan = [this](const AttemptId& id, const std::string& payload) {
    return plan(id, payload);
  };
  world.began = [this](const WarmWorker& worker, const AttemptId& id) { began(worker, id); };
  world.ended = [this, pod_uid](const AttemptId& id, int exit_code) {
    Truth* const truth = truth_at(id, pod_uid);
    if (!truth) return;
    truth->exit_code = exit_code;
    truth->ended = scheduler_.now();
  };
  world.progressed = [this, pod_uid](const AttemptId& id) {
    if (Truth* const truth = truth_at(id, pod_uid)) truth->progressed = scheduler_.now();
  };
  world.dead = [this, pod_uid](const AttemptId& id) {
    Truth* const truth = truth_at(id, pod_uid);
    if (!truth) return;
    truth->alive = false;
    alive_.erase(key_of(id));
  };
  world.exits = [this, pod_uid](int exit_code) {
    // Not from inside the worker.
    scheduler_.after(Duration::zero(), [this, pod_uid, exit_code] {
      if (workers_.erase(pod_uid) > 0) cluster_.container_ended(pod_uid, exit_code);
    });
  };
  return world;
}

WarmWorkers::Truth* WarmWorkers::truth_at(const AttemptId& id, const std::string& pod_uid) {
  Truth& truth = attempts_.at(key_of(id));
  return truth.pod_uid == pod_uid ? &truth : nullptr;
}

void WarmWorkers::sigterm(const std::string& pod_uid) {
  const auto found = workers_.find(pod_uid);
  if (found != workers_.end()) found->second->sigterm();
}

void WarmWorkers::kill(const std::string& pod_uid) { workers_.erase(pod_uid); }

void WarmWorkers::out_of_memory(const std::string& pod_uid) {
  std::vector<Key> there;
  for (const Key& key : alive_) {
    if (attempts_.at(key).pod_uid == pod_uid) there.push_back(key);
  }
  for (const Key& key : there) killed_[key] = there.size();
  kill(pod_uid);
}

// An agent that has known the pod's end for a while, and gets to run, asks each command to end, and
// kills it before its pod is killed.
void WarmWorkers::grace_is_over(const std::string& pod_uid) {
  const auto found = workers_.find(pod_uid);
  if (found == workers_.end()) return;
  const WarmWorker& worker = *found->second;
  const auto known = worker.knows_end_since();
  if (known && scheduler_.now() - *known >= kEndKnown && !is_excused(pod_uid)) {
    if (worker.has_unasked()) complain("a command without SIGTERM at the end of pod " + pod_uid);
    if (worker.has_alive()) complain("a command is alive at the end of pod " + pod_uid);
  }
  kill(pod_uid);
}

std::size_t WarmWorkers::killed_with(const AttemptId& id) const {
  const auto found = killed_.find(key_of(id));
  return found == killed_.end() ? 0 : found->second;
}

// Its kubelet finds out, if it reaches the API server. Until then its processes live on.
void WarmWorkers::vanished(const std::string& pod_uid) {
  if (workers_.count(pod_uid) > 0)
    remove_later(pod_uid, milliseconds(10 + mix(seed_, lost_) % 300));
}

void WarmWorkers::remove_later(const std::string& pod_uid, Duration delay) {
  scheduler_.after(delay, [this, pod_uid] {
    const auto found = workers_.find(pod_uid);
    if (found == workers_.end()) return;
    const Cluster::Node* const host = cluster_.node(found->second->settings().node);
    if (host && host->powered && !host->reaches) return remove_later(pod_uid, kKubeletRetry);
    workers_.erase(found);
  });
}

// ---- Faults.

std::string WarmWorkers::pick(std::uint64_t seed) const {
  if (workers_.empty()) return "";
  auto found = workers_.begin();
  std::advance(found, static_cast<std::ptrdiff_t>(mix(seed, 31) % workers_.size()));
  return found->first;
}

void WarmWorkers::freeze(const std::string& pod_uid) { workers_.at(pod_uid)->freeze(); }

void WarmWorkers::thaw_all() {
  for (const auto& [uid, worker] : workers_) worker->thaw();
}

void WarmWorkers::calm() {
  calm_ = true;
  failing_permille_ = hanging_permille_ = losing_permille_ = 0;
  reconnect_all();
  thaw_all();
  for (const auto& [uid, worker] : workers_) worker->hurry();
}

WarmWorker::Plan WarmWorkers::plan(const AttemptId& id, const std::string& payload) {
  if (plan_of) {
    if (auto given = plan_of(id)) return *given;
  }
  static constexpr int kMostSeconds[] = {1, 3, 10, 30, 60, 200};
  const std::uint64_t drawn = mix(mix(static_cast<std::uint64_t>(number_of(payload)), seed_),
                                  static_cast<std::uint64_t>(id.attempt * 1000 + id.run));
  WarmWorker::Plan plan;
  const int most = calm_ ? 10 : kMostSeconds[drawn % 6];
  plan.lasts = milliseconds(20 + static_cast<std::int64_t>((drawn >> 8) % 1000) * most);
  if (static_cast<int>((drawn >> 24) % 1000) < failing_permille_) {
    strikes_.fired(Act::kWorkerFails);
    plan.exit_code = 1 + static_cast<int>((drawn >> 40) % 3);
  }
  if (static_cast<int>((drawn >> 14) % 1000) < hanging_permille_) {
    strikes_.fired(Act::kWorkerHangs);
    plan.hangs = true;
  }
  plan.ignores_sigterm = (drawn >> 50) % 4 == 0;
  plan.sigterm_takes = milliseconds(10 + (drawn >> 44) % 3000);
  plan.exit_code_on_sigterm = (drawn >> 52) % 3 == 0 ? 0 : 143;
  plan.leftovers = (drawn >> 54) % 3 == 0 ? milliseconds(20'000) : milliseconds(0);
  return plan;
}

// ---- What is checked.

bool WarmWorkers::is_excused(const std::string& pod_uid) const {
  const auto found = workers_.find(pod_uid);
  if (found == workers_.end()) return false;
  if (excused_.count(pod_uid) > 0) return true;
  const WarmWorker& worker = *found->second;
  const bool thaws =
      worker.thawed_at() != Duration::zero() && scheduler_.now() - worker.thawed_at() < kAfterThaw;
  return worker.frozen() || thaws;
}

void WarmWorkers::began(const WarmWorker& worker, const AttemptId& id) {
  const Key key = key_of(id);
  const std::string& pod_uid = worker.settings().pod_uid;
  const bool began_before = attempts_.count(key) > 0 && undone_.erase(key) == 0;
  attempts_[key] = {worker.lease_uid(), pod_uid, scheduler_.now(), true, {}, {}, scheduler_.now()};
  if (began_before) complain("S22 OnePlace: an attempt begins twice: " + text(key));
  if (handed_back_.count(key) > 0 && !is_excused(pod_uid)) {
    complain("an attempt that was handed back begins: " + text(key));
  }
  if (without_lease_.count(worker.lease_uid()) > 0 && !is_excused(pod_uid)) {
    complain("S22 OnePlace: a worker that is cut off begins something: " + text(key));
  }
  for (const Key& other : alive_) {
    const bool same_run =
        std::get<0>(other) == id.job_uid && std::get<1>(other) == id.run && other != key;
    if (!same_run || is_excused(attempts_.at(other).pod_uid) || is_excused(pod_uid)) continue;
    complain("S22 OnePlace: " + text(other) + " lives while the next one begins: " + text(key));
  }
  alive_.insert(key);
}

void WarmWorkers::handed_back(const AttemptId& id) {
  const Key key = key_of(id);
  handed_back_.insert(key);
  const auto begun = attempts_.find(key);
  if (begun == attempts_.end() || undone_.count(key) > 0) return;
  if (is_excused(begun->second.pod_uid)) return;
  complain("an attempt is handed back that has begun: " + text(key));
}

void WarmWorkers::data_restored() {
  for (const auto& [key, truth] : attempts_) undone_.insert(key);
  alive_.clear();
  handed_back_.clear();
  without_lease_.clear();
}

// The next attempt's intent says that the last place is empty, and such a phase that all are.
void WarmWorkers::job_written(const Json& before, const Json& after) {
  const Json& status = at(after, "status");
  const std::string uid = uid_of(after);
  const std::string phase = string_at(status, "phase");
  const bool rests = phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
  const bool changes = phase != string_at(at(before, "status"), "phase");
  for (const Key& key : alive_) {
    const auto& [job, index, attempt] = key;
    if (job != uid || is_excused(attempts_.at(key).pod_uid)) continue;
    if (rests && changes) complain("S22 OnePlace: the job is " + phase + " and runs: " + text(key));
    for (const Json& run : at(status, "runs")) {
      if (int_at(run, "index") != index || int_at(run, "attempt") <= attempt) continue;
      complain("S22 OnePlace: the next attempt is recorded while the last one lives: " + text(key));
    }
  }
}

void WarmWorkers::is_cut_off(const std::string& lease_uid, const std::string& pod_uid) {
  without_lease_.insert(lease_uid);
  for (const Key& key : alive_) {
    const Truth& truth = attempts_.at(key);
    if (truth.worker_uid != lease_uid || is_excused(pod_uid)) continue;
    complain("S22 OnePlace: a worker is cut off that runs " + text(key));
  }
}

const WarmWorkers::Truth* WarmWorkers::truth(const AttemptId& id) const {
  const auto found = attempts_.find(key_of(id));
  return found == attempts_.end() ? nullptr : &found->second;
}

const WarmWorker* WarmWorkers::worker(const std::string& pod_uid) const {
  const auto found = workers_.find(pod_uid);
  return found == workers_.end() ? nullptr : found->second.get();
}

}  // namespace holdfast::simulation
