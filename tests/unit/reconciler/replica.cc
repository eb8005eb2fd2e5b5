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
  clock_.watch(true, steady(world_.now()));
  clock_.proof(steady(world_.now()));
}

void Replica::crash() {
  world_.note("replica " + std::to_string(id_) + " crashes");
  news_ = true;
  intent_attempt_ = 0;
  own_version_ = 0;
  last_write_ = Time{};
  clock_ = LiveClock();
  watch_open_ = true;
  leases_ = RecordTracker();
  missing_since_.clear();
  existed_.clear();
  no_pod_since_.reset();
  refusal_.reset();
  writes_.clear();
  next_write_ = 0;
  wake_.reset();
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
}

void Replica::remember(const JobView& view) {
  const std::int64_t attempt = view.job.status.attempt;
  if (const PodView* const pod = view.job.status.runs.empty() ? nullptr : current_pod(view, 0)) {
    if (pod->owner_uid == view.job.uid) existed_.try_emplace(attempt, pod->uid);
    no_pod_since_.reset();
  } else if (!no_pod_since_ || no_pod_since_->first != attempt) {
    no_pod_since_ = {attempt, world_.now()};
  }
  if (refusal_ && refusal_->first != attempt) refusal_.reset();
}

JobView Replica::view() {
  JobView view;
  view.job = *world_.job_log()[job_seen_];
  for (const PodView& pod : *world_.pods_log()[pods_seen_]) {
    if (pod.job_uid_label == view.job.uid) view.pods.push_back(pod);
  }
  remember(view);
  const Status& status = view.job.status;
  Observed& observed = view.observed;
  RunObserved& of_run = view.begun().observed;
  const Duration live = clock_.read(steady(world_.now()));
  of_run.pod_existed = existed_.count(status.attempt) > 0;
  if (of_run.pod_existed) of_run.pod_uid = existed_.at(status.attempt);
  of_run.own_intent = intent_attempt_ == status.attempt && intent_stamp_ == status.run().start_time;
  if (no_pod_since_) of_run.no_pod_for = world_.now() - no_pod_since_->second;
  if (refusal_) {
    of_run.refusal = refusal_->second;
    of_run.refusal->retry_in = std::max(Duration::zero(), retry_at_ - world_.now());
  }
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
  return view;
}

void Replica::look_live(JobView& view) {
  const LastPod last = last_pod(view.job.status);
  const std::string& name = last.name;
  const bool cut = !watch_open_;
  std::erase_if(view.pods, [&](const PodView& pod) { return pod.name == name; });
  if (const PodView* const pod = world_.find_pod(name)) {
    if (pod->owner_uid == view.job.uid || pod->job_uid_label == view.job.uid ||
        pod->uid == last.uid) {
      view.pods.push_back(*pod);
    }
  }
  watch_open_ = true;
  observe();
  watch_open_ = !cut;
  const JobView fresh = this->view();
  view.observed = fresh.observed;
  view.runs = fresh.runs;
  for (PodView& pod : view.pods) pod.going_for = view.observed.live_for;
  remember(view);
  const auto existed = existed_.find(view.job.status.attempt);
  view.begun().observed.pod_existed = existed != existed_.end();
  if (existed != existed_.end()) view.begun().observed.pod_uid = existed->second;
  view.begun().observed.confirmed = view.observed.confirmed = true;
}

