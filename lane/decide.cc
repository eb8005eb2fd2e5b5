#include "lane/decide.h"

#include <utility>

#include "core/utf8.h"

namespace holdfast::lane {
namespace {

constexpr std::chrono::seconds kPodsLook{5};
constexpr std::chrono::seconds kNameLook{30};
constexpr std::chrono::minutes kElsewhereLook{5};

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

// The lines may have words of the Job's annotations, which may be long.
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    text += (text.empty() ? "" : "; ") + line;
    if (text.size() > kMostText) break;
  }
  return utf8_prefix(std::move(text), kMostText);
}

// Steps 1 and 2. The record of a name stays, so a later name of the Job cannot be another one. What
// was tried in vain may last: the status then says that the Job has been resumed.
void create(const View& view, const std::string& name, const Mapped& mapped, Decision& decision) {
  if (view.guard.holds) {
    decision.wake_after = reconciler::kGuardLook;
    if (!view.guard.fault.empty()) {
      decision.events.push_back(Event{true, to_string(reconciler::Reason::kGuardMissing),
                                      "DurableJob " + name + " waits: " + view.guard.fault});
    }
    return;
  }
  const bool is_own_name = name == view.job.name && keeps_its_name(view.job);
  if (!is_own_name || view.tried) {
    Json status = view.job.status;
    if (!view.job.suspended()) go_on(status, view.now);
    write(view, with_record(view.job, {name, ""}), std::move(status), decision);
  }
  decision.creation =
      Creation{name, creation_body(view.job, name, mapped, view.shard_label, view.keeps_rights)};
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

// Nobody has seen the DurableJob yet.
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

// A template that was refused together with a resume is not wanted any more once that is done.
bool knows_refusals(const View& view, const Change& change) {
  if (!view.refused || view.refused->wanted.fields != change.wanted.fields) return false;
  const std::string& pod_template = change.wanted.pod_template;
  return pod_template == view.refused->wanted.pod_template ||
         pod_template == view.durable->source.pod_template;
}

void sync(const View& view, const Change& change, Decision& decision) {
  const DurableView& durable = *view.durable;
  const reconciler::Job& seen = *durable.job;
  const bool is_in_force =
      durable.source == change.wanted && change.refused.empty() && !change.sends_completions;
  if (is_in_force || durable.source == change.settled()) return;
  Patch patch{seen.name,     seen.version,  durable.source,
              change.wanted, change.fields, change.refused};
  if (knows_refusals(view, change)) {
    if (!reports_refusal(view.job.status, text_of(view.refused->fields))) return;
    patch.recorded = patch.wanted = change.settled();
    patch.fields = Json::object();
    patch.refused = {};
  }
  decision.patch = std::move(patch);
}

// A change that is in force takes an earlier refusal back.
void mirror_change(const View& view, const Change& change, Json& status) {
  if (knows_refusals(view, change)) {
    report_refusal(status, text_of(view.refused->fields), view.now);
  } else if (view.durable->source == change.wanted && change.refused.empty()) {
    take_refusal_back(status, view.now);
  }
}

// The write, unless it only says how many pods are Ready, and comes too soon.
void write_in_turn(const View& view, Json metadata, Json status, Decision& decision) {
  Json same = status;
  same["ready"] = at(view.job.status, "ready");
  const bool is_small = metadata == view.job.metadata && same == view.job.status;
  if (is_small && status != view.job.status && view.ready_pause > Duration::zero()) {
    decision.wake_after = view.ready_pause;
    return;
  }
  write(view, std::move(metadata), std::move(status), decision);
}

void mirror(const View& view, const Record& record, const std::optional<Change>& change,
            Decision& decision) {
  const reconciler::Job& seen = *view.durable->job;
  // Its first status comes soon. One write then reports that and the UID.
  if (seen.status.phase == reconciler::Phase::kNone) return;
  Json status = view.job.status;
  const bool is_over = is_terminal(seen.status.phase);
  if (!view.job.suspended()) {
    go_on(status, view.now);
  } else if (seen.status.phase == reconciler::Phase::kSuspended) {
    rest(status, view.now);
  }
  if (change) mirror_change(view, *change, status);
  count(view.job, seen, view.ready, status);
  const std::optional<End> end = end_of(seen);
  if (end && is_over) {
    finish(status, *end, seen.status.completion_time.value_or(view.now), view.now);
    decision.events.push_back(
        Event{!end->succeeds, end->succeeds ? "Completed" : end->reason, end->message});
  } else if (end) {
    decide_end(status, *end, view.now);
  }
  write_in_turn(view, with_record(view.job, {record.name, seen.uid}), std::move(status), decision);
}

}  // namespace

Decision decide(const View& view) {
  Decision decision;
  const BatchJob& job = view.job;
  if (job.deleting || is_finished(job.status)) return decision;
  const std::optional<Record> recorded = record_of(job);
  const Record record = recorded.value_or(Record{first_name(job), ""});
  const bool is_there = view.durable && view.durable->owner_uid == job.uid &&
                        (record.uid.empty() || view.durable->job->uid == record.uid);
  if (is_there) {
    const auto change = change_of(job, *view.durable->job, view.durable->source);
    if (change) sync(view, *change, decision);
    mirror(view, record, change, decision);
  } else if (!recorded && !view.tried && job.suspended() && !has_nothing_to_do(job)) {
    Json status = job.status;
    rest(status, view.now);
    write(view, job.metadata, std::move(status), decision);
  } else if (record.uid.empty()) {
    go_on_creating(view, record, decision);
  } else if (view.is_gone) {
    fail(view, "DurableJobDeleted",
         "DurableJob " + record.name + " was deleted while it ran this Job", decision);
  } else {
    // If another replica has its shard, that one reports its end. But it may die before.
    decision.wake_after = kElsewhereLook;
    decision.look = true;
  }
  return decision;
}

bool is_stray(const BatchJob& job, const reconciler::Job& durable) {
  if (job.deleting || durable.deleting) return false;
  const bool is_over = is_finished(job.status);
  if (is_over && is_terminal(durable.status.phase)) return false;
  const std::optional<Record> record = record_of(job);
  if (!record) return is_over;
  if (!record->uid.empty()) return durable.uid != record->uid;
  return is_over || durable.name != record->name;
}

}  // namespace holdfast::lane
