#include "tests/unit/reconciler/rules_writes.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "reconciler/names.h"
#include "tests/unit/reconciler/rules.h"

namespace holdfast::reconciler::testing {
namespace {

const std::string& known_uid(const JobView& view, std::size_t position) {
  const Run& run = view.job.status.runs[position];
  return run.pod_uid.empty() ? view.seen(position).observed.pod_uid : run.pod_uid;
}

// What stands in the status or in this process' memory distinguishes the attempt's pod from any
// other of its name; where neither does, the mark of the intent.
bool is_the_attempts(const JobView& view, std::size_t position, const PodView& pod) {
  const Run& run = view.job.status.runs[position];
  const std::string& known = known_uid(view, position);
  if (pod.name != run.pod_name) return false;
  if (!known.empty()) return pod.uid == known;
  return pod.intent && pod.intent == run.start_time;
}

bool was_its_own(const JobView& view, const PodView& pod) {
  for (std::size_t position = 0; position < view.job.status.runs.size(); ++position) {
    if (is_the_attempts(view, position, pod)) return true;
  }
  const auto& history = view.job.status.history;
  return std::any_of(history.begin(), history.end(),
                     [&](const HistoryEntry& entry) { return entry.pod_uid == pod.uid; });
}

// The run's open attempt stays open.
bool goes_on(const Run& run, const Status& next) {
  const Run* const now = run_at(next, run.index);
  return run.open() && now && now->open() && now->attempt == run.attempt;
}

// The pod is that of an attempt that goes on.
bool is_needed(const JobView& view, const Status& next, const PodView& pod) {
  const auto& runs = view.job.status.runs;
  for (std::size_t position = 0; position < runs.size(); ++position) {
    if (goes_on(runs[position], next) && is_the_attempts(view, position, pod)) return true;
  }
  return false;
}

// A write on a pod of this name belongs to the run that has the pod, before or after the decision.
std::string broken_run(const JobView& view, const Status& next, const std::string& name,
                       std::int64_t run) {
  std::set<std::int64_t> runs;
  for (const Status* const status : {&view.job.status, &next}) {
    for (const Run& one : status->runs) {
      if (one.pod_name == name) runs.insert(one.index);
    }
  }
  const bool right = runs.empty() ? run == kNoRun : runs.count(run) > 0;
  return right ? "" : "S6: a write on a pod is not in the order of the run that has it";
}

struct RunOfPodWrite {
  const std::string* name = nullptr;
  std::int64_t run = kNoRun;
  RunOfPodWrite operator()(const DeletePod& write) const { return {&write.name, write.run}; }
  RunOfPodWrite operator()(const ReleasePod& write) const { return {&write.name, write.run}; }
  RunOfPodWrite operator()(const RelabelPod& write) const { return {&write.name, write.run}; }
  template <class Other>
  RunOfPodWrite operator()(const Other&) const {
    return {};
  }
};

// The old pods of the run whose next pod is created. Of a job with one run each earlier one is.
bool is_old_pod(const JobView& view, const PodView& pod, const CreatePod& create) {
  const Job& job = view.job;
  if (pod.owner_uid != job.uid || pod.ended() || pod.deletion) return false;
  if (attempt_in_name(job.name, job.uid, pod.name) >= create.attempt) return false;
  if (!job.spec.many_runs()) return true;
  std::vector<std::int64_t> named;
  for (const Run& run : job.status.runs) {
    if (run.pod_name == pod.name) named.push_back(run.index);
  }
  return named == std::vector<std::int64_t>{create.run};
}

std::string broken_creation(const JobView& view, const Status& next, const CreatePod& create) {
  if (create.name != pod_name(view.job.name, view.job.uid, create.attempt)) {
    return "S6: the pod's name is not that of its attempt";
  }
  const Run* const run = run_at(next, create.run);
  if (!run || !run->open() || run->attempt != create.attempt || run->pod_name != create.name ||
      run->start_time != create.intent) {
    return "S8: a pod is created that is not on record";
  }
  return "";
}

}  // namespace

// Writes of different runs are performed side by side. A job with one run has one order for all.
std::string broken_order(const JobView& view, const Decision& decision, const Status& next) {
  const auto order_of = [&](std::int64_t run) { return view.job.spec.many_runs() ? run : 0; };
  std::set<std::int64_t> created;
  std::set<std::pair<std::int64_t, std::string>> deleted;
  for (const Write& write : decision.writes) {
    if (std::holds_alternative<WriteStatus>(write) && &write != &decision.writes.front()) {
      return "status is not first";
    }
    if (const auto* const gone = std::get_if<DeletePod>(&write)) {
      if (created.count(order_of(gone->run)) > 0) {
        return "a pod is told to go after the new one is asked for";
      }
      deleted.emplace(order_of(gone->run), gone->name);
    }
    const auto* const create = std::get_if<CreatePod>(&write);
    if (!create) continue;
    if (!created.insert(order_of(create->run)).second) return "two pods of a run are created";
    if (const std::string why = broken_creation(view, next, *create); !why.empty()) return why;
    for (const PodView& pod : view.pods) {
      if (is_old_pod(view, pod, *create) && deleted.count({order_of(create->run), pod.name}) == 0) {
        return "the next pod is created before the old one is told to go";
      }
    }
  }
  return "";
}

std::string broken_pod_write(const JobView& view, const Decision& decision, const Status& next) {
  const Job& job = view.job;
  const auto pod_with = [&](const std::string& uid) -> const PodView* {
    for (const PodView& pod : view.pods) {
      if (pod.uid == uid) return &pod;
    }
    return nullptr;
  };
  for (const Write& write : decision.writes) {
    const RunOfPodWrite of = std::visit(RunOfPodWrite{}, write);
    const std::string why = of.name ? broken_run(view, next, *of.name, of.run) : "";
    if (!why.empty()) return why;
    const auto* const gone = std::get_if<DeletePod>(&write);
    const auto* const release = std::get_if<ReleasePod>(&write);
    if (!gone && !release) continue;
    const PodView* const pod = pod_with(gone ? gone->uid : release->uid);
    if (!pod) return "S7: a write on a pod that is not in the view";
    if (gone && gone->version != pod->version) return "S7: deletes another version";
    const bool ours = pod->owner_uid == job.uid || was_its_own(view, *pod);
    if (gone && !ours) return "S6: deletes another owner's pod";
    if (release && !ours && !pod->owner_uid.empty()) {
      return "S6: releases another owner's pod";
    }
    if (!job.deleting && is_needed(view, next, *pod)) {
      return "S2: the pod of an attempt that runs is stopped or released";
    }
    const std::int64_t attempt = attempt_in_name(job.name, job.uid, pod->name);
    if (!job.deleting && pod->owner_uid == job.uid && attempt > next.attempt &&
        !is_terminal(next.phase)) {
      return "S3: touches the pod of a later attempt than it knows of";
    }
  }
  return "";
}

namespace {

// What the end of the run's attempt spends.
Budget spent_by(const JobView& view, const Run& run, Outcome outcome) {
  const auto position = static_cast<std::size_t>(&run - view.job.status.runs.data());
  for (const PodView& pod : view.pods) {
    if (!is_the_attempts(view, position, pod)) continue;
    const bool proven = pod.owner_uid == view.job.uid || pod.uid == known_uid(view, position);
    const PolicyAction action = policy_on(view.job.spec, pod);
    const bool is_free = action == PolicyAction::kIgnore || action == PolicyAction::kDefer;
    if (proven && is_free) return Budget::kNone;
  }
  return budget_of(outcome);
}

std::string broken_ends(const JobView& view, const WriteStatus& write) {
  const Status& old = view.job.status;
  const Status& next = write.status;
  const std::int64_t spent = next.failures + next.disruptions - old.failures - old.disruptions;
  std::int64_t due = 0;                        // what the ends of this write spend
  std::map<std::int64_t, std::int64_t> ended;  // the attempts, by run
  std::set<std::int64_t> deferred;             // those whose entry others may share
  for (const Ended& one : write.ended) {
    if (!one.outcome) continue;
    const Run* const run = run_at(old, one.index);
    if (!run || !run->open()) return "S2: an attempt ends that did not run";
    if (!ended.emplace(run->index, run->attempt).second) return "S2: an attempt ends twice";
    if (*one.outcome == Outcome::kDeferred) deferred.insert(run->index);
    due += spent_by(view, *run, *one.outcome) == Budget::kNone ? 0 : 1;
  }
  const auto in_history = [&](const auto& one) {
    // Deferrals in a row share an entry.
    const bool shares = deferred.count(one.first) > 0;
    return std::any_of(next.history.begin(), next.history.end(), [&](const HistoryEntry& entry) {
      return (shares && entry.outcome == Outcome::kDeferred) ||
             (entry.index == one.first && entry.attempt == one.second);
    });
  };
  if (ended.size() < kHistoryLimit && !std::all_of(ended.begin(), ended.end(), in_history)) {
    return "S2: the end of an attempt is not in history";
  }
  // A count at the schema's limit stays there.
  const bool can_count = next.failures < kCountLimit && next.disruptions < kCountLimit;
  if (spent < due && can_count) return "S8: an ended attempt is not counted once";
  if (spent > due) return "S8: a budget is spent without an end";
  for (const Run& run : old.runs) {
    if (run.open() && !goes_on(run, next) && ended.count(run.index) == 0) {
      return "S8: an attempt is replaced uncounted";
    }
    const bool is_over = next.completed.contains(run.index) || next.failed.contains(run.index);
    if (is_over && run_at(next, run.index)) return "S16: a run goes on that is over";
  }
  return "";
}

// What may still start once the outcome is decided.
std::string broken_after_outcome(const Job& job, const Status& next) {
  const bool failed = is_true(next, "FailureTarget");
  const bool succeeded = is_true(next, "SuccessCriteriaMet");
  const bool has_stages = !job.stages.empty();
  if (has_stages && job.stages[next.stage].always) return "";
  if (failed || (succeeded && !has_stages)) {
    return "an attempt starts of a job whose outcome is decided";
  }
  return job.cancel ? "S12: an attempt of a cancelled job starts" : "";
}

// An Always stage is left out by nothing.
std::string broken_stages(const Job& job, const Status& next) {
  for (std::size_t position = 0; position < next.stages.size(); ++position) {
    if (job.stages[position].always && !has_ended(job.status.stages[position].phase) &&
        next.stages[position].phase == StagePhase::kSkipped) {
      return "S21: an Always stage is skipped";
    }
  }
  return "";
}

// An admitted job that rests starts nothing, and its attempt rises by one for the permit.
bool gives_back(const JobView& view, const Status& next) {
  // What this version does not know starts nothing, and holds no permit.
  const bool idles = next.phase == Phase::kPending || next.phase == Phase::kBackoff;
  const bool is_unknown = !view.job.unknown.empty() || !view.observed.pool.unknown.empty();
  return view.job.queue &&
         (rests(view.job.spec, next, view.observed.pool.no_pool) || (idles && is_unknown)) &&
         next.attempt == view.job.status.attempt + 1;
}

// A job keeps its permit from one attempt to the next only while its recorded phase is Running.
std::string broken_permit(const JobView& view, const Status& next) {
  const bool is_free =
      !view.job.queue || view.job.status.phase == Phase::kRunning || view.observed.permit.admitted;
  return is_free || next.attempt == view.job.status.attempt
             ? ""
             : "S19: the attempt of a job without a permit rises";
}

std::string broken_starts(const JobView& view, const Status& next) {
  const Status& old = view.job.status;
  if (const std::string why = broken_permit(view, next); !why.empty()) return why;
  const bool moves = next.stage != old.stage;
  const Spec& spec = moves ? view.job.stages[next.stage].spec : view.job.spec;
  if (next.attempt == old.attempt) return "";
  if (std::none_of(next.runs.begin(), next.runs.end(),
                   [&](const Run& run) { return run.attempt > old.attempt; })) {
    return gives_back(view, next) ? "" : "S3: attempt rises, and no run starts";
  }
  const auto open =
      std::count_if(next.runs.begin(), next.runs.end(), [](const Run& run) { return run.open(); });
  if (open > spec.parallelism) return "S17: more runs are open than parallelism allows";
  std::int64_t lost = 0;
  for (const Run& run : next.runs) {
    // With limits for each run it matters to a run that starts alone. The attempt of an open run
    // ends first.
    const bool starts = run.attempt > old.attempt;
    const bool per_index = spec.many_runs() && spec.backoff_limit_per_index;
    const bool counts = starts || (!per_index && !run.open());
    if (counts) lost = std::max(lost, run.disruptions);
  }
  if (next.stage_failures() > spec.backoff_limit || lost > spec.disruption_limit) {
    return "S8: an attempt starts on an overspent budget";
  }
  if (const std::string why = broken_after_outcome(view.job, next); !why.empty()) return why;
  if (spec.cancel) return "an attempt of a cancelled job starts";
  if (spec.suspend) return "an attempt of a suspended job starts";
  return "";
}

}  // namespace

std::string broken_status_write(const JobView& view, const WriteStatus& write) {
  const Status& old = view.job.status;
  if (write.status == old) return "L6: writes what stands there already";
  if (const std::string why = refused_by_api(old, write.status); !why.empty()) return why;
  if (const std::string why = broken_ends(view, write); !why.empty()) return why;
  if (const std::string why = broken_stages(view.job, write.status); !why.empty()) return why;
  if (const std::string why = broken_starts(view, write.status); !why.empty()) return why;
  for (const Event& event : write.events) {
    if (event.note.size() > 1024) return "an event's note is too long";
    if (event.reason.empty() || event.action.empty()) return "an event says nothing";
  }
  return "";
}

}  // namespace holdfast::reconciler::testing
