#include "lane/decide.h"

#include <utility>

namespace holdfast::lane {
namespace {

constexpr std::chrono::seconds kPodsLook{5};
constexpr std::chrono::seconds kNameLook{30};

// The write, unless it changes nothing.
void write(const View& view, Json metadata, Json status, Decision& decision) {
  if (metadata == view.job.metadata && status == view.job.status) return;
  decision.status = StatusWrite{std::move(metadata), std::move(status)};
}

void fail(const View& view, const std::string& reason, const std::string& message,
          Decision& decision) {
  Json status = view.job.status;
  const End end{false, reason, message};
  if (view.pods_left) {
    decide_end(status, end, view.now);
    decision.wake_after = kPodsLook;
  } else {
    finish(status, end, view.now, view.now);
    decision.events.push_back(Event{true, reason, message});
  }
  write(view, view.job.metadata, std::move(status), decision);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

// Steps 1 and 2. The first step is a write even if it changes nothing: it proves that the Job is as
// this replica knows it.
void create(const View& view, const std::string& name, const Mapped& mapped, Decision& decision) {
  Json status = view.job.status;
  if (!view.job.suspended()) go_on(status, view.now);
  decision.status = StatusWrite{with_record(view.job, {name, ""}), std::move(status)};
  decision.creation = Creation{name, creation_body(view.job, name, mapped)};
  decision.events.push_back(Event{false, "DurableJobCreated", "Created DurableJob " + name});
  const Json& pod = at(at(view.job.spec, "template"), "spec");
  if (string_at(pod, "restartPolicy") == "OnFailure") {
    decision.events.push_back(
        Event{true, "RestartPolicyNever",
              "restartPolicy OnFailure runs as Never: each attempt has a new pod, and backoffLimit "
              "counts attempts instead of restarts"});
  }
}

// A Job without anything to do is complete, as in batch/v1.
bool has_nothing_to_do(const BatchJob& job) {
  return at(job.spec, "completions").is_number_integer() && int_at(job.spec, "completions") == 0;
}

void begin(const View& view, const std::string& name, Decision& decision) {
  if (has_nothing_to_do(view.job)) {
    Json status = view.job.status;
    if (!view.job.suspended()) go_on(status, view.now);
    finish(status, {true, "CompletionsReached", "Reached expected number of succeeded pods"},
           view.now, view.now);
    return write(view, view.job.metadata, std::move(status), decision);
  }
  const Mapped mapped = map_job(view.job, name);
  if (!mapped.errors.empty()) return fail(view, "NotSupported", joined(mapped.errors), decision);
  create(view, name, mapped, decision);
}

// The record has a name, and nobody has seen the DurableJob yet.
void go_on_creating(const View& view, const Record& record, Decision& decision) {
  if (view.refusal) return fail(view, "NotSupported", *view.refusal, decision);
  if (!view.name_taken) return begin(view, record.name, decision);
  const std::string second = second_name(view.job);
  if (record.name != second) return begin(view, second, decision);
  decision.events.push_back(Event{true, "NameTaken",
                                  "DurableJobs " + first_name(view.job) + " and " + second +
                                      " are not this Job's: delete or rename one of them"});
  decision.wake_after = kNameLook;
}

// What of the Job's spec goes into its DurableJob. The template waits until the DurableJob is
// Suspended, and then goes together with the resume.
void sync(const View& view, Decision& decision) {
  const DurableView& durable = *view.durable;
  const reconciler::Job& seen = *durable.job;
  if (is_terminal(seen.status.phase) || seen.cancel || seen.deleting) return;
  if (int_at(view.job.spec, "completions", 1) != seen.spec.completions) {
    decision.patch =
        Patch{seen.name, patch_body(seen.version, durable.source, {{"cancel", true}}), {}};
    return;
  }
  const Mapped mapped = map_job(view.job, seen.name);
  Source wanted = source_of(mapped.spec);
  const bool is_suspended = seen.status.phase == reconciler::Phase::kSuspended;
  const bool template_differs = wanted.pod_template != durable.source.pod_template;
  const bool resumes = seen.spec.suspend && !view.job.suspended();
  if (resumes && template_differs && !is_suspended) return;
  Json fields = changeable(mapped.spec);
  if (template_differs && is_suspended) {
    fields["template"] = at(mapped.spec, "template");
  } else {
    wanted.pod_template = durable.source.pod_template;
  }
  if (wanted == durable.source) return;
  decision.patch = Patch{seen.name, patch_body(seen.version, wanted, fields), {}};
  if (!view.job.suspended() || seen.spec.suspend) return;
  decision.patch->suspension = patch_body(seen.version, durable.source, {{"suspend", true}});
}

void mirror(const View& view, const Record& record, Decision& decision) {
  const reconciler::Job& seen = *view.durable->job;
  Json status = view.job.status;
  const bool is_over = is_terminal(seen.status.phase);
  if (!view.job.suspended()) {
    go_on(status, view.now);
  } else if (seen.status.phase == reconciler::Phase::kSuspended) {
    rest(status, view.now);
  }
  count(view.job, seen, status);
  const std::optional<End> end = end_of(view.job, seen);
  if (end && is_over) {
    finish(status, *end, seen.status.completion_time.value_or(view.now), view.now);
    decision.events.push_back(
        Event{!end->succeeds, end->succeeds ? "Completed" : end->reason, end->message});
  } else if (end) {
    decide_end(status, *end, view.now);
  }
  write(view, with_record(view.job, {record.name, seen.uid}), std::move(status), decision);
}

}  // namespace

Decision decide(const View& view) {
  Decision decision;
  const BatchJob& job = view.job;
  if (job.deleting || is_finished(job.status)) return decision;
  const std::optional<Record> record = record_of(job);
  if (!record) {
    if (!job.suspended() || has_nothing_to_do(job)) {
      begin(view, view.name_taken ? second_name(job) : first_name(job), decision);
      return decision;
    }
    Json status = job.status;
    rest(status, view.now);
    write(view, job.metadata, std::move(status), decision);
    return decision;
  }
  const bool is_there = view.durable && view.durable->owner_uid == job.uid &&
                        (record->uid.empty() || view.durable->job->uid == record->uid);
  if (is_there) {
    sync(view, decision);
    mirror(view, *record, decision);
  } else if (record->uid.empty()) {
    go_on_creating(view, *record, decision);
  } else if (view.is_gone) {
    fail(view, "DurableJobDeleted",
         "DurableJob " + record->name + " was deleted while it ran this Job", decision);
  } else {
    decision.look = true;
  }
  return decision;
}

bool is_stray(const BatchJob& job, const reconciler::Job& durable) {
  const std::optional<Record> record = record_of(job);
  if (!record || job.deleting || durable.deleting) return false;
  const bool is_over = is_finished(job.status);
  if (is_over && is_terminal(durable.status.phase)) return false;
  if (!record->uid.empty()) return durable.uid != record->uid;
  return is_over || durable.name != record->name;
}

}  // namespace holdfast::lane
