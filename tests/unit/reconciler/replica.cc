#include "tests/unit/reconciler/replica.h"

#include <algorithm>

#include "reconciler/run/authorship.h"
#include "tests/unit/reconciler/rules.h"

namespace holdfast::reconciler::testing {
namespace {

SteadyTime steady(Time time) { return SteadyTime(time.time_since_epoch()); }

}  // namespace

void Replica::start() {
  const auto old_index = [this](std::size_t size) {
    const auto back = static_cast<std::size_t>(rng_.below(8));
    return size - 1 - std::min(size - 1, back);
  };
  job_seen_ = old_index(world_.job_log().size());
  pods_seen_ = old_index(world_.pods_log().size());
  leases_seen_ = old_index(world_.workers().log().size());
  leases_version_ = world_.workers().log()[leases_seen_]->version;
  clock_.watch(true, steady(world_.now()));
  clock_.proof(steady(world_.now()));
}

void Replica::crash() {
  world_.note("replica " + std::to_string(id_) + " crashes");
  news_ = true;
  own_version_ = 0;
  last_write_ = Time{};
  clock_ = LiveClock();
  watch_open_ = true;
  leases_ = RecordTracker();
  missing_since_.clear();
  attempts_.clear();
  status_.reset();
  chains_.clear();
  wake_.reset();
  cancelling_since_.reset();
  admitted_.reset();
  no_queue_ = false;
  asks_since_.reset();
  lost_workers_.clear();
  no_pool_ = false;
  awaits_since_.reset();
  start();
}

void Replica::cut_watch(bool cut) {
  watch_open_ = !cut;
  clock_.watch(!cut, steady(world_.now()));
}

void Replica::observe() {
  if (paused_) return;
  if (!world_.outage()) clock_.proof(steady(world_.now()));
  const Duration live = clock_.read(steady(world_.now()));
  if (!watch_open_ || world_.outage()) return;
  for (const WorldNode& node : world_.nodes()) {
    leases_.seen(node.name, node.lease_version, live);
    if (node.exists) {
      missing_since_.erase(node.name);
    } else {
      missing_since_.try_emplace(node.name, live);
    }
  }
}

void Replica::sync(bool fully) {
  if (paused_ || !watch_open_ || world_.outage()) return;
  const auto advance = [&](std::size_t& seen, std::size_t end) {
    const std::size_t steps = fully ? end : static_cast<std::size_t>(rng_.below(6));
    const std::size_t next = std::min(end - 1, seen + steps);
    news_ = news_ || next != seen;
    seen = next;
  };
  advance(job_seen_, world_.job_log().size());
  advance(pods_seen_, world_.pods_log().size());
  sync_workers(fully);
  if (!fully && rng_.percent(50)) return;
  news_ = news_ || admitted_ != world_.admitted() || no_queue_ == world_.queue_exists();
  admitted_ = world_.admitted();
  no_queue_ = !world_.queue_exists();
}

// Drops what concerns neither an open run nor an intent that may still show.
void Replica::forget(const Status& status) {
  std::erase_if(attempts_, [&](const auto& entry) {
    if (entry.first > status.attempt) return false;
    return std::none_of(status.runs.begin(), status.runs.end(),
                        [&](const Run& run) { return run.open() && run.attempt == entry.first; });
  });
}

JobView Replica::view() {
  JobView view;
  view.job = *world_.job_log()[job_seen_];
  for (const PodView& pod : *world_.pods_log()[pods_seen_]) {
    if (pod.job_uid_label == view.job.uid) view.pods.push_back(pod);
  }
  observe_pool(view);
  forget(view.job.status);
  observe_cancel(view);
  observe_nodes(view);
  observe_queue(view);
  observe_targets(view);
  observe_runs({}, view);
  return view;
}

void Replica::observe_cancel(JobView& view) {
  if (view.job.status.phase != Phase::kCancelling) return cancelling_since_.reset();
  if (!cancelling_since_) cancelling_since_ = world_.now();
  view.observed.cancelling_for = world_.now() - *cancelling_since_;
}

void Replica::observe_queue(JobView& view) const {
  if (!view.job.queue) return;
  PermitView& permit = view.observed.permit;
  permit.admitted = admitted_ == view.job.status.attempt;
  permit.no_queue = no_queue_;
  // Once the status says so, nobody counts the time any more.
  if (asks_since_ && !view.job.status.says_queued()) permit.waited = world_.now() - *asks_since_;
}

// What is on record has been delivered, or was refused for good.
void Replica::observe_targets(JobView& view) {
  NotifyView& notify = view.observed.notify;
  notify.targets["chat"].state = TargetView::State::kKnown;
  for (int event = 0; event <= static_cast<int>(kLastNotifyEvent); ++event) {
    notify.targets["chat"].events.push_back(static_cast<NotifyEvent>(event));
  }
  notify.targets["failures"] = {TargetView::State::kKnown,
                                {NotifyEvent::kFailed, NotifyEvent::kStalled}};
  for (const OutboxEntry& entry : view.job.status.outbox) {
    for (const std::string& name : entry.targets) {
      const bool refuses = name == "failures" && entry.number % 2 == 0;
      notify.deliveries.push_back(
          {entry.number, name,
           refuses ? DeliveryView::Result::kRefused : DeliveryView::Result::kTaken, "refused"});
    }
  }
}

void Replica::ask_permit(const JobView& seen, bool wants) {
  if (!seen.job.queue) return;
  world_.ask_permit(wants ? std::optional(seen.job.status.attempt) : std::nullopt);
  if (!wants) asks_since_.reset();
  if (wants && !asks_since_) asks_since_ = world_.now();
}

void Replica::observe_nodes(JobView& view) {
  Observed& observed = view.observed;
  const Duration live = clock_.read(steady(world_.now()));
  for (const WorldNode& node : world_.nodes()) {
    NodeObservation seen;
    seen.silent_for = leases_.silent_for(node.name, live, clock_.epoch());
    const auto missing = missing_since_.find(node.name);
    if (missing != missing_since_.end()) {
      seen.missing_for = live - std::max(missing->second, clock_.epoch());
    }
    seen.breaker = leases_.breaker(node.name, view.job.spec.lost_after, [&](const std::string&) {
      return LiveTime{live, clock_.epoch()};
    });
    observed.nodes[node.name] = seen;
  }
  observed.live_for = live - clock_.epoch();
  for (PodView& pod : view.pods) pod.going_for = observed.live_for;
  observed.since_write = world_.now() - last_write_;
  observed.nonce = rng_.next();
  observed.may_create = !rng_.percent(5);
}

void Replica::observe_runs(const std::vector<std::int64_t>& looked, JobView& view) {
  const std::vector<Run>& runs = view.job.status.runs;
  view.runs.assign(runs.size(), {});
  show_slots(view);
  for (std::size_t position = 0; position < runs.size(); ++position) {
    const Run& run = runs[position];
    RunObserved& observed = view.runs[position].observed;
    observed.confirmed = std::count(looked.begin(), looked.end(), run.index) > 0;
    observed.confirmed = observed.confirmed || run.at_worker();
    if (!run.open()) continue;
    const AttemptMemory& known = attempts_[run.attempt];
    observed.own_intent = std::any_of(known.intents.begin(), known.intents.end(),
                                      [&](const Time& intent) { return run.start_time == intent; });
    observed.pod_existed = !known.pod_uid.empty();
    observed.pod_uid = known.pod_uid;
    observed.refusal = known.refusal;
    if (!known.refusal) continue;
    observed.refusal->retry_in = std::max(Duration::zero(), known.retry_at - world_.now());
  }
  const std::vector<const PodView*> pods = current_pods(view);
  for (std::size_t position = 0; position < runs.size(); ++position) {
    if (!runs[position].open()) continue;
    AttemptMemory& known = attempts_[runs[position].attempt];
    if (!pods[position]) {
      if (!known.bare_since) known.bare_since = world_.now();
      view.runs[position].observed.no_pod_for = world_.now() - *known.bare_since;
    } else if (pods[position]->owner_uid == view.job.uid && known.pod_uid.empty()) {
      known.pod_uid = pods[position]->uid;
    }
  }
}

// The pods of the last attempts of these runs, and their nodes. No runs: the job's last pod.
void Replica::look_live(const std::vector<std::int64_t>& runs, JobView& view) {
  const Status& status = view.job.status;
  const auto read = [&](const std::string& name, const std::string& uid, const std::string& known) {
    std::erase_if(view.pods, [&](const PodView& pod) { return pod.name == name; });
    const PodView* const pod = world_.find_pod(name);
    if (!pod) return;
    const bool names_job = pod->owner_uid == view.job.uid || pod->job_uid_label == view.job.uid;
    if (names_job || pod->uid == uid || pod->uid == known) view.pods.push_back(*pod);
  };
  for (const std::int64_t index : runs) {
    const Run* const run = run_at(status, index);
    if (run) read(run->pod_name, run->pod_uid, attempts_[run->attempt].pod_uid);
  }
  if (runs.empty()) {
    const LastPod last = last_pod(status);
    read(last.name, last.uid, "");
  }
  const bool cut = !watch_open_;
  watch_open_ = true;
  observe();
  watch_open_ = !cut;
  observe_nodes(view);
  observe_runs(runs, view);
  view.observed.asked = world_.now();
  view.observed.confirmed = runs.empty();
}

std::string Replica::text(const JobView& view, const Decision& decision) const {
  static const char* const kNames[] = {"status",  "create", "delete",  "release",
                                       "relabel", "lease",  "unlease", "job"};
  const Status& old = view.job.status;
  std::string line = "replica " + std::to_string(id_) + " at " + to_string(old.phase) + "(" +
                     std::to_string(old.attempt) + ") sees";
  for (const PodView& pod : view.pods) line += " " + pod.name + ":" + to_string(pod.phase);
  line += view.observed.looked() ? " live, decides" : ", decides";
  for (const Write& write : decision.writes) {
    line += std::string(" ") + kNames[write.index()];
    if (const auto* const status = std::get_if<WriteStatus>(&write)) {
      const Status& next = status->status;
      line += std::string("->") + to_string(next.phase) + "(" + std::to_string(next.attempt) + ")";
      for (const Run& run : next.runs) {
        line += " " + std::to_string(run.index) + (run.open() ? ":" : "-") +
                std::to_string(run.attempt);
      }
      if (next.history != old.history) line += std::string(":") + next.history.back().reason.text();
      if (next.waiting) line += "[" + next.waiting->reason.text() + "]";
    }
  }
  if (decision.wake_after) {
    line += " wake " + std::to_string(decision.wake_after->count() / 1'000'000) + " ms";
  }
  return line;
}

bool Replica::step() {
  if (paused_) return false;
  if (busy()) return perform(false);
  if (wake_ && world_.now() >= *wake_) wake_.reset();
  news_ = false;
  const auto& job = world_.job_log()[job_seen_];
  if (!job || job->version < own_version_) return false;  // S11
  JobView seen = view();
  Decision decision = decide(seen, world_.now());
  std::string broken = broken_by(seen, decision, world_.now());
  if (decision.confirm && broken.empty()) {
    // Reads the job live first: one that has moved on is decided on when the cache shows it.
    if (world_.outage() || !world_.job_exists() || world_.job().version != seen.job.version ||
        (faults_ && rng_.percent(5))) {
      wake_ = world_.now() + seconds(1);
      return true;
    }
    look_live(decision.confirm_runs, seen);
    decision = decide(seen, world_.now());
    broken = broken_by(seen, decision, world_.now());
  }
  if (world_.tracing() && (!decision.writes.empty() || !broken.empty())) {
    world_.note(text(seen, decision));
  }
  if (!broken.empty()) world_.ledger().complain(broken);
  if (decision.wake_after) wake_ = world_.now() + *decision.wake_after;
  ask_permit(seen, decision.awaits_permit);
  ask_slots(seen, decision.awaits_slots + decision.awaits_empty);
  if (decision.writes.empty()) return false;
  plan(seen, std::move(decision.writes));
  if (faults_ && rng_.percent(10)) return true;  // between the look and the first write
  return perform(true);
}

}  // namespace holdfast::reconciler::testing