std::string Replica::text(const JobView& view, const Decision& decision) const {
  static const char* const kNames[] = {"status",  "create", "delete",  "release",
                                       "relabel", "lease",  "unlease", "job"};
  const Status& old = view.job.status;
  std::string line = "replica " + std::to_string(id_) + " at " + to_string(old.phase) + "(" +
                     std::to_string(old.attempt) + ") sees";
  for (const PodView& pod : view.pods) line += " " + pod.name + ":" + to_string(pod.phase);
  line += view.seen(0).observed.confirmed ? " live, decides" : ", decides";
  for (const Write& write : decision.writes) {
    line += std::string(" ") + kNames[write.index()];
    if (const auto* const status = std::get_if<WriteStatus>(&write)) {
      const Status& next = status->status;
      line += std::string("->") + to_string(next.phase) + "(" + std::to_string(next.attempt) + ")";
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
    look_live(seen);
    decision = decide(seen, world_.now());
    broken = broken_by(seen, decision, world_.now());
  }
  if (world_.tracing() && (!decision.writes.empty() || !broken.empty())) {
    world_.note(text(seen, decision));
  }
  if (!broken.empty()) world_.ledger().complain(broken);
  if (decision.wake_after) wake_ = world_.now() + *decision.wake_after;
  if (decision.writes.empty()) return false;
  writes_ = std::move(decision.writes);
  next_write_ = 0;
  decided_on_ = seen.job.version;
  decided_attempt_ = seen.job.status.attempt;
  if (faults_ && rng_.percent(10)) return true;  // between the look and the first write
  return perform(true);
}

Answer Replica::send(const Write& write, bool fresh) {
  struct Send {
    World& world;
    std::uint64_t version;
    bool fresh;
    Answer operator()(const WriteStatus& w) const {
      return world.put_status(version, w.status, fresh);
    }
    Answer operator()(const CreatePod& w) const { return world.create_pod(w); }
    Answer operator()(const DeletePod& w) const { return world.delete_pod(w); }
    Answer operator()(const ReleasePod& w) const { return world.release_pod(w); }
    Answer operator()(const RelabelPod& w) const { return world.relabel_pod(w); }
    // No job of this world has a heartbeat.
    Answer operator()(const WriteLease&) const {
      world.ledger().complain("a Lease for a job without heartbeat");
      return Answer::kRefused;
    }
    Answer operator()(const DeleteLease&) const {
      world.ledger().complain("a Lease of a job without heartbeat is deleted");
      return Answer::kRefused;
    }
    Answer operator()(const DeleteJob&) const { return world.delete_job(version); }
  };
  const std::uint64_t before = world_.version();
  const Answer answer = std::visit(Send{world_, decided_on_, fresh}, write);
  if (world_.version() != before) ++applied_;
  if (answer != Answer::kOk || !faults_ || !rng_.percent(5)) return answer;
  const std::uint64_t once = world_.version();
  std::visit(Send{world_, decided_on_, false}, write);
  if (world_.version() != once)
    world_.ledger().complain("S9: a repeated request changes something");
  return answer;
}

// The next write of the decision; at the first that fails the rest is dropped.
bool Replica::perform(bool fresh) {
  const Write write = writes_[next_write_];
  const auto stop = [this] {
    writes_.clear();
    next_write_ = 0;
    wake_ = world_.now() + std::chrono::milliseconds(10);
    return true;
  };
  if (world_.outage() || (faults_ && rng_.percent(6))) return stop();
  if (const auto* const status = std::get_if<WriteStatus>(&write);
      status && status->status.attempt > decided_attempt_) {
    intent_attempt_ = status->status.attempt;
    intent_stamp_ = status->status.run().start_time;
  }
  const Answer answer = send(write, fresh);
  if (faults_ && rng_.percent(6)) {
    world_.note("replica " + std::to_string(id_) + " loses an answer");
    if (std::holds_alternative<CreatePod>(write)) learn(write, Answer::kNoAnswer);
    return stop();
  }
  if (faults_ && rng_.percent(3)) {
    crash();
    return true;
  }
  learn(write, answer);
  const bool done = answer == Answer::kOk || answer == Answer::kExists ||
                    (answer == Answer::kGone && !std::holds_alternative<WriteStatus>(write));
  if (!done) return stop();
  if (++next_write_ < writes_.size()) {
    return faults_ && rng_.percent(30) ? true : perform(false);
  }
  writes_.clear();
  next_write_ = 0;
  return true;
}

void Replica::learn(const Write& write, Answer answer) {
  if (std::holds_alternative<WriteStatus>(write) && answer == Answer::kOk) {
    own_version_ = decided_on_ = world_.job().version;
    last_write_ = world_.now();
  }
  const auto* const create = std::get_if<CreatePod>(&write);
  if (!create) return;
  if (answer == Answer::kOk || answer == Answer::kExists) {
    const PodView* const made = world_.find_pod(create->name);
    if (made) existed_.try_emplace(create->attempt, made->uid);
    refusal_.reset();
    return;
  }
  using Kind = CreationRefusal::Kind;
  const Kind kind = answer == Answer::kInvalid         ? Kind::kTemplateInvalid
                    : answer == Answer::kExistsForeign ? Kind::kNameTaken
                                                       : Kind::kRefused;
  refusal_ = {create->attempt, CreationRefusal{kind, "no", seconds(5)}};
  retry_at_ = world_.now() + seconds(5 + rng_.below(26));
}

}  // namespace holdfast::reconciler::testing
