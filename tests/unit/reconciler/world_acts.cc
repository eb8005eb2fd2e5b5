// What happens in the random world beside the operator: time, kubelets, users, nodes.
#include <algorithm>

#include "reconciler/names.h"
#include "tests/unit/reconciler/world.h"

namespace holdfast::reconciler::testing {
namespace {

constexpr seconds kRenewal{10};

}  // namespace

void World::pass(Duration bit) {
  now_ += bit;
  workers_.pass(now_, outage_);
  for (WorldNode& node : nodes_) {
    if (!node.exists) node.missing = now_;
    if (!node.exists || !node.alive || outage_ || now_ - node.renewed < kRenewal) continue;
    node.renewed = now_;
    ++node.lease_version;
  }
  if (job_exists_ && !job_.deleting) return;
  // The garbage collector deletes the pods; those of a job that is gone are released by a path of
  // the operator that is not part of decide().
  for (PodView& pod : pods_) {
    if (pod.owner_uid != job_.uid) continue;
    ask_to_go(pod);
    if (job_exists_ || !pod.has_finalizer) continue;
    pod.has_finalizer = false;
    pod.version = ++version_;
  }
  collect();
}

bool World::node_alive(const std::string& name) const {
  for (const WorldNode& node : nodes_) {
    if (node.name == name) return node.exists && node.alive;
  }
  return false;
}

bool World::node_exists(const std::string& name) const {
  for (const WorldNode& node : nodes_) {
    if (node.name == name) return node.exists;
  }
  return false;
}

void World::end_pod(PodView& pod, int exit_code) {
  const bool success = exit_code == 0;
  pod.phase = success ? PodPhase::kSucceeded : PodPhase::kFailed;
  Terminated terminated;
  terminated.exit_code = exit_code;
  terminated.reason = success ? "Completed" : "Error";
  terminated.finished = std::chrono::floor<seconds>(now_);
  pod.containers[0].terminated = terminated;
  if (!success && pod.disruption_target) pod.conditions = {{"DisruptionTarget", "True"}};
  ledger_.pod_ended(pod);
  note("pod " + pod.name + " ends with " + std::to_string(exit_code));
}

// Its gates are removed, or its scheduler finds no node for it, or binds it.
void World::schedule(PodView& pod) {
  if (!pod.gates.empty()) {
    if (!calm_ && rng_.percent(60)) return;
    note("the gates of pod " + pod.name + " are removed");
    pod.gates.clear();
    pod.placed.reset();
    return;
  }
  const Time now = std::chrono::floor<seconds>(now_);
  if (!calm_ && rng_.percent(30)) {
    pod.unschedulable = "0/3 nodes are available";
    pod.placed = pod.placed.value_or(now);
    return;
  }
  const WorldNode& node = nodes_[any_place(nodes_.size())];
  if (!node.exists || (calm_ && !node.alive)) return;
  pod.node_name = node.name;
  pod.unschedulable.clear();
  pod.placed = now;
}

void World::run_pod(PodView& pod, int chance) {
  if (pod.ended() || !rng_.percent(chance)) return;
  if (pod.node_name.empty()) {
    if (pod.deletion) return;
    schedule(pod);
  } else if (!node_exists(pod.node_name)) {
    // The cluster's pod garbage collector.
    pod.disruption_target = true;
    pod.disruption_reason = "DeletionByPodGC";
    ask_to_go(pod);
    end_pod(pod, 137);
  } else if (!node_alive(pod.node_name)) {
    return;
  } else if (pod.deletion) {
    end_pod(pod, rng_.percent(20) && pod.started() ? 0 : 143);
  } else if (pod.phase == PodPhase::kPending) {
    if (!calm_ && rng_.percent(20)) return;
    pod.phase = PodPhase::kRunning;
    pod.containers[0].started = true;
    pod.containers[0].started_at = std::chrono::floor<seconds>(now_);
    note("pod " + pod.name + " runs on " + pod.node_name);
  } else if (!calm_ && rng_.percent(10)) {
    // A kubelet that restarts forgets for a moment what it had started. The next report is right.
    note("the kubelet takes back that pod " + pod.name + " runs");
    pod.phase = PodPhase::kPending;
    pod.containers[0].started = false;
    pod.containers[0].started_at.reset();
  } else {
    end_pod(pod, calm_ || rng_.percent(job_.spec.many_runs() ? 45 : 30) ? 0 : 1 + rng_.below(3));
  }
  pod.version = ++version_;
}

void World::kubelets_act(int chance) {
  if (outage_) return;
  for (PodView& pod : pods_) {
    if (pod.owner_uid == job_.uid || pod.owner_uid.empty()) run_pod(pod, chance);
  }
  collect();
}

// One who may create and delete pods, and read none of the jobs: on a name that is still free, or
// in the place of a pod whose UID is on record by now.
void World::user_forges_a_pod() {
  const Status& status = job_.status;
  PodView forged;
  forged.uid = "forged-" + std::to_string(version_);
  forged.version = ++version_;
  std::int64_t attempt = status.attempt + rng_.below(2);
  if (!status.runs.empty() && rng_.percent(50)) {
    attempt = status.runs[any_place(status.runs.size())].attempt;
  }
  forged.name = pod_name(job_.name, job_.uid, attempt);
  const PodView* const there = pod_named(forged.name);
  const Run* const run = status.run_of_pod(forged.name);
  if (there && (!run || run->pod_uid.empty() || run->pod_uid != there->uid)) return;
  if (there) {
    forged.intent = there->intent;
    ledger_.excuse_creation(forged.name);
    std::erase_if(pods_, [&](const PodView& pod) { return pod.name == forged.name; });
  }
  forged.owner_uid = forged.job_uid_label = job_.uid;
  forged.attempt = attempt;
  forged.created = std::chrono::floor<seconds>(now_);
  forged.has_finalizer = rng_.percent(50);
  forged.containers.resize(1);
  note("a user forges pod " + forged.name);
  pods_.push_back(forged);
  if (rng_.percent(70)) end_pod(pods_.back(), rng_.percent(80) ? 0 : 1 + rng_.below(3));
  pods_changed();
}

void World::user_acts_on_pods() {
  if (outage_) return;
  if (job_exists_ && rng_.percent(10)) return user_forges_a_pod();
  if (pods_.empty()) return;
  PodView& pod = pods_[any_place(pods_.size())];
  if (pod.owner_uid != job_.uid) {
    if (pod.uid == "stranger" && rng_.percent(30)) {
      note("the stranger's pod goes");
      std::erase_if(pods_, [](const PodView& p) { return p.uid == "stranger"; });
      pods_changed();
    }
    return;
  }
  switch (rng_.below(8)) {
    case 0:
    case 1:
    case 2:
      ask_to_go(pod);
      break;
    case 3:
      if (!pod.ended()) {
        pod.disruption_target = true;
        pod.disruption_reason = "EvictionByEvictionAPI";
      }
      ask_to_go(pod);
      break;
    case 4:
      // Force: finalizer and all. Whoever waits for it must do without.
      ledger_.excuse_creation(pod.name);
      pod.has_finalizer = false;
      ask_to_go(pod);
      pod.node_name.clear();
      break;
    case 5:
      pod.job_uid_label.clear();
      break;
    case 6:
      pod.attempt = 2147483647;
      break;
    default:
      if (rng_.percent(20)) pod.owner_uid.clear();
      break;
  }
  pod.version = ++version_;
  note("the user meddles with pod " + pod.name + (pod.deletion ? " (deleted)" : "") +
       (pod.job_uid_label.empty() ? " (no label)" : "") +
       (pod.owner_uid.empty() ? " (orphan)" : ""));
  collect();
}

void World::user_edits_spec() {
  if (outage_ || !job_exists_) return;
  Spec& spec = job_.spec;
  switch (rng_.below(10)) {
    case 0:
    case 1:
    case 2:
      spec.suspend = !spec.suspend;
      break;
    case 3:
      spec.cancel = spec.cancel || rng_.percent(30);
      break;
    case 4:
      spec.backoff_limit = rng_.below(spec.many_runs() ? 12 : 4);
      break;
    case 5:
      spec.disruption_limit = rng_.below(6);
      break;
    case 6:
      spec.active_deadline =
          rng_.percent(50) ? std::nullopt : std::optional<seconds>(seconds(30 + rng_.below(600)));
      break;
    case 7:
      spec.lost_after = seconds(15 + rng_.below(40));
      spec.start_deadline = seconds(20 + rng_.below(600));
      break;
    case 8:
      spec.parallelism = rng_.below(spec.many_runs() ? 9 : 2);
      break;
    default:
      if (!rng_.percent(20)) return;
      if (rng_.percent(50)) {
        job_.deleting = true;
        for (PodView& pod : pods_) {
          if (pod.owner_uid == job_.uid) ask_to_go(pod);
        }
      } else {
        job_exists_ = false;
      }
  }
  if (!spec.pool && rng_.percent(5)) {
    spec.pod_replacement = PodReplacementPolicy::kTerminatingOrFailed;
    policy_always_failed_ = false;
  }
  ++job_.generation;
  note(std::string("the user edits the job: suspend ") + (spec.suspend ? "1" : "0") + " cancel " +
       (spec.cancel ? "1" : "0") + " parallelism " + std::to_string(spec.parallelism) +
       (job_.deleting ? " deleting" : "") + (job_exists_ ? "" : " gone"));
  job_changed();
  collect();
}

void World::nodes_change() {
  WorldNode& node = nodes_[any_place(nodes_.size())];
  switch (rng_.below(6)) {
    case 0:
    case 1:
      node.alive = false;
      break;
    case 2:
      node.alive = true;
      break;
    case 3:
      node.exists = rng_.percent(60);
      break;
    default:
      outage_ = !outage_ && rng_.percent(40);
      break;
  }
  note(node.name + (node.exists ? "" : " gone") + (node.alive ? " alive" : " dead") +
       (outage_ ? ", the API server is away" : ""));
}

void World::queue_acts() {
  if (!job_.queue || outage_) return;
  if (!calm_ && rng_.percent(15)) {
    queue_exists_ = !queue_exists_;
    note(queue_exists_ ? "the queue is there" : "the queue is gone");
  }
  const bool admits = queue_exists_ && queue_admits_ && (calm_ || rng_.percent(50));
  if (!admits || !asked_ || (admitted_ && *admitted_ >= *asked_)) return;
  admitted_ = asked_;
  note("the queue admits the job after attempt " + std::to_string(*asked_));
}

void World::workers_act(int chance) {
  if (!workers_.exists()) return;
  const Job* const job = job_exists_ ? &job_ : nullptr;
  workers_.agents_act(job, chance);
  workers_.pool_acts(job, chance);
  workers_.others_act(chance / 2);
  if (!calm_ && rng_.percent(15)) workers_.trouble();
}

void World::calm_down() {
  workers_.calm_down();
  note("--- calm");
  calm_ = true;
  outage_ = false;
  refuse_percent_ = 0;
  queue_exists_ = true;
  for (WorldNode& node : nodes_) {
    if (!node.alive) node.exists = rng_.percent(50);
    if (node.exists) node.alive = true;
  }
  nodes_[0].exists = nodes_[0].alive = true;
  for (PodView& pod : pods_) {
    if (pod.owner_uid.empty()) ledger_.excuse_creation(pod.name);
    // What nobody sees any more is for `release-pods`. No pod is looked for in the place of a slot.
    const Run* const run = job_.status.run_of_pod(pod.name);
    if (!pod.job_uid_label.empty() || (run && !run->at_worker())) continue;
    pod.has_finalizer = false;
    pod.version = ++version_;
  }
  std::erase_if(pods_,
                [](const PodView& pod) { return pod.uid == "stranger" || pod.owner_uid.empty(); });
  pods_changed();
  if (!job_exists_) return;
  job_.spec.suspend = false;
  job_.spec.parallelism = std::max<std::int64_t>(job_.spec.parallelism, 1);
  ++job_.generation;
  job_changed();
}

}  // namespace holdfast::reconciler::testing
