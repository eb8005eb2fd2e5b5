#include "tests/unit/reconciler/worker_world.h"

#include <algorithm>

#include "tests/unit/reconciler/rules.h"

namespace holdfast::reconciler::testing {
namespace {

template <class Entries>
auto find(Entries& entries, const AttemptId& id) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.id == id; });
}

}  // namespace

// The job's run has this attempt, this place, and no end on record.
bool Workers::is_open(const Job* job, const AttemptId& id, const std::string& place) const {
  if (is_other(id)) {
    const auto other = find(others_, id);
    return other != others_.end() && other->worker_uid == place;
  }
  const Run* const run = job && job->uid == id.job_uid ? run_at(job->status, id.run) : nullptr;
  return run && run->open() && run->attempt == id.attempt && run->worker_uid == place;
}

Workers::Workers(Rng& rng, std::uint64_t& version, Ledger& ledger, std::size_t count)
    : rng_(rng), version_(version), ledger_(ledger), count_(count) {
  for (std::size_t i = 0; i < count_; ++i) add_worker();
  if (count_ > 0) pool_exists_ = !rng_.percent(5);
  pool_was_missing_ = !pool_exists_;
  is_shared_ = rng_.percent(50);
  changed();
}

void Workers::note(const Agent& agent, const char* what, const AttemptId* id) const {
  if (!trace_) return;
  trace_->push_back("  " + agent.leases.name + " " + what +
                    (id ? " attempt " + std::to_string(id->attempt) : ""));
}

// A pod may have the name of a node.
void Workers::add_worker() {
  Agent agent;
  const std::string number = std::to_string(made_++);
  agent.leases.name = (rng_.percent(10) ? "node-" : "worker-") + number;
  agent.leases.uid = "lease-" + number;
  agent.leases.changed = agent.acked = now_;
  agent.leases.work.emplace();
  agent.leases.work_uid = "work-" + number;
  agent.leases.work_version = ++version_;
  agents_.push_back(agent);
}

void Workers::changed() {
  auto event = std::make_shared<LeasesEvent>();
  event->version = version_;
  event->others = others_;
  for (const Agent& agent : agents_) {
    if (agent.has_lease) event->leases.push_back(agent.leases);
  }
  log_.push_back(std::move(event));
}

Workers::Agent* Workers::with_lease(const std::string& uid) {
  for (Agent& agent : agents_) {
    if (agent.has_lease && agent.leases.uid == uid) return &agent;
  }
  return nullptr;
}

bool Workers::put_work(const std::string& uid, std::uint64_t version, const Work& next) {
  Agent* const agent = with_lease(uid);
  if (outage_ || !agent || !agent->leases.work || agent->leases.work_version != version) {
    return false;
  }
  agent->leases.work = next;
  agent->leases.work_version = ++version_;
  changed();
  return true;
}

// The agent's deadline comes before the operator's: it has killed its commands before it is cut
// off. A frozen one cannot, and is not counted until it thaws.
void Workers::pass(Time now, bool outage) {
  if (count_ == 0) return;
  now_ = now;
  outage_ = outage;
  if (outage) outage_end_ = now;
  const std::uint64_t before = version_;
  for (Agent& agent : agents_) {
    if (!agent.alive || agent.frozen) continue;
    if (!agent.is_steady(now_)) kill_all(agent);
    if (agent.acked + seconds(4) <= now_) renew(agent);
  }
  if (version_ != before) changed();
}

// A GET comes before each renewal, so the echo is never older than the last renewal.
bool Workers::read_work(Agent& agent) {
  if (!agent.is_heard(outage_)) return false;
  const std::string& known = agent.leases.report.work_uid;
  const bool is_gone =
      !agent.has_lease || !agent.leases.work || (!known.empty() && known != agent.leases.work_uid);
  agent.refused = agent.refused || is_gone;
  if (agent.refused) return false;
  agent.work = *agent.leases.work;
  return true;
}

void Workers::renew(Agent& agent) {
  if (!read_work(agent)) return;
  if (agent.leases.is != WorkerIs::kLive) {
    agent.refused = true;
    return;
  }
  // The agent keeps an answer until the entry is gone.
  std::erase_if(agent.answers, [&](const holdfast::Answer& answer) {
    return answer.kind != AnswerKind::kRunning &&
           find(agent.work.entries, answer.id) == agent.work.entries.end();
  });
  agent.leases.report = {agent.leases.work_uid, agent.work.seq, "life", agent.draining,
                         agent.answers};
  agent.leases.changed = now_;
  ++version_;
  const bool is_answered = calm_ || !rng_.percent(10);
  if (is_answered) agent.acked = now_;
}

void Workers::kill_all(Agent& agent) {
  for (holdfast::Answer& answer : agent.answers) {
    if (answer.kind != AnswerKind::kRunning) continue;
    answer.kind = AnswerKind::kStopped;
    note(agent, "in time kills", &answer.id);
  }
}

bool Workers::runs(const AttemptId* id) const {
  return std::any_of(agents_.begin(), agents_.end(), [&](const Agent& agent) {
    if (!agent.alive || agent.frozen) return false;
    return std::any_of(agent.answers.begin(), agent.answers.end(), [&](const auto& answer) {
      return answer.kind == AnswerKind::kRunning && (id ? answer.id == *id : !is_other(answer.id));
    });
  });
}

