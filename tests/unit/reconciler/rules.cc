#include "tests/unit/reconciler/rules.h"

#include <algorithm>
#include <map>
#include <set>

#include "reconciler/names.h"

namespace holdfast::reconciler::testing {
namespace {

bool same_but_conditions(Status a, Status b) {
  a.conditions = b.conditions;
  a.observed_generation = b.observed_generation;
  return a == b;
}

bool may_follow(const std::vector<HistoryEntry>& next, const std::vector<HistoryEntry>& old) {
  for (std::size_t dropped = 0; dropped < old.size() || dropped == 0; ++dropped) {
    const auto first = old.begin() + static_cast<std::ptrdiff_t>(dropped);
    const auto kept = static_cast<std::size_t>(old.end() - first);
    if (kept > next.size() || !std::equal(first, old.end(), next.begin())) continue;
    return dropped == 0 || next.size() == 10;
  }
  return false;
}

std::string refused_text(const Status& status) {
  if (status.waiting) {
    const Waiting& waiting = *status.waiting;
    if (waiting.reason.empty() || waiting.reason.text().size() > 128) return "waiting.reason size";
    if (waiting.message.size() > 8192) return "waiting.message size";
    if (waiting.next_action.empty() || waiting.next_action.size() > 1024) {
      return "waiting.nextAction size";
    }
  }
  if (status.history.size() > 10) return "history is too long";
  for (const HistoryEntry& entry : status.history) {
    if (entry.reason.text().size() > 1024) return "history reason size";
  }
  constexpr std::int64_t kMostCounted = 2'147'483'648;
  if (status.failures > kMostCounted || status.disruptions > kMostCounted) return "S8: too many";
  if (status.suspended > seconds(2'147'483'647)) return "suspendedSeconds is too long";
  if (status.conditions.size() > 16) return "too many conditions";
  for (const Condition& condition : status.conditions) {
    if (condition.reason.empty()) return "condition without a reason";
    if (condition.message.size() > 32768) return "condition message size";
  }
  return "";
}

// The writes' order: status, deletions, creation, the rest.
std::string broken_order(const JobView& view, const Decision& decision) {
  std::size_t place = 0;
  bool created = false;
  std::set<std::string> told;
  for (const Write& write : decision.writes) {
    if (std::holds_alternative<WriteStatus>(write) && place != 0) return "status is not first";
    if (const auto* const gone = std::get_if<DeletePod>(&write)) {
      if (created) return "a pod is told to go after the new one is asked for";
      told.insert(gone->name);
    }
    if (const auto* const create = std::get_if<CreatePod>(&write)) {
      if (created) return "two pods are created";
      created = true;
      if (create->name != pod_name(view.job.name, view.job.uid, create->attempt)) {
        return "S6: the pod's name is not that of its attempt";
      }
      for (const PodView& pod : view.pods) {
        if (pod.owner_uid == view.job.uid && !pod.ended() && !pod.deletion &&
            attempt_in_name(view.job.name, view.job.uid, pod.name) < create->attempt &&
            !told.count(pod.name)) {
          return "the next pod is created before the old one is told to go";
        }
      }
    }
    ++place;
  }
  return "";
}

// What stands in the status or in this process' memory tells the attempt's pod from any other of
// its name; where neither does, the mark of the intent.
bool is_the_attempts(const JobView& view, const PodView& pod) {
  const Status& status = view.job.status;
  const std::string& known =
      status.run().pod_uid.empty() ? view.seen(0).observed.pod_uid : status.run().pod_uid;
  if (pod.name != status.run().pod_name) return false;
  if (!known.empty()) return pod.uid == known;
  return pod.intent && pod.intent == status.run().start_time;
}

bool was_its_own(const JobView& view, const PodView& pod) {
  if (is_the_attempts(view, pod)) return true;
  const auto& history = view.job.status.history;
  return std::any_of(history.begin(), history.end(),
                     [&](const HistoryEntry& entry) { return entry.pod_uid == pod.uid; });
}

std::string broken_pod_write(const JobView& view, const Decision& decision) {
  const Job& job = view.job;
  const auto writes_status = [&] {
    for (const Write& write : decision.writes) {
      if (const auto* const found = std::get_if<WriteStatus>(&write)) return found->status;
    }
    return job.status;
  }();
  const auto pod_with = [&](const std::string& uid) -> const PodView* {
    for (const PodView& pod : view.pods) {
      if (pod.uid == uid) return &pod;
    }
    return nullptr;
  };
  const bool runs = writes_status.phase == Phase::kRunning && !job.deleting;
  for (const Write& write : decision.writes) {
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
    if (runs && writes_status.attempt == job.status.attempt && is_the_attempts(view, *pod)) {
      return "S2: the pod of the attempt that runs is stopped or released";
    }
    const std::int64_t attempt = attempt_in_name(job.name, job.uid, pod->name);
    if (!job.deleting && pod->owner_uid == job.uid && attempt > writes_status.attempt &&
        !is_terminal(writes_status.phase)) {
      return "S3: touches the pod of a later attempt than it knows of";
    }
  }
  return "";
}

std::string broken_status_write(const JobView& view, const WriteStatus& write) {
  const Status& old = view.job.status;
  const Status& next = write.status;
  if (next == old) return "L6: writes what stands there already";
  if (const std::string why = refused_by_api(old, next); !why.empty()) return why;
  const std::int64_t spent = next.failures + next.disruptions - old.failures - old.disruptions;
  std::int64_t due = 0;                        // what the ends of this write spend
  std::map<std::int64_t, std::int64_t> ended;  // the attempts, by run
  for (const Ended& one : write.ended) {
    if (!one.outcome) continue;
    const auto run = std::find_if(old.runs.begin(), old.runs.end(),
                                  [&](const Run& run_) { return run_.index == one.index; });
    if (run == old.runs.end() || !run->open()) return "S2: an attempt ends that did not run";
    if (!ended.emplace(run->index, run->attempt).second) return "S2: an attempt ends twice";
    due += budget_of(*one.outcome) == Budget::kNone ? 0 : 1;
  }
  const auto in_history = [&](const auto& one) {
    return std::any_of(next.history.begin(), next.history.end(), [&](const HistoryEntry& entry) {
      return entry.index == one.first && entry.attempt == one.second;
    });
  };
  if (ended.size() <= kHistoryLimit && !std::all_of(ended.begin(), ended.end(), in_history)) {
    return "S2: the end of an attempt is not in history";
  }
  if (spent < due) return "S8: an ended attempt is not counted once";
  if (spent > due) return "S8: a budget is spent without an end";
  for (const Run& run : old.runs) {
    const auto now_ = std::find_if(next.runs.begin(), next.runs.end(),
                                   [&](const Run& one) { return one.index == run.index; });
    const bool same = now_ != next.runs.end() && now_->attempt == run.attempt && now_->open();
    if (run.open() && !same && !is_terminal(next.phase) && ended.count(run.index) == 0) {
      return "S8: an attempt is replaced uncounted";
    }
    if (next.completed.contains(run.index) && now_ != next.runs.end()) {
      return "S16: a completed run goes on";
    }
  }
  const auto open =
      std::count_if(next.runs.begin(), next.runs.end(), [](const Run& run) { return run.open(); });
  if (next.attempt > old.attempt && open > view.job.spec.parallelism) {
    return "S17: more runs are open than parallelism allows";
  }
  if (next.attempt > old.attempt) {
    if (next.failures > view.job.spec.backoff_limit ||
        next.disruptions > view.job.spec.disruption_limit) {
      return "S8: an attempt starts on an overspent budget";
    }
    if (view.job.spec.cancel) return "an attempt of a cancelled job starts";
    if (view.job.spec.suspend) return "an attempt of a suspended job starts";
  }
  for (const Event& event : write.events) {
    if (event.note.size() > 1024) return "an event's note is too long";
    if (event.reason.empty() || event.action.empty()) return "an event says nothing";
  }
  return "";
}

}  // namespace

bool legal_edge(Phase from, Phase to) {
  using enum Phase;
  static const std::map<Phase, std::set<Phase>> kEdges = {
      {kNone, {kPending, kRunning, kSuspended, kFailed, kCancelled}},
      {kPending, {kPending, kRunning, kSuspended, kCancelling, kSucceeded, kCancelled, kFailed}},
      {kRunning, {kRunning, kPending, kBackoff, kSuspended, kCancelling, kSucceeded, kFailed}},
      {kBackoff,
       {kBackoff, kPending, kRunning, kSuspended, kCancelling, kSucceeded, kCancelled, kFailed}},
      {kSuspended, {kSuspended, kPending, kCancelling, kCancelled, kFailed}},
      {kCancelling, {kCancelling, kCancelled}},
      {kSucceeded, {kSucceeded}},
      {kFailed, {kFailed}},
      {kCancelled, {kCancelled}}};
  return kEdges.at(from).count(to) > 0;
}

std::string refused_by_api(const Status& old, const Status& next) {
  if (!legal_edge(old.phase, next.phase)) {
    return std::string("S4: edge ") + to_string(old.phase) + " -> " + to_string(next.phase);
  }
  if (is_terminal(old.phase) && !same_but_conditions(old, next)) {
    return "S1: a final status is changed";
  }
  if (is_terminal(next.phase) != next.completion_time.has_value()) return "completionTime";
  if (is_terminal(next.phase) == next.waiting.has_value()) {
    return "waiting must stand in every phase that is not terminal, and in no other";
  }
  if (is_terminal(next.phase) && !next.runs.empty()) return "a job that has ended has runs";
  if (next.attempt < old.attempt) return "S3: attempt falls";
  if (next.failures < old.failures || next.disruptions < old.disruptions) return "S8: budget falls";
  if (old.start_time && next.start_time != old.start_time) return "startTime changes";
  if (old.completion_time && next.completion_time != old.completion_time) {
    return "completionTime changes";
  }
  if (next.suspended < old.suspended) return "suspendedSeconds falls";
  if (!may_follow(next.history, old.history)) return "history is rewritten";
  return refused_text(next);
}

std::string broken_by(const JobView& view, const Decision& decision, Time now) {
  const Job& job = view.job;
  if (decision.confirm) {
    if (view.observed.confirmed || view.seen(0).observed.confirmed)
      return "asks for a live look that it just had";
    return decision.writes.empty() ? "" : "writes before the live look that it asks for";
  }
  Status next = job.status;
  int status_writes = 0;
  for (const Write& write : decision.writes) {
    const auto* const status = std::get_if<WriteStatus>(&write);
    if (!status) continue;
    if (++status_writes > 1) return "two status writes";
    if (job.deleting) return "writes the status of a job that is being deleted";
    if (const std::string why = broken_status_write(view, *status); !why.empty()) return why;
    next = status->status;
  }
  if (const std::string why = broken_order(view, decision); !why.empty()) return why;
  if (const std::string why = broken_pod_write(view, decision); !why.empty()) return why;
  const bool creates =
      std::any_of(decision.writes.begin(), decision.writes.end(),
                  [](const Write& write) { return std::holds_alternative<CreatePod>(write); });
  if (creates && (next.phase != Phase::kRunning || job.deleting)) {
    return "a pod is created without an attempt that runs";
  }
  if (next.attempt > job.status.attempt && !creates) return "an intent without its pod";
  if (decision.writes.empty() && decision.wake_after && *decision.wake_after <= Duration::zero()) {
    return "hot loop: nothing to do, and look again at once";
  }
  const bool waits_for_events =
      job.deleting || is_terminal(next.phase) || next.phase == Phase::kSuspended;
  if (!decision.wake_after && !waits_for_events) {
    return "stuck: nothing to do, and no time to look again";
  }
  const bool overdue =
      next.waiting && next.waiting->deadline && *next.waiting->deadline < now - seconds(3);
  const bool soon = decision.wake_after && *decision.wake_after <= seconds(1);
  if (overdue && decision.writes.empty() && !soon && !job.deleting) {
    return "the deadline that it tells has long passed";
  }
  return "";
}

}  // namespace holdfast::reconciler::testing
