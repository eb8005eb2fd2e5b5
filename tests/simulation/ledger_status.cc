// The ledger's rules on what a status write says: which attempts ended and began, what they spend,
// and which runs are over. What ended is read from the difference of two statuses, because history
// has only the last few ends.
#include <algorithm>

#include "operator/notify/message.h"
#include "reconciler/names.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/objects.h"
#include "tests/unit/reconciler/rules.h"
#include "tests/unit/reconciler/rules_outbox.h"

namespace holdfast::simulation {
namespace {

using namespace reconciler;  // NOLINT: the words of the rules
using JobStatus = reconciler::Status;
using std::chrono::seconds;

// No template here is wrong: only a refusal that stands for so long, in the server's time, is
// final.
constexpr seconds kFinalRefusal{100};
constexpr std::size_t kHistoryLimit = 10;
// One write records so many ends at most.
constexpr std::size_t kEndsRecorded = kHistoryLimit - 1;

const Run* run_at(const JobStatus& status, std::int64_t index) {
  const auto found = std::find_if(status.runs.begin(), status.runs.end(),
                                  [&](const Run& run) { return run.index == index; });
  return found == status.runs.end() ? nullptr : &*found;
}

// One old entry stays, so that all can see that nothing is missing in between. Deferrals do not
// count for that, and take room, too.
bool could_record_more(const std::vector<HistoryEntry>& old,
                       const std::vector<HistoryEntry>& next) {
  std::size_t fresh = 0, kept = 0;
  for (const HistoryEntry& entry : next) {
    const bool is_old = std::find(old.begin(), old.end(), entry) != old.end();
    if (!is_old) ++fresh;
    if (is_old && entry.outcome != Outcome::kDeferred) ++kept;
  }
  return fresh < kEndsRecorded && (next.size() < kHistoryLimit || kept > 1);
}

bool is_met(const SuccessRule& rule, const IndexSet& completed) {
  std::int64_t of_them = completed.size();
  std::int64_t wanted = rule.count.value_or(0);
  if (rule.indexes) {
    of_them = completed.common(*rule.indexes);
    wanted = rule.count.value_or(rule.indexes->size());
  }
  return of_them >= wanted;
}

// All runs that were wanted have succeeded, or as many as a rule of the success policy asks for.
bool has_enough(const Spec& spec, const IndexSet& completed) {
  const auto& rules = spec.success_policy;
  return completed.size() >= spec.wanted() ||
         std::any_of(rules.begin(), rules.end(),
                     [&](const SuccessRule& rule) { return is_met(rule, completed); });
}

}  // namespace

// What the drawn policies say of a failed attempt: they have rules on exit codes alone.
PolicyAction Ledger::action_of(const Spec& spec, std::optional<int> exit_code) {
  for (const PolicyRule& rule : spec.pod_failure_policy) {
    if (!rule.exit_codes || !exit_code || *exit_code == 0) continue;
    const auto& values = rule.exit_codes->values;
    const bool listed = std::find(values.begin(), values.end(), *exit_code) != values.end();
    if (listed == rule.exit_codes->in) return rule.action;
  }
  return PolicyAction::kCount;
}

void Ledger::status_written(const StatusWrite& write) {
  JobBook& book = jobs_[write.uid];
  const std::string job = key_of(write.after) + " (" + to_string(write.old.phase) + " -> " +
                          to_string(write.next.phase) + ")";
  if (!write.by_replica && excused_.count(key_of(write.after)) == 0) {
    complain("a status is written by nobody of ours: " + job);
  }
  check_shard(write, job);
  if (write.by_replica) check_shared_metadata(write);
  const std::string why = reconciler::testing::refused_by_api(write.old, write.next);
  if (!why.empty()) complain(why + ": " + job);
  if (write.old.phase == Phase::kCancelling && write.next.phase != Phase::kCancelling &&
      write.next.phase != Phase::kCancelled && write.stages.empty()) {
    complain("S12 CancelSticks: " + job);
  }
  attempts_ended(write, book);
  attempts_started(write, book);
  check_places(write);
  check_indexes(write, book);
  const Condition* const failed = write.next.condition("Failed");
  if (write.next.phase == Phase::kFailed && failed && failed->reason == "PodTemplateInvalid" &&
      gateway_.pods_broken_for() < kFinalRefusal) {
    complain("L2: a passing fault of a webhook has failed " + job);
  }
  const bool was_queued = write.old.waiting && (write.old.waiting->reason == Reason::kQueued ||
                                                write.old.waiting->reason == Reason::kQueueMissing);
  if (failed && failed->reason == "DeadlineExceeded" && !is_terminal(write.old.phase) &&
      was_queued) {
    complain("a job's time runs out while it waits in its queue: " + job);
  }
  check_deadline(write, job);
  if (write.next.failures != book.failures || write.next.disruptions != book.disruptions) {
    complain("S8 Budget: what is counted are not the ended attempts of " + job);
  }
  check_outbox(write, job);
  check_all_stopped(write);
  if (write.stages.empty()) {
    check_success(write, job);
  } else {
    check_stages(write, job);
  }
}

// S23: by the truth of the receivers, not by what the replica knows.
void Ledger::check_outbox(const StatusWrite& write, const std::string& job) {
  JobView view;
  view.job.notify = write.notify;
  view.job.status = write.old;
  for (const auto& [name, target] : Receivers::targets().by_name) {
    view.observed.notify.targets[name] = {TargetView::State::kKnown, target.events};
  }
  for (const OutboxEntry& entry : write.old.outbox) {
    const std::string id = notify::message_id({"", "", write.uid}, entry);
    for (const std::string& name : entry.targets) {
      const bool taken = receivers_->has_taken(name, id);
      if (!taken && !receivers_->has_refused(name, id)) continue;
      view.observed.notify.deliveries.push_back(
          {entry.number, name,
           taken ? DeliveryView::Result::kTaken : DeliveryView::Result::kRefused, ""});
    }
  }
  const std::string why = reconciler::testing::outbox_trouble(view, write.next, wall());
  if (!why.empty()) complain(why + ": " + job);
}

// S20, S21: what has run when the job is over, and what its phase says of that. refused_by_api()
// knows that no stage runs twice.
void Ledger::check_stages(const StatusWrite& write, const std::string& job) {
  const JobStatus& next = write.next;
  const bool has_result = reconciler::testing::is_true(next, "ResultReady");
  for (std::size_t place = 0; place < write.stages.size(); ++place) {
    const Stage& stage = write.stages[place];
    const StagePhase phase = next.stages[place].phase;
    if (has_result && !stage.always && !stage.may_fail && phase != StagePhase::kSucceeded) {
      complain("S20 StageOnce: a result without stage " + stage.name + ": " + job);
    }
    if (is_terminal(next.phase) && stage.always && phase == StagePhase::kSkipped) {
      complain("S21 Always: stage " + stage.name + " did not run: " + job);
    }
    if (phase == StagePhase::kSucceeded &&
        write.old.stages[place].phase != StagePhase::kSucceeded &&
        write.old.stages[place].phase != StagePhase::kRunning) {
      complain("S20 StageOnce: stage " + stage.name + " has succeeded and did not run: " + job);
    }
  }
  if (is_terminal(next.phase) && (next.phase == Phase::kSucceeded) != has_result) {
    complain("S20 StageOnce: the outcome is not what the stages say: " + job);
  }
}

// Succeeded: all runs that were wanted, or as many as a rule of the success policy asks for. The
// success may be on record before the phase: a pod of an earlier attempt may still be created.
void Ledger::check_success(const StatusWrite& write, const std::string& job) {
  const auto decided = [](const JobStatus& status) {
    const Condition* const met = status.condition("SuccessCriteriaMet");
    return met && met->status;
  };
  const bool ends = write.next.phase == Phase::kSucceeded && write.old.phase != Phase::kSucceeded;
  const bool decides = write.stages.empty() && decided(write.next) && !decided(write.old);
  if (!ends && !decides) return;
  if (!write.spec.many_runs()) {
    const auto& history = write.next.history;
    // It may have had more runs when that one succeeded.
    const auto& over = jobs_[write.uid].over;
    const auto first = over.find(0);
    const bool is_recorded =
        (ends && decided(write.old)) || (first != over.end() && first->second) ||
        (history != write.old.history && history.back().outcome == reconciler::Outcome::kSucceeded);
    if (!is_recorded) complain("S2 FencedOutcome: Succeeded without an attempt that did: " + job);
    return;
  }
  if (!has_enough(write.spec, write.next.completed))
    complain("S2 FencedOutcome: Succeeded without the runs that it needs: " + job);
}

// The time of a job, or of its stage, ends it only once it is over, and only if no success came
// first, however late that was read. Runs that it stops have not failed.
void Ledger::check_deadline(const StatusWrite& write, const std::string& job) {
  const JobStatus& next = write.next;
  const auto is_late = [](const JobStatus& status) {
    const Condition* const failure = status.condition("FailureTarget");
    return failure && failure->status && failure->reason == "DeadlineExceeded";
  };
  if (is_late(write.old) || !is_late(next)) return;
  // A move to the next stage empties the list of those that have succeeded in this one.
  const bool one_succeeded = !next.completed.empty();
  const bool enough =
      write.spec.many_runs() ? has_enough(write.spec, next.completed) : one_succeeded;
  if (enough && write.stages.empty()) {
    complain("a success counts, however late it is read: " + job);
  }
  const auto& limit =
      write.stages.empty() ? write.spec.active_deadline : write.stages.front().spec.active_deadline;
  const Time decided = wall() + kClockTolerance;
  const bool is_over =
      limit && next.start_time && decided >= *next.start_time + *limit + next.suspended;
  // A stage's own time is in its entry.
  if (!is_over && write.stages.empty()) complain("a job's time is over before it is: " + job);
}

// S16: an index that is over stays over, as what it was, and was run.
void Ledger::check_indexes(const StatusWrite& write, JobBook& book) {
  if (write.moves) return book.over.clear();  // the last ends of the old stage are not recorded
  // A suspended job may have fewer runs than before.
  std::erase_if(book.over, [&](const auto& one) { return one.first >= write.spec.completions; });
  if (!write.spec.many_runs()) return;
  const JobStatus& next = write.next;
  const auto rule = [&](std::int64_t index, const char* what) {
    complain("S16 RunOnce: run " + std::to_string(index) + " of " + write.name + " " + what);
  };
  for (const bool succeeded : {true, false}) {
    const IndexSet& now = succeeded ? next.completed : next.failed;
    for (auto index = now.next(0, {}); index; index = now.next(*index + 1, {})) {
      const auto known = book.over.find(*index);
      if (known != book.over.end()) {
        if (known->second != succeeded) rule(*index, "is counted as succeeded and as failed");
        continue;
      }
      const Run* const was = run_at(write.old, *index);
      // A user lowers the limit of a run that waits.
      const bool lowered = !succeeded && was && !was->open() &&
                           write.spec.backoff_limit_per_index &&
                           was->disruptions > write.spec.disruption_limit;
      // One that has failed stays on record until nothing of it is at its worker.
      const bool left = !succeeded && was && was->at_worker();
      const bool ended = was && (was->open() || left);
      if (!ended && !lowered) rule(*index, "is over without an attempt that ended");
      const bool did =
          was && succeeded &&
          (was->at_worker() ? succeeded_at_worker(write, *was)
                            : truth_of(write.uid, was->pod_name, was->pod_uid).second.phase ==
                                  PodPhase::kSucceeded);
      if (was && succeeded && !did) {
        complain("S2 FencedOutcome: a success that its pod did not tell: " +
                 named(write.name, *index, was->attempt));
      }
      book.over[*index] = succeeded;
    }
  }
  const IndexSet all = write.spec.all_indexes();
  for (const auto& [index, succeeded] : book.over) {
    if (!(succeeded ? next.completed : next.failed).contains(index)) rule(index, "is forgotten");
    if (run_at(next, index)) rule(index, "is over and goes on");
    if (!all.contains(index)) rule(index, "was not asked for");
  }
}

// The runs whose open attempt does not go on, with what the write says about each.
std::vector<Ledger::RunEnd> Ledger::ends_of(const StatusWrite& write) {
  std::vector<RunEnd> ends;
  for (const Run& was : write.old.runs) {
    const Run* const now = write.moves ? nullptr : run_at(write.next, was.index);
    if (!was.open() || (now && now->open() && now->attempt == was.attempt)) continue;
    ends.push_back({&was, now, nullptr});
  }
  for (const HistoryEntry& entry : write.next.history) {
    const auto& old = write.old.history;
    if (std::find(old.begin(), old.end(), entry) != old.end()) continue;
    const auto end = std::find_if(ends.begin(), ends.end(), [&](const RunEnd& one) {
      return one.was->attempt == entry.attempt && one.was->index == entry.index;
    });
    if (end == ends.end()) {
      complain("S2 FencedOutcome: an outcome that is not an open attempt's: " +
               named(write.name, entry.index, entry.attempt));
    } else {
      end->entry = &entry;
    }
  }
  return ends;
}

namespace {

bool fell_silent(const HistoryEntry& entry) {
  return entry.outcome == Outcome::kLost &&
         (entry.reason == Reason::kNodeSilent || entry.reason == Reason::kHolderSilent ||
          entry.reason == Reason::kPodStuckTerminating);
}

}  // namespace

void Ledger::attempts_ended(const StatusWrite& write, JobBook& book) {
  const std::vector<RunEnd> ends = ends_of(write);
  const bool has_room = could_record_more(write.old.history, write.next.history);
  for (const RunEnd& end : ends) {
    const std::string what = named(write.name, end.was->index, end.was->attempt);
    // Deferrals of one write share an entry.
    const bool shares = std::any_of(
        write.next.history.begin(), write.next.history.end(),
        [](const auto& entry) { return entry.outcome == Outcome::kDeferred && entry.count > 1; });
    if (!end.entry && !shares && has_room) {
      complain("S2 FencedOutcome: an attempt ends that is not in history: " + what);
    }
    if (!book.ended.insert(end.was->attempt).second) complain("S8 Budget: it ends twice: " + what);
    if (end.entry) attempt_ended(write, book, *end.entry);
    if (end.entry && fell_silent(*end.entry)) {
      lost_on_[write.uid].insert(end.entry->node_name);
    }
  }
  for (const RunEnd& end : ends) {
    if (!end.entry && end.now) count_unrecorded(write, end, book);
  }
  for (const RunEnd& end : ends) {
    if (!end.entry && !end.now) count_unrecorded(write, end, book);
  }
}

// Of an end that is not in history: what the run's own counts say, or the job's.
void Ledger::count_unrecorded(const StatusWrite& write, const RunEnd& end, JobBook& book) {
  if (!write.moves && write.next.completed.contains(end.was->index)) return;
  if (end.now) {
    book.failures += end.now->failures - end.was->failures;
    book.disruptions += end.now->disruptions - end.was->disruptions;
    return;
  }
  // Only the sums say what it has spent: one at most, which the next write must not change.
  if (write.next.failures > book.failures) {
    ++book.failures;
  } else if (write.next.disruptions > book.disruptions) {
    ++book.disruptions;
  }
}

// The pod that was made for this attempt: the last one of its name, unless the UID is known.
std::pair<std::string, Ledger::PodBook> Ledger::truth_of(const std::string& job_uid,
                                                         const std::string& pod_name,
                                                         const std::string& pod_uid) const {
  std::pair<std::string, PodBook> truth;
  const auto named_so = pods_by_name_.equal_range(pod_name);
  for (auto found = named_so.first; found != named_so.second; ++found) {
    const PodBook& pod = pods_.at(found->second);
    if (!pod.made || pod.owner_uid != job_uid) continue;
    if (!pod_uid.empty() && pod_uid != found->second) continue;
    if (truth.first.empty() || pod.created > truth.second.created) truth = {found->second, pod};
  }
  return truth;
}

void Ledger::attempt_ended(const StatusWrite& write, JobBook& book, const HistoryEntry& entry) {
  const Run* const run = run_at(write.old, entry.index);
  if (run && run->attempt == entry.attempt && run->at_worker()) {
    return worker_attempt_ended(write, book, entry, *run);
  }
  const std::string what = named(write.name, entry.index, entry.attempt) + ", " +
                           to_string(entry.outcome) + " (" + entry.reason.text() + ")";
  const auto [pod_uid, pod] = truth_of(write.uid, entry.pod_name, entry.pod_uid);
  const PodBook* const truth = pod_uid.empty() ? nullptr : &pod;
  const bool by_policy = truth && truth->phase == PodPhase::kFailed &&
                         action_of(write.spec, entry.exit_code) == PolicyAction::kIgnore;
  const Budget budget = by_policy ? Budget::kNone : budget_of(entry.outcome);
  const bool is_deferred = truth && truth->phase == PodPhase::kFailed &&
                           action_of(write.spec, entry.exit_code) == PolicyAction::kDefer;
  if (is_deferred != (entry.outcome == Outcome::kDeferred)) {
    complain("an end is deferred without a rule that says so, or is not with one: " + what);
  }
  if (budget == Budget::kFailures) ++book.failures;
  if (budget == Budget::kDisruptions) ++book.disruptions;
  if (!entry.pod_uid.empty() && !truth) {
    complain("S18 Author: the end of a pod that the operator did not make: " + what);
  }
  if (entry.outcome == Outcome::kSucceeded && (!truth || truth->phase != PodPhase::kSucceeded)) {
    complain("S2 FencedOutcome: a success that its pod did not tell: " + what);
  }
  if (entry.outcome == Outcome::kFailed && (!truth || truth->phase != PodPhase::kFailed)) {
    complain("S2 FencedOutcome: a failure that its pod did not tell: " + what);
  }
  check_loss(write, entry);
  check_heartbeat(write, entry, pod_uid);
  if (truth && current_) check_times(write, entry, pod_uid, *truth);
  // A lapse, or a shard that goes and comes back, is no reason to give up what is one's own.
  const auto recorder = book.attempts.find(entry.attempt);
  if (entry.reason == Reason::kPodNeverCreated && !truth && restored_at_ < Duration::zero() &&
      recorder != book.attempts.end() &&
      recorder->second.recorder == Life(current_->replica, current_->life)) {
    complain("S8 Budget: a replica takes its own intent for left behind: " + what);
  }
  if (!truth || entry.outcome == Outcome::kSucceeded) return;
  const auto read =
      last_read(pod_target(string_at(at(write.after, "metadata"), "namespace"), entry.pod_name));
  const bool was_there = read && (truth->removed == Duration::zero() || *read < truth->removed);
  if (truth->phase == PodPhase::kSucceeded && was_there && *read > truth->ended &&
      entry.reason != Reason::kOwnerRemoved) {
    complain("S2 FencedOutcome: a success was read and is not counted: " + what);
  }
  if (entry.reason == Reason::kPodGone && !entry.pod_uid.empty() &&
      truth->removed == Duration::zero() && read && *read > truth->created) {
    complain("an attempt is lost as PodGone though its pod is there: " + what);
  }
}

// An admitted job that does not start by itself skips the attempt that it was admitted for.
bool Ledger::gives_back(const StatusWrite& write) const {
  const Phase phase = write.next.phase;
  const bool idles = phase == Phase::kPending || phase == Phase::kBackoff;
  const auto& pool = write.spec.pool;
  const bool no_pool =
      pool && !write.moves && may_lack_pool(write.name.substr(0, write.name.find('/')), pool->name);
  const bool starts_none = write.next_spec.parallelism == 0 || no_pool;
  const bool rests = phase == Phase::kSuspended || (idles && starts_none);
  return rests && write.next.attempt == write.old.attempt + 1 &&
         permits_.was_admitted(write.uid, write.old.attempt);
}

void Ledger::attempts_started(const StatusWrite& write, JobBook& book) {
  const JobStatus& next = write.next;
  if (next.attempt == write.old.attempt) return;
  bool any = false;
  for (const Run& run : next.runs) {
    const Run* const was = write.moves ? nullptr : run_at(write.old, run.index);
    if (!run.open() || (was && was->open() && was->attempt == run.attempt)) continue;
    any = true;
    attempt_started(write, run, book);
  }
  const std::string what = write.name + ", attempt " + std::to_string(next.attempt);
  if (write.by_replica) check_known(write);
  if (!any && gives_back(write)) return;
  if (!any) complain("S3 Fence: it rises without an attempt: " + what);
  // As it was when they opened: the write checks the version that the decision was made on.
  const auto open =
      std::count_if(next.runs.begin(), next.runs.end(), [](const Run& run) { return run.open(); });
  const Spec& spec = write.next_spec;
  if (open > spec.parallelism) {
    complain("S17 Parallelism: " + std::to_string(open) + " runs are open, of " +
             std::to_string(spec.parallelism) + ": " + what);
  }
  if (next.stage_failures() > spec.backoff_limit) {
    complain("S8 Budget: it starts on an overspent budget: " + what);
  }
  if (spec.cancel) complain("S12 CancelSticks: an attempt of a cancelled job: " + what);
  if (spec.suspend) complain("L1: an attempt of a suspended job starts: " + what);
  if (is_deleting(write.before)) complain("L5: an attempt of a job that is deleted: " + what);
}

void Ledger::attempt_started(const StatusWrite& write, const Run& run, JobBook& book) {
  const std::string what = named(write.name, run.index, run.attempt);
  if (run.attempt <= write.old.attempt || run.attempt > write.next.attempt) {
    complain("S3 Fence: the attempt does not rise: " + what);
  }
  const auto known = book.attempts.try_emplace(
      run.attempt, AttemptBook{run.index, write.next.stage, {current_->replica, current_->life}});
  if (!known.second) complain("S3 Fence: two runs have one attempt: " + what);
  if (write.next_spec.pool) {
    attempt_placed(write, run);
  } else if (run.pod_name != pod_name(write.name, write.uid, run.attempt)) {
    complain("S6 OnePod: another name than the attempt's: " + what);
  }
  const Spec& spec = write.next_spec;
  const auto& limit = spec.backoff_limit_per_index;
  if (run.disruptions > spec.disruption_limit || (limit && run.failures > *limit)) {
    complain("S8 Budget: it starts on an overspent budget: " + what);
  }
  if (spec.pod_replacement != PodReplacementPolicy::kFailed) return;
  for (const auto& [uid, pod] : pods_) {
    if (pod.owner_uid != write.uid || pod.attempt >= run.attempt || is_final(pod.phase)) continue;
    const auto earlier = book.attempts.find(pod.attempt);
    if (earlier != book.attempts.end()) {
      const bool of_this_stage = earlier->second.stage == write.next.stage;
      if (of_this_stage ? earlier->second.index != run.index : spec.many_runs()) continue;
    }
    const std::string key = pod.namespace_ + "/" + pod.name;
    const Json* const object = gateway_.server().find("pods", pod.namespace_, pod.name);
    if (!object || uid_of(*object) != uid || excused_.count(key) > 0) continue;
    const std::string node = string_at(at(*object, "spec"), "nodeName");
    if (node.empty() && is_deleting(*object)) continue;
    const Cluster::Node* const host = cluster_.node(node);
    if (host && (!host->exists || host->lost_since != Duration::zero())) continue;
    const auto read = last_read(pod_target(pod.namespace_, pod.name));
    if (read && *read > pod.created) {
      complain("podReplacementPolicy Failed: it starts beside " + pod.name + ": " + what);
    }
  }
}

}  // namespace holdfast::simulation