// The old phase still has the runs.
void Workers::status_written(const Job& job, const Status& next) {
  for (const Run& run : next.runs) {
    const Run* const was = run_at(job.status, run.index);
    const bool starts = run.open() && (!was || was->attempt != run.attempt);
    if (job.spec.pool.has_value() != run.at_worker()) {
      ledger_.complain("S22: an attempt has the wrong kind of place");
    }
    const auto [place, is_new] = places_.emplace(run.attempt, run.worker_uid);
    if (place->second != run.worker_uid) ledger_.complain("S22: an attempt gets another place");
    if (!starts || !was || was->attempt == 0) continue;
    const AttemptId last{job.uid, run.index, was->attempt};
    if (runs(&last)) ledger_.complain("S22: the next attempt starts beside the last command");
  }
  const bool was_terminal = is_terminal(job.status.phase);
  if (is_terminal(next.phase) && !was_terminal && runs(nullptr)) {
    ledger_.complain(std::string(to_string(next.phase)) + " while a command of the job runs");
  }
  for (const HistoryEntry& entry : next.history) {
    if (entry.outcome == Outcome::kHandedBack) handed_back_.insert(entry.attempt);
    if (entry.outcome == Outcome::kHandedBack && begun_.count(entry.attempt) > 0) {
      ledger_.complain("an attempt that has begun is handed back");
    }
  }
}

void Workers::begin(Agent& agent, const AttemptId& id) {
  note(agent, "begins", &id);
  if (!begun_.insert(id.attempt).second) ledger_.complain("S22: an attempt begins twice");
  if (handed_back_.count(id.attempt) > 0) ledger_.complain("S22: a handed back attempt begins");
  for (const Agent& other : agents_) {
    if (!other.alive || other.frozen) continue;
    for (const holdfast::Answer& answer : other.answers) {
      const bool is_same = answer.id.job_uid == id.job_uid && answer.id.run == id.run;
      if (answer.kind == AnswerKind::kRunning && is_same) {
        ledger_.complain("S22: two commands of one run run at once");
      }
    }
  }
  holdfast::Answer answer;
  answer.id = id;
  answer.message = "0";
  agent.answers.push_back(answer);
  if (!is_other(id)) ledger_.slot_begun(id.attempt);
}

// `entry` was not answered yet. The look and the beginning may be apart.
void Workers::begin_or_return(Agent& agent, const WorkEntry& entry, const Job* job) {
  const auto looked = std::find(agent.looked.begin(), agent.looked.end(), entry.id);
  bool is_over = entry.stop || agent.draining;
  if (!is_over && looked == agent.looked.end()) {
    if (!agent.is_heard(outage_)) return;
    if (is_open(job, entry.id, agent.leases.uid)) {
      agent.looked.push_back(entry.id);
      return;
    }
    is_over = true;
  }
  if (!is_over && (!agent.is_steady(now_) || agent.refused)) return;
  // If the entry comes again, the job is read again.
  std::erase(agent.looked, entry.id);
  if (!is_over) return begin(agent, entry.id);
  note(agent, "returns", &entry.id);
  holdfast::Answer answer;
  answer.id = entry.id;
  answer.kind = AnswerKind::kReturned;
  agent.answers.push_back(answer);
}

void Workers::follow(Agent& agent, const Job* job, int chance) {
  for (const WorkEntry& entry : agent.work.entries) {
    const auto answer = find(agent.answers, entry.id);
    if (answer == agent.answers.end()) {
      if (rng_.percent(chance * 2)) begin_or_return(agent, entry, job);
    } else if (answer->kind == AnswerKind::kRunning && (entry.stop || agent.draining) &&
               rng_.percent(chance)) {
      note(agent, "stops", &entry.id);
      answer->kind = AnswerKind::kStopped;
    }
  }
  for (holdfast::Answer& answer : agent.answers) {
    const bool has_entry = find(agent.work.entries, answer.id) != agent.work.entries.end();
    if (!has_entry && answer.kind == AnswerKind::kRunning) answer.kind = AnswerKind::kStopped;
  }
}

void Workers::end_some(Agent& agent, int chance) {
  for (holdfast::Answer& answer : agent.answers) {
    if (answer.kind != AnswerKind::kRunning) continue;
    if (rng_.percent(chance)) {
      note(agent, "ends", &answer.id);
      answer.kind = AnswerKind::kEnded;
      answer.exit_code = calm_ || rng_.percent(40) ? 0 : 1 + rng_.below(3);
      answer.result = "result of " + std::to_string(answer.id.attempt);
      if (!is_other(answer.id)) ledger_.slot_ended(answer);
    } else if (rng_.percent(50)) {
      answer.message = std::to_string(++answer.mark);
      answer.checkpoint = std::to_string(answer.id.attempt) + "/" + answer.message;
      answer.age_seconds = 0;
    } else {
      answer.age_seconds += 5;
    }
  }
}

void Workers::agents_act(const Job* job, int chance) {
  if (count_ == 0) return;
  const std::uint64_t before = version_;
  for (Agent& agent : agents_) {
    if (!agent.alive || agent.frozen) continue;
    if (rng_.percent(chance)) read_work(agent);
    follow(agent, job, chance);
    end_some(agent, chance / 2);
    if (rng_.percent(chance)) renew(agent);
  }
  if (version_ != before) changed();
}

}  // namespace holdfast::reconciler::testing
