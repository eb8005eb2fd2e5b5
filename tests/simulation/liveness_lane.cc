// The bounds of batch/v1 Jobs that Holdfast runs: a Job gets its DurableJob and ends with it, and
// no DurableJob outlives its Job.
#include "tests/simulation/ledger_lane.h"
#include "tests/simulation/liveness_job.h"
#include "tests/simulation/objects.h"

namespace holdfast::simulation {
namespace {

using std::chrono::seconds;

// Requests of a few kinds follow each other, such as a creation under a name that is taken.
constexpr Duration kCreation = seconds(10);
// Pods of a DurableJob that is gone are looked for this often.
constexpr Duration kPodsLook = seconds(2);
// A write that the watch must show first.
constexpr Duration kWrite = seconds(1);

bool has_ended(const Json& durable) {
  const std::string phase = string_at(at(durable, "status"), "phase");
  return phase == "Succeeded" || phase == "Failed" || phase == "Cancelled";
}

// Others are run by somebody else (others.h).
bool is_ours(const Json& job) { return at(at(job, "spec"), "managedBy").is_string(); }

}  // namespace

bool Liveness::has_pods(const std::string& durable_uid) const {
  for (const auto& [uid, pod] : pods_) {
    if (pod.second->pod.job_uid_label == durable_uid && !pod.second->pod.ended()) return true;
  }
  return false;
}

void Liveness::look_at_batch_job(const Json& job) {
  if (is_deleting(job) || !outcome_of(job).empty()) return;
  const std::string key = "Job " + key_of(job);
  const std::string name = recorded_name(job);
  const Json& meta = at(job, "metadata");
  const Json* const durable = gateway_.server().find("durablejobs", string_at(meta, "namespace"),
                                                     name.empty() ? string_at(meta, "name") : name);
  const std::string recorded = recorded_uid(job);
  const bool is_mine = durable && controller_uid(*durable) == uid_of(job) &&
                       (recorded.empty() || recorded == uid_of(*durable));
  if (is_mine && has_ended(*durable)) {
    note(key, "its DurableJob has ended", kWrite, std::nullopt);
  } else if (!is_mine && recorded.empty() && !bool_at(at(job, "spec"), "suspend")) {
    note(key, "it has no DurableJob", kCreation, std::nullopt);
  } else if (!is_mine && !recorded.empty() && !has_pods(recorded)) {
    note(key, "its DurableJob is gone", kPodsLook + kWrite, std::nullopt);
  }
}

void Liveness::look_at_batch_jobs() {
  std::map<std::string, bool> ended;  // by UID
  gateway_.server().for_each("jobs", [&](const Json& job) {
    ended[uid_of(job)] = !outcome_of(job).empty();
    if (is_ours(job)) look_at_batch_job(job);
  });
  gateway_.server().for_each("durablejobs", [&](const Json& durable) {
    const std::string owner = controller_uid(durable);
    if (owner.empty() || is_deleting(durable)) return;
    const auto its = ended.find(owner);
    if (has_ended(durable)) {
      const Json& status = at(durable, "status");
      const bool may_settle = its != ended.end() && its->second && !bool_at(status, "settled");
      if (may_settle && at(status, "outbox").empty()) {
        note(key_of(durable), "its Job has ended, and it is not settled", kSettled, std::nullopt);
      }
      return;
    }
    if (its == ended.end()) note(key_of(durable), "its Job is gone", kWrite, std::nullopt);
    if (its != ended.end() && its->second) {
      note(key_of(durable), "its Job has ended", kWrite, std::nullopt);
    }
  });
}

std::string Liveness::unsettled_batch_jobs() const {
  std::string found;
  gateway_.server().for_each("jobs", [&](const Json& job) {
    if (!is_ours(job) || !outcome_of(job).empty()) return;
    // A user deleted its DurableJob, and left the pods behind. It waits for them.
    const bool has_orphans = has_pods(recorded_uid(job));
    const Json* const durable = gateway_.server().find(
        "durablejobs", string_at(at(job, "metadata"), "namespace"), recorded_name(job));
    if (has_orphans && !durable) return;
    found = "Job " + key_of(job) + " has not ended";
  });
  return found;
}

}  // namespace holdfast::simulation
