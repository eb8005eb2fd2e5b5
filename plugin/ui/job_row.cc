#include "plugin/ui/job_row.h"

#include <set>

#include "core/thread_annotations.h"
#include "core/utf8.h"

namespace holdfast::plugin {
namespace {

constexpr std::size_t kLabels = 1024;

SharedText shared(const JsonView& object, std::string_view key) {
  return SharedText(clean_text(string_at(object, key), kRowText));
}

std::string clean(const JsonView& object, std::string_view key) {
  return clean_text(string_at(object, key), kRowText);
}

std::optional<Time> time_at(const JsonView& object, std::string_view key) {
  return parse_time(string_at(object, key));
}

std::string labels_of(const JsonView& metadata) {
  std::string labels;
  for_each_member(at(metadata, "labels"), [&](std::string_view name, const JsonView& value) {
    const std::string label = std::string(name) + "=" + std::string(value.string_or("")) + ",";
    if (labels.size() + label.size() <= kLabels) labels += label;
  });
  return clean_text(labels, kLabels);
}

// The condition that says how it has ended.
void take_end(const JsonView& status, JobRow& row) {
  const std::string_view type = row.phase == "Failed"      ? "Failed"
                                : row.phase == "Cancelled" ? "Cancelled"
                                                           : "Complete";
  for (const JsonView& condition : at(status, "conditions")) {
    if (!(at(condition, "type") == type)) continue;
    row.waiting = shared(condition, "reason");
    if (type != "Complete") row.message = clean(condition, "message");
  }
  row.since = time_at(status, "completionTime");
}

void take_wait(const JsonView& status, JobRow& row) {
  const JsonView waiting = at(status, "waiting");
  row.waiting = shared(waiting, "reason");
  row.message = clean(waiting, "message");
  row.since = time_at(waiting, "since");
  row.deadline = time_at(waiting, "deadline");
  for (const JsonView& condition : at(status, "conditions")) {
    if (at(condition, "type") == "Stalled" && at(condition, "status") == "True") {
      row.stalled = true;
      row.stalled_by = shared(condition, "reason");
    }
  }
  for (const JsonView& run : at(status, "runs")) {
    if (!at(run, "nextAttemptTime").is_null()) continue;  // it waits, and keeps its last node
    row.place = clean(run, "workerName");
    if (row.place.empty()) row.place = clean(run, "nodeName");
    if (!row.place.empty()) break;
  }
}

}  // namespace

SharedText::SharedText(std::string_view text) {
  static Mutex mutex;
  static std::set<std::string, std::less<>> texts;
  MutexLock lock(mutex);
  auto found = texts.find(text);
  if (found == texts.end()) found = texts.emplace(text).first;
  text_ = &*found;
}

Rank rank_of(const JobRow& row, Time now) {
  return rank_of(RankOf{row.phase, row.stalled, row.waiting, row.deadline}, now);
}

kube::ObjectPtr decode_job_row(const JsonView& job) {
  auto row = std::make_shared<JobRow>();
  if (!kube::decode_meta(job, *row)) return nullptr;
  const JsonView metadata = at(job, "metadata");
  const JsonView spec = at(job, "spec");
  const JsonView status = at(job, "status");
  row->labels = labels_of(metadata);
  row->created = time_at(metadata, "creationTimestamp");
  row->phase = shared(status, "phase");
  row->stage = shared(status, "stage");
  row->queue = shared(at(spec, "queue"), "name");
  row->pool = shared(at(spec, "workerPool"), "name");
  for (const JsonView& stage : at(spec, "stages")) {
    if (!(at(stage, "name") == row->stage.get()) || row->stage.empty()) continue;
    row->pool = shared(at(stage, "workerPool"), "name");
  }
  row->priority = int_at(at(spec, "queue"), "priority");
  row->attempt = int_at(status, "attempt");
  row->failures = int_at(status, "failures");
  row->completions = clean(status, "completions");
  if (row->has_ended()) {
    take_end(status, *row);
  } else {
    take_wait(status, *row);
  }
  return row;
}

}  // namespace holdfast::plugin
