// The agents of jobs with a heartbeat: each waits for its Lease, renews it, runs the child
// meanwhile, and kills the child when it can renew no more. Only what the operator sees of them.
#include "core/agent_protocol.h"
#include "reconciler/names.h"
#include "tests/simulation/cluster.h"

namespace holdfast::simulation {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kAgentRetry{1};

}  // namespace

void Cluster::read_agent(const Json& pod, Process& process) {
  process.prepares = !at(at(pod, "spec"), "initContainers").empty();
  for (const Json& variable : at(at(at(pod, "spec"), "containers")[0], "env")) {
    const std::string name = string_at(variable, "name");
    const std::string value = string_at(variable, "value");
    if (name == "HOLDFAST_LEASE_NAME") process.lease = value;
    if (name == "HOLDFAST_LEASE_DURATION_SECONDS") {
      process.lease_duration = seconds(std::stoll(value));
    }
    if (name == "HOLDFAST_PROGRESS_DEADLINE_SECONDS") {
      process.progress_deadline = seconds(std::stoll(value));
    }
  }
}

Cluster::Beat Cluster::renew_lease(const Process& process) {
  const Node* const node = find_node(process.node);
  if (!node || !node->reaches || gateway_.in_trouble()) return Beat::kNoAnswer;
  const std::string target =
      "/apis/coordination.k8s.io/v1/namespaces/" + process.namespace_ + "/leases/" + process.lease;
  const std::string user = "agent-" + process.name;
  const auto read = gateway_.ask(user, "GET", target);
  if (!read) return Beat::kNoAnswer;
  if (read->status != 200) return read->status == 404 ? Beat::kNotMine : Beat::kNoAnswer;
  Json lease = Json::parse(read->body);
  if (string_at(at(lease, "spec"), "holderIdentity") != process.name + "/" + process.uid) {
    return Beat::kNotMine;
  }
  const std::string time = format_time_nanos(gateway_.wall_clock() + process.skew);
  lease["spec"]["renewTime"] = time.substr(0, time.size() - 4) + "Z";
  // Whoever does not hang has just made progress.
  const Duration age =
      process.hangs_since ? scheduler_.now() - *process.hangs_since : Duration::zero();
  Json& annotations = lease["metadata"]["annotations"];
  annotations[kProgressAgeAnnotation] = std::to_string(std::chrono::floor<seconds>(age).count());
  if (!process.hangs_since) {
    annotations[kProgressAnnotation] = std::to_string(process.renewals.size() + 1);
  }
  const auto written = gateway_.ask(user, "PUT", target, lease);
  return written && written->status == 200 ? Beat::kRenewed : Beat::kNoAnswer;
}

// Two children of one job at once are what the heartbeat is there to prevent.
void Cluster::look_for_overlap(const Process& process) const {
  for (const auto& [uid, other] : processes_) {
    const bool same = other.namespace_ == process.namespace_ && other.lease == process.lease;
    if (!same || uid == process.uid || !other.works) continue;
    if (other.state == Process::State::kRunning && on_overlap) {
      on_overlap("the workers of " + other.name + " and " + process.name + " run at once");
    }
  }
}

// What a worker with a heartbeat may come to: it hangs, or it and its agent are dead. Neither ends
// by itself.
void Cluster::plan_trouble(const std::string& uid) {
  const Process& process = processes_.at(uid);
  const auto drawn = [&](int shift) { return static_cast<int>((process.plan >> shift) % 1000); };
  const bool hangs = process.progress_deadline && drawn(16) < hanging_permille_;
  const bool falls_silent = !hangs && drawn(34) < silent_permille_;
  if (!hangs && !falls_silent) return;
  scheduler_.after(some(milliseconds(10), milliseconds(190)), [this, uid, hangs] {
    const auto found = processes_.find(uid);
    if (found == processes_.end() || found->second.state != Process::State::kRunning) return;
    Process& worker = found->second;
    scheduler_.cancel(std::exchange(worker.next, 0));
    strikes_.fired(hangs ? Act::kWorkerHangs : Act::kAgentSilent);
    if (hangs) {
      worker.hangs_since = scheduler_.now();
    } else {
      worker.silent = true;
      worker.works = false;
    }
  });
}

void Cluster::beat(const std::string& uid) {
  const auto found = processes_.find(uid);
  if (found == processes_.end() || found->second.state != Process::State::kRunning) return;
  Process& process = found->second;
  if (process.silent || (is_mute && is_mute(process.name))) return;
  const Beat answer = renew_lease(process);
  Duration next = kAgentRetry;
  if (answer == Beat::kRenewed) {
    process.renewals.push_back(scheduler_.now());
    next = process.lease_duration / 3;
    if (process.hangs_since && process.progress_deadline) {
      const Duration left = *process.hangs_since + *process.progress_deadline - scheduler_.now();
      if (left > Duration::zero()) next = std::min(next, left);
    }
    if (!process.works) {
      look_for_overlap(process);
      work(uid);
    }
  } else if (process.works &&
             (answer == Beat::kNotMine ||
              scheduler_.now() - process.renewals.back() >= process.lease_duration * 2 / 3)) {
    process.message = std::string(kFencedMark) + "it could not renew its Lease";
    return exit(uid, kFencedExitCode, "Error");
  }
  scheduler_.after(next, [this, uid] { beat(uid); });
}

// ---- Agents of warm workers: warm_workers.h has them.

void Cluster::ask_worker_to_end(const std::string& uid, Duration grace) {
  agents_->sigterm(uid);
  scheduler_.after(grace, [this, uid] {
    const auto still = processes_.find(uid);
    if (still == processes_.end() || still->second.state != Process::State::kRunning) return;
    agents_->grace_is_over(uid);
    exit(uid, 137, "Error");
  });
}

bool Cluster::kill_container(const std::string& uid, bool out_of_memory) {
  const auto found = processes_.find(uid);
  if (found == processes_.end() || found->second.state != Process::State::kRunning) return false;
  const bool serves = found->second.serves;
  if (serves && out_of_memory) agents_->out_of_memory(uid);
  if (serves && !out_of_memory) agents_->kill(uid);
  exit(uid, 137, out_of_memory ? "OOMKilled" : "Error");
  return true;
}

bool Cluster::restart_container(const std::string& uid) {
  const auto found = processes_.find(uid);
  if (found == processes_.end()) return false;
  Process& process = found->second;
  if (process.state != Process::State::kRunning || process.terminating || !process.serves) {
    return false;
  }
  agents_->kill(uid);
  ++process.restarts;
  report_soon(uid);
  scheduler_.cancel(process.next);
  process.next = scheduler_.after(some(milliseconds(50), seconds(12)), [this, uid] {
    const auto still = processes_.find(uid);
    if (still == processes_.end() || still->second.terminating) return;
    if (still->second.state == Process::State::kRunning) run(uid);
  });
  return true;
}

}  // namespace holdfast::simulation
