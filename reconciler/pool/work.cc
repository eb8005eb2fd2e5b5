#include "reconciler/pool/work.h"

#include <algorithm>

namespace holdfast::reconciler {
namespace {

template <class Entries>
auto find(Entries& entries, const AttemptId& id) {
  return std::find_if(entries.begin(), entries.end(),
                      [&](const auto& entry) { return entry.id == id; });
}

bool is_answered(const WorkerReport& report, const AttemptId& id) {
  const auto answer = find(report.answers, id);
  return answer != report.answers.end() && answer->kind != AnswerKind::kRunning;
}

AtPlace place_of(const Answer& answer) {
  switch (answer.kind) {
    case AnswerKind::kRunning:
      return AtPlace::kRunning;
    case AnswerKind::kEnded:
      return AtPlace::kEnded;
    case AnswerKind::kStopped:
      return AtPlace::kStopped;
    case AnswerKind::kReturned:
      return AtPlace::kReturned;
  }
  return AtPlace::kUnknown;
}

// Not if it is another work Lease than the one that the agent reads, or was set back since.
bool has_no_entry(const WorkerView& worker, const AttemptId& id) {
  const std::string& read = worker.report.work_uid;
  return worker.work && (read.empty() || read == worker.work_uid) &&
         worker.report.seq <= worker.work->seq &&
         find(worker.work->entries, id) == worker.work->entries.end();
}

}  // namespace

std::optional<Work> next_work(const Work& work, const WorkerReport& report,
                              const std::vector<Placed>& placed,
                              const std::function<RecordSays(const AttemptId&)>& record) {
  Work next{work.seq + 1, work.draining, {}, work.end};
  bool changes = false;
  for (WorkEntry entry : work.entries) {
    const bool is_over = record(entry.id) == RecordSays::kOver;
    const bool leaves = is_over && is_answered(report, entry.id);
    changes = changes || leaves || (is_over && !entry.stop);
    if (leaves) continue;
    entry.stop = entry.stop || is_over;
    const auto there = find(placed, entry.id);
    if (!entry.stop && there != placed.end() && there->message > entry.message) {
      entry.message = there->message;
      changes = true;
    }
    next.entries.push_back(std::move(entry));
  }
  for (const Placed& one : placed) {
    if (work.draining || next.entries.size() >= kMaxProtocolEntries) break;
    if (find(work.entries, one.id) != work.entries.end()) continue;
    if (record(one.id) != RecordSays::kRun) continue;
    next.entries.push_back({one.id, one.job_name, false, one.message});
    changes = true;
  }
  return changes ? std::optional(std::move(next)) : std::nullopt;
}

std::optional<Work> marked(const Work& work, bool drains, const std::optional<PodEnd>& end) {
  const bool is_news = ((drains || end) && !work.draining) || (end && work.end != end);
  if (!is_news) return std::nullopt;
  Work next = work;
  ++next.seq;
  next.draining = true;
  if (end) next.end = end;
  return next;
}

AtPlace at_place(const AttemptId& id, const WorkerView& worker, const Answer** answer) {
  const auto found = find(worker.report.answers, id);
  const bool is_reported = found != worker.report.answers.end();
  if (is_reported && answer) *answer = &*found;
  if (is_reported && found->kind != AnswerKind::kRunning) return place_of(*found);
  if (worker.is == WorkerIs::kCutOff) {
    // Who else was there decides what a kill for memory means.
    const bool is_counted = !worker.out_of_memory || worker.read_after;
    if (is_reported && is_counted) return AtPlace::kLost;
    if (!worker.read_after) return AtPlace::kUnknown;
    return has_no_entry(worker, id) ? AtPlace::kReturned : AtPlace::kLost;
  }
  if (is_reported) return AtPlace::kRunning;
  // A marked work Lease gets no entry any more.
  const bool drains = worker.is == WorkerIs::kLive && worker.work && worker.work->draining;
  return drains && has_no_entry(worker, id) ? AtPlace::kReturned : AtPlace::kUnknown;
}

std::int64_t attempts_at_end(const WorkerView& worker) {
  std::int64_t attempts = 0;
  if (worker.work) {
    for (const WorkEntry& entry : worker.work->entries) {
      if (!is_answered(worker.report, entry.id)) ++attempts;
    }
  }
  for (const Answer& answer : worker.report.answers) {
    const bool has_entry =
        worker.work && find(worker.work->entries, answer.id) != worker.work->entries.end();
    if (answer.kind == AnswerKind::kRunning && !has_entry) ++attempts;
  }
  return attempts;
}

bool has_left(const AttemptId& id, const WorkerView& worker) {
  if (worker.is == WorkerIs::kCutOff || is_answered(worker.report, id)) return true;
  // Its entry has left with its answer, or never was. If one comes now, the agent finds the end.
  return worker.read_after && has_no_entry(worker, id);
}

}  // namespace holdfast::reconciler
