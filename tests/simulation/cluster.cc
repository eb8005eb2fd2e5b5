#include "tests/simulation/cluster.h"

#include <algorithm>
#include <utility>

#include "reconciler/names.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kRenewal{10};
constexpr seconds kRetry{1};
// Clocks of kubelets: right, or ahead or behind by what NTP would not leave, and by an hour.
constexpr milliseconds kSkews[] = {milliseconds(0),        milliseconds(20'000),
                                   milliseconds(-20'000),  milliseconds(700),
                                   milliseconds(3600'000), milliseconds(-3600'000)};
constexpr const char* kLeases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
// As the pod collector's quarantine, and the taint manager's toleration.
constexpr seconds kGoneLimit{60};
// As the node controller's --node-monitor-period and --node-monitor-grace-period.
constexpr seconds kMonitorPeriod{5};
constexpr seconds kMonitorGrace{50};
// With a slow node controller a node is marked after the window of a pod, or never in time.
constexpr int kSlowestMonitor = 16;
constexpr seconds kSilentLimit{340};

std::string user_of(const std::string& node) { return "kubelet-" + node; }

Json lease_of(const std::string& node, Time now) {
  const std::string text = format_time_nanos(now);
  return {{"apiVersion", "coordination.k8s.io/v1"},
          {"kind", "Lease"},
          {"metadata", {{"name", node}, {"namespace", "kube-node-lease"}}},
          {"spec",
           {{"holderIdentity", node},
            {"leaseDurationSeconds", 40},
            {"renewTime", text.substr(0, text.size() - 4) + "Z"}}}};
}

bool phase_is_final(const Json& pod) {
  const std::string phase = string_at(at(pod, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed";
}

// What the number behind this prefix says for this pod: less with each attempt, so that a deadline
// that is shorter is met some day. None: another text.
std::optional<Duration> delay_of(const Json& pod, const std::string& text,
                                 const std::string& prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  const Json& labels = at(at(pod, "metadata"), "labels");
  const std::int64_t attempt = std::stoll(string_at(labels, reconciler::kAttemptLabel, "1"));
  return Duration(seconds(std::stoll(text.substr(prefix.size())))) /
         std::max<std::int64_t>(attempt, 1);
}

}  // namespace

std::string key_of(const Json& object) {
  const Json& meta = at(object, "metadata");
  return string_at(meta, "namespace") + "/" + string_at(meta, "name");
}

std::string uid_of(const Json& object) { return string_at(at(object, "metadata"), "uid"); }

std::string pod_target(const std::string& namespace_, const std::string& name) {
  return "/api/v1/namespaces/" + namespace_ + "/pods/" + name;
}

std::string Cluster::Process::path() const { return pod_target(namespace_, name); }

Cluster::Cluster(Scheduler& scheduler, Gateway& gateway, Strikes& strikes, std::uint64_t seed)
    : scheduler_(scheduler), gateway_(gateway), strikes_(strikes), seed_(seed), random_(seed) {}

Duration Cluster::some(Duration least, Duration most) {
  return least + Duration(static_cast<std::int64_t>(
                     random_.below(static_cast<std::uint64_t>((most - least).count()) + 1)));
}

std::optional<ApiAnswer> Cluster::patch(const std::string& user, const std::string& target,
                                        const Json& body) {
  return gateway_.ask(user, "PATCH", target, body, "application/merge-patch+json");
}

// ---- Nodes.

void Cluster::start(int nodes) {
  for (int i = 0; i < nodes; ++i) {
    nodes_.push_back({"node-" + std::to_string(i)});
    nodes_.back().skew = kSkews[mix(seed_, 0xC10C + static_cast<std::uint64_t>(i)) % 6];
    register_node(i);
    // A kubelet's first Lease comes with its node.
    gateway_.ask(user_of(nodes_.back().name), "POST", kLeases,
                 lease_of(nodes_.back().name, gateway_.wall_clock()));
    scheduler_.after(some(milliseconds(100), kRenewal), [this, i] { renew(i); });
  }
  scheduler_.after(kMonitorPeriod, [this] { mark_silent_nodes(); });
  scheduler_.after(seconds(20), [this] { collect_lost_pods(); });
}

Cluster::Node* Cluster::find_node(const std::string& name) {
  for (Node& node : nodes_) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

const Cluster::Node* Cluster::node(const std::string& name) const {
  return const_cast<Cluster*>(this)->find_node(name);
}

void Cluster::register_node(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  const Json body = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", node.name}}}};
  const auto answer = gateway_.ask(user_of(node.name), "POST", "/api/v1/nodes", body);
  node.exists = answer && (answer->status == 201 || answer->status == 409);
}

void Cluster::renew(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  const auto again = [this, index](Duration delay) {
    scheduler_.after(delay, [this, index] { renew(index); });
  };
  if (!node.powered || !node.reaches) return again(kRenewal);
  if (gateway_.in_trouble()) return again(kRetry);
  if (!node.exists) register_node(index);
  const Json body = lease_of(node.name, gateway_.wall_clock());
  const std::string target = std::string(kLeases) + "/" + node.name;
  auto answer = patch(user_of(node.name), target, {{"spec", body["spec"]}});
  if (answer && answer->status == 404) {
    answer = gateway_.ask(user_of(node.name), "POST", kLeases, body);
  }
  const bool renewed = answer && answer->status / 100 == 2;
  if (renewed) node.renewed = scheduler_.now();
  again(renewed ? kRenewal + some(-milliseconds(200), milliseconds(200)) : Duration(kRetry));
}

void Cluster::silence(int index, bool power_off) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  if (node.powered && node.reaches) node.lost_since = scheduler_.now();
  (power_off ? node.powered : node.reaches) = false;
  if (!power_off) return;
  for (auto& [uid, process] : processes_) {
    if (process.node != node.name) continue;
    scheduler_.cancel(std::exchange(process.next, 0));
    // What it had reported stays reported; how the rest ended nobody saw.
    if (process.state == Process::State::kRunning) {
      process.state = Process::State::kLost;
      process.reported = false;
    }
    if (process.serves) agents_->kill(uid);
  }
}

void Cluster::bring_back(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  node.powered = node.reaches = true;
  scheduler_.after(some(milliseconds(100), seconds(3)), [this, name = node.name] {
    gateway_.server().for_each("pods", [&](const Json& pod) {
      if (string_at(at(pod, "spec"), "nodeName") == name) place(pod);
    });
    for (auto& [uid, process] : processes_) {
      if (process.node != name) continue;
      const bool begins =
          process.state == Process::State::kStarting || process.state == Process::State::kPrepared;
      if (begins && process.next == 0) {
        process.next = scheduler_.after(seconds(1), [this, gone = uid] { begin(gone); });
      }
      report_soon(uid);
    }
  });
}

void Cluster::remove_node(int index) {
  Node& node = nodes_[static_cast<std::size_t>(index)];
  const auto answer = gateway_.ask("cloud", "DELETE", "/api/v1/nodes/" + node.name);
  if (!answer || answer->status != 200) return;
  node.exists = false;
  silence(index, /*power_off=*/true);
}

// ---- Scheduling.

void Cluster::pod_changed(const Json* before, const Json* after) {
  if (!after) {
    if (!before) return;
    // Its kubelet finds out, and stops what still runs; nothing is reported of it any more.
    return forget(uid_of(*before));
  }
  const Json& pod = *after;
  if (!string_at(at(pod, "spec"), "nodeName").empty()) return place(pod);
  const std::string key = key_of(pod);
  if (is_deleting(pod) || phase_is_final(pod)) return;
  const Json& gates = at(at(pod, "spec"), "schedulingGates");
  if (!gates.empty()) {
    const auto delay = delay_of(pod, string_at(gates[0], "name"), kGatePrefix);
    if (before || !delay) return;
    scheduler_.after(*delay, [this, key, uid = uid_of(pod)] { remove_gates(key, uid); });
    return;
  }
  if (!binding_.insert(key).second) return;
  scheduler_.after(some(milliseconds(20), milliseconds(500)), [this, key] { bind(key); });
}

void Cluster::forget(const std::string& uid) {
  const auto found = processes_.find(uid);
  if (found == processes_.end()) return;
  scheduler_.cancel(found->second.next);
  scheduler_.cancel(found->second.report);
  if (found->second.serves) agents_->vanished(uid);
  processes_.erase(found);
}

void Cluster::look_at_everything() {
  std::map<std::string, Json> pods;
  gateway_.server().for_each("pods", [&](const Json& pod) { pods[uid_of(pod)] = pod; });
  std::vector<std::string> gone;
  for (auto& [uid, process] : processes_) {
    const auto pod = pods.find(uid);
    // A kubelet stops what is not there any more, or not on its node.
    if (pod == pods.end() || string_at(at(pod->second, "spec"), "nodeName") != process.node) {
      gone.push_back(uid);
      continue;
    }
    // What it once reported may be forgotten, and that the pod was deleted.
    process.reported = false;
    process.stopped = process.stopped && is_deleting(pod->second);
    report_soon(uid);
  }
  for (const std::string& uid : gone) forget(uid);
  for (const auto& [uid, pod] : pods) pod_changed(nullptr, &pod);
  for (Node& node : nodes_) {
    node.exists = gateway_.server().find("nodes", "", node.name) != nullptr;
  }
}

// Whoever set them, in pods that are still there.
void Cluster::remove_gates(const std::string& key, const std::string& uid) {
  const std::size_t slash = key.find('/');
  const Json* const pod =
      gateway_.server().find("pods", key.substr(0, slash), key.substr(slash + 1));
  if (!pod || uid_of(*pod) != uid || is_deleting(*pod)) return;
  const auto answer = patch("gatekeeper", pod_target(key.substr(0, slash), key.substr(slash + 1)),
                            {{"spec", {{"schedulingGates", nullptr}}}});
  if (answer && answer->status / 100 == 2) return;
  scheduler_.after(kRetry, [this, key, uid] { remove_gates(key, uid); });
}

bool Cluster::waits_for_scheduler(const Json& pod, Duration& left) const {
  const auto silent = delay_of(pod, string_at(at(pod, "spec"), "schedulerName"), kSchedulerPrefix);
  const auto created = parse_time(string_at(at(pod, "metadata"), "creationTimestamp"));
  if (!silent || !created) return false;
  left = *created + *silent - gateway_.wall_clock();
  return left > Duration::zero();
}

// As k8s.io/kubernetes/pkg/api/v1/pod has it: the time is that of the status False, whoever was the
// first to say so.
void Cluster::report_unschedulable(const Json& pod) {
  Json condition = {{"type", "PodScheduled"},
                    {"status", "False"},
                    {"reason", "Unschedulable"},
                    {"message", "0 nodes are available"},
                    {"lastTransitionTime", format_time(gateway_.wall_clock())}};
  const Json& conditions = at(at(pod, "status"), "conditions");
  if (!conditions.empty()) {
    if (string_at(conditions[0], "reason") == "Unschedulable") return;
    condition["lastTransitionTime"] = at(conditions[0], "lastTransitionTime");
  }
  const Json& meta = at(pod, "metadata");
  patch("scheduler", pod_target(string_at(meta, "namespace"), string_at(meta, "name")) + "/status",
        {{"status", {{"conditions", Json::array({condition})}}}});
}

// As a scheduler does with a preference; some of the time the other nodes are full.
void Cluster::leave_what_is_avoided(const Json& pod, std::vector<const Node*>& fit) {
  const Json& of_nodes = at(at(at(pod, "spec"), "affinity"), "nodeAffinity");
  std::set<std::string> avoided;
  for (const Json& wish : at(of_nodes, "preferredDuringSchedulingIgnoredDuringExecution")) {
    for (const Json& field : wish["preference"]["matchFields"]) avoided.insert(field["values"][0]);
  }
  if (avoided.empty() || random_.below(4) == 0) return;
  std::vector<const Node*> left = fit;
  std::erase_if(left, [&](const Node* node) { return avoided.contains(node->name); });
  if (!left.empty()) fit = std::move(left);
}

void Cluster::bind(const std::string& key) {
  binding_.erase(key);
  const std::size_t slash = key.find('/');
  const std::string ns = key.substr(0, slash);
  const std::string name = key.substr(slash + 1);
  const Json* const pod = gateway_.server().find("pods", ns, name);
  if (!pod || is_deleting(*pod) || !string_at(at(*pod, "spec"), "nodeName").empty() ||
      phase_is_final(*pod)) {
    return;
  }
  const auto again = [&](Duration delay) {
    binding_.insert(key);
    scheduler_.after(delay, [this, key] { bind(key); });
  };
  Duration left{0};
  if (waits_for_scheduler(*pod, left)) return again(left);
  std::vector<const Node*> fit;
  for (const Node& node : nodes_) {
    if (node.exists && !node.cordoned && !is_marked(node)) fit.push_back(&node);
  }
  if (fit.empty() || unschedulable_) {
    if (unschedulable_) strikes_.fired(Act::kUnschedulable);
    report_unschedulable(Json(*pod));
    return again(seconds(5));
  }
  leave_what_is_avoided(*pod, fit);
  const Node& node = *fit[random_.below(fit.size())];
  const auto answer =
      gateway_.ask("scheduler", "POST", pod_target(ns, name) + "/binding",
                   {{"apiVersion", "v1"},
                    {"kind", "Binding"},
                    {"metadata", {{"name", name}, {"namespace", ns}, {"uid", uid_of(*pod)}}},
                    {"target", {{"kind", "Node"}, {"name", node.name}}}});
  if (!answer || answer->status / 100 != 2) again(kRetry);
}

// ---- Kubelets.

void Cluster::place(const Json& pod) {
  const std::string uid = uid_of(pod);
  const std::string node = string_at(at(pod, "spec"), "nodeName");
  const bool known = processes_.count(uid) > 0;
  if (!known) {
    if (phase_is_final(pod) && !is_deleting(pod)) return;
    Process process;
    process.namespace_ = string_at(at(pod, "metadata"), "namespace");
    process.name = string_at(at(pod, "metadata"), "name");
    process.uid = uid;
    process.node = node;
    const Json& meta = at(pod, "metadata");
    const std::string plan = string_at(at(meta, "annotations"), kPlanAnnotation, "0");
    const std::string attempt = string_at(at(meta, "labels"), reconciler::kAttemptLabel, "0");
    if (const Node* const host = find_node(node)) process.skew = host->skew;
    process.plan = mix(std::stoull(plan), reconciler::hash64(attempt));
    read_agent(pod, process);
    process.serves = agents_ && agents_->serves(pod);
    if (phase_is_final(pod)) process.state = Process::State::kLost;
    processes_.emplace(uid, std::move(process));
    if (!phase_is_final(pod) && !is_deleting(pod)) {
      processes_.at(uid).next =
          scheduler_.after(some(milliseconds(50), milliseconds(1500)), [this, uid] { begin(uid); });
    }
  }
  if (is_deleting(pod) && !std::exchange(processes_.at(uid).terminating, true)) {
    const Node* const host = find_node(node);
    const Duration late =
        host && host->usable() ? some(milliseconds(5), milliseconds(300)) : Duration(kRenewal);
    scheduler_.after(late, [this, uid, pod] { terminate(uid, pod); });
  }
}

void Cluster::begin(const std::string& uid) {
  const auto found = processes_.find(uid);
  if (found == processes_.end()) return;
  Process& process = found->second;
  process.next = 0;
  const Node* const node = find_node(process.node);
  if (!node || !node->powered || !node->reaches) {
    process.next = scheduler_.after(kRenewal, [this, uid] { begin(uid); });
    return;
  }
  if (process.terminating) return;
  const bool next_has_none = process.state == Process::State::kPrepared && next_image_errors_;
  if (image_errors_ || next_has_none) {
    strikes_.fired(next_has_none ? Act::kNextImageError : Act::kImageError);
    process.reason = "ImagePullBackOff";
    report_soon(uid);
    process.next = scheduler_.after(seconds(10), [this, uid] { begin(uid); });
    return;
  }
  if (process.prepares && process.state == Process::State::kStarting) {
    process.state = Process::State::kPrepared;
    process.reason.clear();
    process.began = gateway_.wall_clock();
    report_soon(uid);
    process.next =
        scheduler_.after(some(milliseconds(50), milliseconds(1500)), [this, uid] { begin(uid); });
    return;
  }
  run(uid);
}

void Cluster::run(const std::string& uid) {
  Process& process = processes_.at(uid);
  process.state = Process::State::kRunning;
  process.started = gateway_.wall_clock();
  process.reason.clear();
  report_soon(uid);
  if (process.serves) {
    const Json* const pod = gateway_.server().find("pods", process.namespace_, process.name);
    if (pod && uid_of(*pod) == uid) agents_->begin(*pod);
    return;
  }
  if (process.lease.empty()) return work(uid);
  scheduler_.after(some(milliseconds(50), milliseconds(500)), [this, uid] { beat(uid); });
}

void Cluster::work(const std::string& uid) {
  Process& process = processes_.at(uid);
  process.works = true;
  // A second, half a minute, ten minutes: what a bug needs varies.
  static constexpr int kMostSeconds[] = {2, 10, 30, 30, 120, 600};
  const std::uint64_t plan = process.plan;
  const int most = calm_ ? 20 : kMostSeconds[plan % 6];
  Duration lasts = milliseconds(200) +
                   Duration(milliseconds(static_cast<std::int64_t>((plan >> 8) % 1000) * most));
  int code = 0;
  if (!calm_ && static_cast<int>((plan >> 24) % 1000) < failing_permille_) {
    strikes_.fired(Act::kWorkerFails);
    code = 1 + static_cast<int>((plan >> 40) % 3);
  }
  if (work_of) process.work = work_of(process.name);
  if (process.work) {
    lasts = process.work->lasts;
    code = process.work->exit_code;
  }
  process.next = scheduler_.after(
      lasts, [this, uid, code] { exit(uid, code, code == 0 ? "Completed" : "Error"); });
  if (!process.lease.empty()) plan_trouble(uid);
}

void Cluster::exit(const std::string& uid, int code, const std::string& reason) {
  const auto found = processes_.find(uid);
  if (found == processes_.end()) return;
  Process& process = found->second;
  scheduler_.cancel(std::exchange(process.next, 0));
  process.state = Process::State::kExited;
  process.exit_code = code;
  process.reason = reason;
  process.finished = gateway_.wall_clock();
  process.reported = false;
  report_soon(uid);
}

// A restore may have undone its deletion.
bool Cluster::is_to_go(const Process& process) const {
  const Json* const pod = gateway_.server().find("pods", process.namespace_, process.name);
  return !pod || uid_of(*pod) != process.uid || is_deleting(*pod);
}

void Cluster::terminate(const std::string& uid, const Json& pod) {
  const auto found = processes_.find(uid);
  if (found == processes_.end()) return;
  Process& process = found->second;
  const Node* const node = find_node(process.node);
  if (!node || !node->powered || !node->reaches) {
    // It hears of it when it is back.
    scheduler_.after(kRenewal, [this, uid, pod] { terminate(uid, pod); });
    return;
  }
  if (process.state != Process::State::kRunning) {
    scheduler_.cancel(std::exchange(process.next, 0));
    // Of the containers that never ran, a kubelet says that it cannot find them.
    if (process.state == Process::State::kPrepared) process.state = Process::State::kLost;
    return report_soon(uid);
  }
  const Duration grace = seconds(int_at(at(pod, "metadata"), "deletionGracePeriodSeconds", 30));
  if (process.serves) return ask_worker_to_end(uid, grace);
  const std::uint64_t how = process.plan >> 50;
  if (process.silent || (how % 4 == 0 && !process.work)) {  // it ignores SIGTERM
    scheduler_.after(grace, [this, uid] {
      const auto still = processes_.find(uid);
      if (still != processes_.end() && still->second.state == Process::State::kRunning) {
        still->second.stopped = is_to_go(still->second);
        exit(uid, 137, "Error");
      }
    });
    return;
  }
  Duration takes = std::min<Duration>(grace, milliseconds(50) * static_cast<int>(how % 100));
  // An agent whose child has not begun never reports a success.
  int code = how % 4 == 1 && process.works ? 0 : 143;
  if (process.work) {
    takes = std::min(grace, process.work->sigterm_takes);
    code = takes == grace ? 137 : process.work->exit_code_on_sigterm;
  }
  scheduler_.after(takes, [this, uid, code] {
    const auto still = processes_.find(uid);
    if (still != processes_.end() && still->second.state == Process::State::kRunning) {
      still->second.stopped = is_to_go(still->second);
      exit(uid, code, code == 0 ? "Completed" : "Error");
    }
  });
}

std::optional<Cluster::Truth> Cluster::truth(const std::string& uid) const {
  const auto found = processes_.find(uid);
  if (found == processes_.end()) return std::nullopt;
  const Process& process = found->second;
  const Node* const host = node(process.node);
  const bool runs = process.state == Process::State::kRunning && !process.silent;
  return Truth{.started = process.prepares ? process.began : process.started,
               .stopped = process.stopped,
               .skew = process.skew,
               .renewals = process.renewals,
               .hangs_since = process.hangs_since,
               .speaks = runs && host && host->usable()};
}

void Cluster::report_soon(const std::string& uid) {
  const auto found = processes_.find(uid);
  if (found == processes_.end() || found->second.report != 0) return;
  found->second.report =
      scheduler_.after(some(milliseconds(5), milliseconds(200)), [this, uid] { report(uid); });
}

bool Cluster::take_back_start(std::uint64_t seed) {
  std::vector<std::string> running;
  for (const auto& [uid, process] : processes_) {
    const bool runs = process.state == Process::State::kRunning && !process.serves;
    if (runs && !process.taken_back && !process.terminating) running.push_back(uid);
  }
  if (running.empty()) return false;
  const std::string uid = running[seed % running.size()];
  Process& process = processes_.at(uid);
  process.taken_back = true;
  process.without_containers = (seed >> 32) % 2 == 0;
  report_soon(uid);
  scheduler_.after(seconds(2), [this, uid] {
    const auto found = processes_.find(uid);
    if (found == processes_.end()) return;
    found->second.taken_back = false;
    report_soon(uid);
  });
  return true;
}

Json Cluster::status_of(const Process& process, const Json& pod) const {
  Json container = {{"name", "main"},
                    {"ready", false},
                    {"restartCount", process.restarts},
                    {"image", "worker"},
                    {"imageID", ""}};
  Json status;
  switch (process.state) {
    case Process::State::kStarting:
      status["phase"] = "Pending";
      container["state"] = {
          {"waiting", {{"reason", process.reason.empty() ? "ContainerCreating" : process.reason}}}};
      break;
    case Process::State::kPrepared:
      status["phase"] = "Pending";
      container["state"] = {
          {"waiting", {{"reason", process.reason.empty() ? "PodInitializing" : process.reason}}}};
      break;
    case Process::State::kRunning:
      if (process.taken_back) {
        status["phase"] = "Pending";
        container["state"] = {{"waiting", {{"reason", "ContainerCreating"}}}};
        break;
      }
      status["phase"] = "Running";
      container["ready"] = true;
      container["state"] = {
          {"running", {{"startedAt", format_time(process.started + process.skew)}}}};
      break;
    case Process::State::kExited:
      status["phase"] = process.exit_code == 0 ? "Succeeded" : "Failed";
      container["state"] = {{"terminated",
                             {{"exitCode", process.exit_code},
                              {"reason", process.reason},
                              {"startedAt", format_time(process.started + process.skew)},
                              {"finishedAt", format_time(process.finished + process.skew)}}}};
      if (!process.message.empty()) {
        container["state"]["terminated"]["message"] = process.message;
      }
      break;
    case Process::State::kLost:
      status["phase"] = "Failed";
      container["state"] = {{"terminated",
                             {{"exitCode", 137},
                              {"reason", "ContainerStatusUnknown"},
                              {"message", "The container could not be located"}}}};
      break;
  }
  const bool reports = process.state != Process::State::kRunning || !process.taken_back ||
                       !process.without_containers;
  status["containerStatuses"] = reports ? Json::array({container}) : Json::array();
  if (process.began != Time{} && !process.taken_back) {
    const std::string began = format_time(process.began + process.skew);
    status["initContainerStatuses"] = Json::array(
        {{{"name", "prepare"},
          {"ready", true},
          {"restartCount", 0},
          {"image", "prepare"},
          {"imageID", ""},
          {"state",
           {{"terminated", {{"exitCode", 0}, {"startedAt", began}, {"finishedAt", began}}}}}}});
  }
  if (at(at(pod, "status"), "startTime").is_null()) {
    status["startTime"] = format_time(gateway_.wall_clock() + process.skew);
  }
  return status;
}

void Cluster::report(const std::string& uid) {
  const auto found = processes_.find(uid);
  if (found == processes_.end()) return;
  Process& process = found->second;
  process.report = 0;
  const Node* const node = find_node(process.node);
  const auto again = [&](Duration delay) {
    process.report = scheduler_.after(delay, [this, uid] { report(uid); });
  };
  if (!node || !node->powered || !node->reaches) return again(kRenewal);
  const Json* const pod = gateway_.server().find("pods", process.namespace_, process.name);
  if (!pod || uid_of(*pod) != uid) return;
  if (gateway_.in_trouble()) return again(kRetry + some(Duration(0), kRetry));
  const bool over =
      process.state == Process::State::kExited || process.state == Process::State::kLost;
  if (!phase_is_final(*pod)) {
    const Json body = {{"metadata", {{"uid", uid}}}, {"status", status_of(process, *pod)}};
    const auto answer = patch(user_of(process.node), process.path() + "/status", body);
    if (!answer || answer->status / 100 != 2) return again(kRetry);
  }
  process.reported = over;
  const Json* const now = gateway_.server().find("pods", process.namespace_, process.name);
  if (!now || !is_deleting(*now)) return;
  const bool never_ran = process.state == Process::State::kStarting && process.terminating;
  if (over || never_ran) remove_pod(process);
}

// The last thing a kubelet does for a pod that was asked to go.
void Cluster::remove_pod(const Process& process) {
  const Json body = {{"apiVersion", "v1"},
                     {"kind", "DeleteOptions"},
                     {"gracePeriodSeconds", 0},
                     {"preconditions", {{"uid", process.uid}}}};
  gateway_.ask(user_of(process.node), "DELETE", process.path(), body);
}

// ---- Pods whose node is lost, and pods that must make room.

void Cluster::fail_pod(const Json& pod, const std::string& by, const std::string& reason) {
  const Json& meta = at(pod, "metadata");
  const Json condition = {{"type", "DisruptionTarget"}, {"status", "True"}, {"reason", reason}};
  Json status = {{"conditions", Json::array({condition})}};
  if (by != "taint-manager" && by != "preemption") status["phase"] = "Failed";
  if (by == "kubelet") status["reason"] = "Evicted";
  patch(by, pod_target(string_at(meta, "namespace"), string_at(meta, "name")) + "/status",
        {{"metadata", {{"uid", uid_of(pod)}}}, {"status", status}});
}

bool Cluster::is_marked(const Node& node) const {
  const Json* const object = gateway_.server().find("nodes", "", node.name);
  return object && !at(at(*object, "spec"), "taints").empty();
}

void Cluster::mark_silent_nodes() {
  scheduler_.after(kMonitorPeriod, [this] { mark_silent_nodes(); });
  if (gateway_.in_trouble()) return;
  const Duration grace = kMonitorGrace + seconds(mix(seed_, 0x3A2C) % kSlowestMonitor);
  for (Node& node : nodes_) {
    const bool is_silent = scheduler_.now() - node.renewed > grace;
    if (!node.exists || is_silent == is_marked(node)) continue;
    const Json taint = {{"key", "node.kubernetes.io/unreachable"}, {"effect", "NoSchedule"}};
    patch("node-controller", "/api/v1/nodes/" + node.name,
          {{"spec", {{"taints", is_silent ? Json::array({taint}) : Json()}}}});
    if (is_silent) node.marked_at = scheduler_.now();
  }
}

void Cluster::collect_lost_pods() {
  scheduler_.after(seconds(20), [this] { collect_lost_pods(); });
  if (gateway_.in_trouble()) return;
  std::vector<Json> gone, silent;
  gateway_.server().for_each("pods", [&](const Json& pod) {
    const Node* const node = find_node(string_at(at(pod, "spec"), "nodeName"));
    if (!node || node->usable()) return;
    const Duration lost = scheduler_.now() - node->lost_since;
    if (!node->exists && lost > kGoneLimit) gone.push_back(pod);
    if (node->exists && lost > kSilentLimit && !is_deleting(pod)) silent.push_back(pod);
  });
  for (const Json& pod : gone) {
    if (!phase_is_final(pod)) fail_pod(pod, "pod-collector", "DeletionByPodGC");
    const Json body = {{"gracePeriodSeconds", 0}, {"preconditions", {{"uid", uid_of(pod)}}}};
    const Json& meta = at(pod, "metadata");
    gateway_.ask("pod-collector", "DELETE",
                 pod_target(string_at(meta, "namespace"), string_at(meta, "name")), body);
  }
  for (const Json& pod : silent) {
    if (phase_is_final(pod)) continue;
    fail_pod(pod, "taint-manager", "DeletionByTaintManager");
    const Json& meta = at(pod, "metadata");
    gateway_.ask("taint-manager", "DELETE",
                 pod_target(string_at(meta, "namespace"), string_at(meta, "name")),
                 {{"preconditions", {{"uid", uid_of(pod)}}}});
  }
}

void Cluster::evict(const std::string& key, std::uint64_t seed) {
  const std::size_t slash = key.find('/');
  const Json* const found =
      gateway_.server().find("pods", key.substr(0, slash), key.substr(slash + 1));
  if (!found || phase_is_final(*found) || is_deleting(*found)) return;
  const Json pod = *found;
  if (seed % 2 == 0 && !string_at(at(pod, "spec"), "nodeName").empty()) {
    fail_pod(pod, "kubelet", "TerminationByKubelet");
    const auto process = processes_.find(uid_of(pod));
    if (process == processes_.end()) return;
    scheduler_.cancel(std::exchange(process->second.next, 0));
    process->second.state = Process::State::kLost;
    if (process->second.serves) agents_->kill(process->first);
    return;
  }
  fail_pod(pod, "preemption", "PreemptionByScheduler");
  gateway_.ask("preemption", "DELETE", pod_target(key.substr(0, slash), key.substr(slash + 1)),
               {{"preconditions", {{"uid", uid_of(pod)}}}});
}

}  // namespace holdfast::simulation
