#include "tests/simulation/ledger_lane.h"

#include "core/json_time.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

const Json& annotations_of(const Json& job) { return at(at(job, "metadata"), "annotations"); }

bool is_terminal(const std::string& phase) {
  return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
}

const Json* final_condition(const Json& job) {
  for (const Json& one : at(at(job, "status"), "conditions")) {
    const std::string type = string_at(one, "type");
    const bool is_final = type == "Complete" || type == "Failed";
    if (is_final && string_at(one, "status") == "True") return &one;
  }
  return nullptr;
}

bool is_held(const Json& durable) {
  for (const Json& finalizer : at(at(durable, "metadata"), "finalizers")) {
    if (finalizer == reconciler::kOutboxFinalizer) return true;
  }
  return false;
}

std::string batch_owner(const Json& durable) {
  for (const Json& owner : at(at(durable, "metadata"), "ownerReferences")) {
    if (string_at(owner, "kind") == "Job") return string_at(owner, "uid");
  }
  return "";
}

}  // namespace

std::string outcome_of(const Json& job) {
  const Json* const found = final_condition(job);
  return found ? string_at(*found, "type") : "";
}

std::optional<Time> ended_at(const Json& job) {
  const Json* const found = final_condition(job);
  return found ? parse_time(string_at(*found, "lastTransitionTime")) : std::nullopt;
}

std::string recorded_name(const Json& job) {
  return string_at(annotations_of(job), "holdfast.dev/durable-job");
}

std::string recorded_uid(const Json& job) {
  const std::string uids = string_at(annotations_of(job), "holdfast.dev/durable-job-uids");
  const std::string own = uid_of(job) + "/";
  return uids.starts_with(own) ? uids.substr(own.size()) : "";
}

void LaneLedger::job_written(const Applied& applied) {
  if (!applied.after) return;
  const Json& job = *applied.after;
  const std::string outcome = outcome_of(job);
  std::string& before = outcomes_[uid_of(job)];
  if (!before.empty() && outcome != before) {
    complain_("S1 OneOutcome: Job " + key_of(job) + " was " + before + " and is " +
              (outcome.empty() ? "open" : outcome));
  }
  if (before.empty() && !outcome.empty()) check_outcome(job, outcome);
  before = outcome;
}

void LaneLedger::check_outcome(const Json& job, const std::string& outcome) {
  const std::string reason = string_at(*final_condition(job), "reason");
  const auto found = durable_.find(recorded_uid(job));
  const std::string phase = found == durable_.end() ? "" : found->second.phase;
  const bool is_gone = found != durable_.end() && found->second.gone;
  bool is_right = false;
  if (outcome == "Complete") {
    const bool is_empty = int_at(at(job, "spec"), "completions", 1) == 0;
    is_right = phase == "Succeeded" || (is_empty && found == durable_.end());
  } else if (reason == "DurableJobDeleted") {
    is_right = is_gone;
  } else if (reason == "NotSupported") {
    is_right = found == durable_.end() || phase == "Cancelled";
  } else if (reason == "Cancelled") {
    is_right = phase == "Cancelled";
  } else {
    is_right = phase == "Failed";
  }
  if (is_right) return;
  complain_("S2 FencedOutcome: Job " + key_of(job) + " is " + outcome + " (" + reason +
            "), and its DurableJob " + (found == durable_.end() ? "was never seen" : phase) +
            (is_gone ? ", and is gone" : ""));
}

void LaneLedger::durable_job_written(const Applied& applied) {
  const Json& json = applied.after ? *applied.after : *applied.before;
  const std::string uid = uid_of(json);
  const std::string owner = batch_owner(json);
  if (applied.before) check_outbox(*applied.before, applied.after ? &*applied.after : nullptr);
  const Json& meta = at(json, "metadata");
  const std::string label = string_at(at(meta, "labels"), reconciler::kShardLabel);
  if (!string_at(at(meta, "annotations"), reconciler::kBatchJobAnnotation).empty()) {
    fixed_[uid] = reconciler::fixed_shard_key(label, owner.empty() ? uid : owner);
  }
  const auto known = durable_.find(uid);
  if (owner.empty()) {
    // Orphaned: a job of its own from now on.
    if (known != durable_.end()) durable_.erase(known);
    return;
  }
  Durable& one = durable_[uid];
  one.owner = owner;
  one.name = key_of(json);
  one.phase = string_at(at(json, "status"), "phase");
  one.gone = !applied.after;
  const bool may_run = !one.gone && !is_deleting(json) && !is_terminal(one.phase);
  one.runs = may_run && !at(at(json, "status"), "runs").empty();
  if (one.runs) check_alone(one, uid);
}

// S23. Users remove no finalizers of DurableJobs here.
void LaneLedger::check_outbox(const Json& before, const Json* after) const {
  if (!is_held(before) || (after && is_held(*after))) return;
  const Json& status = at(before, "status");
  if (!is_terminal(string_at(status, "phase")) || at(status, "outbox").empty()) return;
  const Json& meta = at(before, "metadata");
  const Json* const ns = gateway_.server().find("namespaces", "", string_at(meta, "namespace"));
  const bool goes = !ns || is_deleting(*ns);
  // Nobody's clock steps by more.
  constexpr std::chrono::seconds kTolerance{10};
  const Duration most = goes ? Duration(std::chrono::minutes(1)) : Duration(std::chrono::hours(1));
  const auto deleted = parse_time(string_at(meta, "deletionTimestamp"));
  if (deleted && *deleted + most - kTolerance <= gateway_.wall_clock()) return;
  complain_("S23 Told: " + key_of(before) + " loses its outbox before its targets were told");
}

std::string LaneLedger::shard_key(const std::string& durable_uid) const {
  const auto found = fixed_.find(durable_uid);
  return found == fixed_.end() ? durable_uid : found->second;
}

std::vector<std::string> LaneLedger::shard_keys_of_job(const std::string& durable_uid) const {
  const std::string owner = owner_of(durable_uid);
  if (owner.empty()) return {};
  std::vector<std::string> keys = {owner};
  for (const auto& [uid, one] : durable_) {
    if (one.owner == owner) keys.push_back(shard_key(uid));
  }
  return keys;
}

void LaneLedger::check_alone(const Durable& one, const std::string& uid) const {
  for (const auto& [other_uid, other] : durable_) {
    if (other_uid == uid || other.owner != one.owner || !other.runs) continue;
    complain_("S22 OnePlace: one Job runs as " + one.name + " (" + uid + ") and as " + other.name +
              " (" + other_uid + ")");
  }
}

std::string LaneLedger::owner_of(const std::string& durable_uid) const {
  const auto found = durable_.find(durable_uid);
  return found == durable_.end() ? "" : found->second.owner;
}

bool LaneLedger::is_stray(const Json& durable) const {
  const std::string owner = batch_owner(durable);
  bool is_stray = false;
  gateway_.server().for_each("jobs", [&](const Json& job) {
    if (uid_of(job) != owner) return;
    const std::string named = recorded_uid(job);
    const std::string name = recorded_name(job);
    const bool is_obsolete = !name.empty() && name != string_at(at(durable, "metadata"), "name");
    is_stray = named.empty() ? !outcome_of(job).empty() || is_obsolete : named != uid_of(durable);
  });
  return is_stray;
}

}  // namespace holdfast::simulation
