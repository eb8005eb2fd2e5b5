// The executor of a replica of the random world.
#include <utility>

#include "tests/unit/reconciler/replica.h"

namespace holdfast::reconciler::testing {
namespace {

// The run of a write, and the pod if it is of no run.
using ChainKey = std::pair<std::int64_t, std::string>;

struct KeyOf {
  ChainKey operator()(const WriteStatus&) const { return {}; }
  ChainKey operator()(const ReleaseJob&) const { return {kNoRun, ""}; }
  ChainKey operator()(const DeleteJob&) const { return {kNoRun, ""}; }
  ChainKey operator()(const WriteLease& write) const { return {write.run, ""}; }
  ChainKey operator()(const DeleteLease& write) const { return {write.run, ""}; }
  template <class PodWrite>
  ChainKey operator()(const PodWrite& write) const {
    return {write.run, write.run == kNoRun ? write.name : ""};
  }
};

}  // namespace

void Replica::plan(const JobView& seen, std::vector<Write> writes) {
  decided_on_ = seen.job.version;
  decided_attempt_ = seen.job.status.attempt;
  std::map<ChainKey, Chain> chains;
  for (Write& write : writes) {
    if (auto* const status = std::get_if<WriteStatus>(&write)) {
      status_ = std::move(*status);
    } else {
      const ChainKey key = std::visit(KeyOf{}, write);
      chains[key].push_back(std::move(write));
    }
  }
  chains_.clear();
  for (auto& [key, chain] : chains) chains_.push_back(std::move(chain));
}

void Replica::record_intents(const Status& status) {
  for (const Run& run : status.runs) {
    if (!run.open() || run.attempt <= decided_attempt_ || !run.start_time) continue;
    attempts_[run.attempt].intents.push_back(*run.start_time);
  }
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
    Answer operator()(const ReleaseJob&) const {
      world.ledger().complain("a job that its outbox does not hold is released");
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

// The next write of the status or of any chain. If it fails, the rest of its chain is dropped; if
// it is the status, all are.
bool Replica::perform(bool fresh) {
  const bool records = status_.has_value();
  const auto at =
      records ? chains_.begin() : chains_.begin() + rng_.below(static_cast<int>(chains_.size()));
  const Write write = records ? Write(*status_) : at->front();
  const auto drop = [&] {
    if (records) {
      chains_.clear();
      status_.reset();
    } else {
      chains_.erase(at);
    }
    wake_ = world_.now() + std::chrono::milliseconds(10);
    return true;
  };
  if (world_.outage() || (faults_ && rng_.percent(6))) return drop();
  if (records) record_intents(status_->status);
  const Answer answer = send(write, fresh);
  if (faults_ && rng_.percent(6)) {
    world_.note("replica " + std::to_string(id_) + " loses an answer");
    if (std::holds_alternative<CreatePod>(write)) learn(write, Answer::kNoAnswer);
    return drop();
  }
  if (faults_ && rng_.percent(3)) {
    crash();
    return true;
  }
  learn(write, answer);
  const bool done =
      answer == Answer::kOk || answer == Answer::kExists || (answer == Answer::kGone && !records);
  if (!done) return drop();
  if (records) {
    status_.reset();
  } else {
    at->pop_front();
    if (at->empty()) chains_.erase(at);
  }
  if (!busy() || (faults_ && rng_.percent(30))) return true;
  return perform(false);
}

void Replica::learn(const Write& write, Answer answer) {
  if (std::holds_alternative<WriteStatus>(write) && answer == Answer::kOk) {
    own_version_ = decided_on_ = world_.job().version;
    last_write_ = world_.now();
  }
  const auto* const create = std::get_if<CreatePod>(&write);
  if (!create) return;
  AttemptMemory& attempt = attempts_[create->attempt];
  if (answer == Answer::kOk || answer == Answer::kExists) {
    const PodView* const made = world_.find_pod(create->name);
    if (made && attempt.pod_uid.empty()) attempt.pod_uid = made->uid;
    attempt.refusal.reset();
    return;
  }
  using Kind = CreationRefusal::Kind;
  const Kind kind = answer == Answer::kInvalid         ? Kind::kTemplateInvalid
                    : answer == Answer::kExistsForeign ? Kind::kNameTaken
                                                       : Kind::kRefused;
  attempt.refusal = CreationRefusal{kind, "no", seconds(5)};
  attempt.retry_at = world_.now() + seconds(5 + rng_.below(26));
}

}  // namespace holdfast::reconciler::testing
