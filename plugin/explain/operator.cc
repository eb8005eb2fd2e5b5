// Whether the operator acts on the job. If it does not, the status is old, and the page must not
// promise what the status says.
#include <algorithm>

#include "plugin/base/rank.h"
#include "plugin/base/replica.h"
#include "plugin/explain/parts.h"
#include "plugin/terminal/moments.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"

namespace holdfast::plugin {
namespace {

using std::chrono::seconds;

// A living replica takes a dead one's jobs over within this time (docs/bounds.md).
constexpr seconds kTakeOver{18};

// What the operator's Leases say.
struct Replicas {
  bool known = false;
  int alive = 0;
  std::optional<Time> last_renewal;
  std::string responsible;  // the holder of the job's shard; empty with several installations
  std::string namespace_;
  bool responsible_lives = false;
};

// As the operator computes it: reconciler::shard_key().
std::string shard_key_of(const Explaining& explaining) {
  const Json& spec = at(explaining.facts.job, "spec");
  bool has_pool = at(spec, "workerPool").is_object();
  for (const Json& stage : at(spec, "stages")) {
    has_pool = has_pool || at(stage, "workerPool").is_object();
  }
  const Json& meta = at(explaining.facts.job, "metadata");
  std::string own = explaining.job.uid;
  if (has_pool || at(spec, "queue").is_object()) {
    own = explaining.job.namespace_;
  } else if (!string_at(at(meta, "annotations"), reconciler::kBatchJobAnnotation).empty()) {
    for (const Json& owner : at(meta, "ownerReferences")) {
      if (bool_at(owner, "controller")) own = string_at(owner, "uid");
    }
    own = reconciler::fixed_shard_key(string_at(at(meta, "labels"), reconciler::kShardLabel), own);
  }
  return reconciler::fixed_shard_key(string_at(at(explaining.facts.job, "status"), "shard"), own);
}

Replicas read_replicas(const Explaining& explaining) {
  Replicas replicas;
  std::vector<std::string> alive;
  std::string seen_in;
  bool is_single = true;  // two installations have shards of the same names
  int shards = 0;
  for (const Json& lease : explaining.facts.operator_leases) {
    shards = std::max(shards, shards_of(lease));
    if (!is_replica(lease)) continue;
    replicas.known = true;
    const std::string namespace_ = clean_at(at(lease, "metadata"), "namespace");
    is_single = is_single && (seen_in.empty() || seen_in == namespace_);
    seen_in = namespace_;
    const auto renewed = moment_at(at(lease, "spec"), "renewTime");
    if (renewed && (!replicas.last_renewal || *renewed > *replicas.last_renewal)) {
      replicas.last_renewal = renewed;
    }
    if (replica_lives(lease, explaining.now)) {
      ++replicas.alive;
      alive.push_back(string_at(at(lease, "spec"), "holderIdentity"));
    }
  }
  if (!is_single || shards < 1 || shards > reconciler::kMaxShards) return replicas;
  const std::string name =
      "holdfast-shard-" + std::to_string(reconciler::shard_of(shard_key_of(explaining), shards));
  for (const Json& lease : explaining.facts.operator_leases) {
    if (string_at(at(lease, "metadata"), "name") != name) continue;
    replicas.responsible = clean_at(at(lease, "spec"), "holderIdentity");
    replicas.namespace_ = clean_at(at(lease, "metadata"), "namespace");
    replicas.responsible_lives =
        std::find(alive.begin(), alive.end(), replicas.responsible) != alive.end();
  }
  return replicas;
}

// When the spec was changed last, as its managers recorded it.
std::optional<Time> changed(const Json& job) {
  std::optional<Time> last;
  for (const Json& entry : at(at(job, "metadata"), "managedFields")) {
    if (!string_at(entry, "subresource").empty()) continue;
    const auto time = moment_at(entry, "time");
    if (time && (!last || *time > *last)) last = time;
  }
  return last;
}

// What the operator should have done, and since when; empty: nothing is late.
struct Late {
  std::string what;
  Time since{};
};
std::optional<Late> late(const Explaining& explaining) {
  const JobText& job = explaining.job;
  const Time now = explaining.now;
  const auto is_late = [&](const std::optional<Time>& time) {
    return time && now - *time > kGrace;
  };
  if (!job.waiting) {
    if (!is_late(job.created)) return std::nullopt;
    return Late{"it should have read the job", *job.created};
  }
  if (is_late(job.waiting->deadline)) return Late{"it should have acted", *job.waiting->deadline};
  if (job.waiting->reason == "OperatorAwaited") {
    if (!is_late(job.created)) return std::nullopt;
    return Late{"it should have read the job", *job.created};
  }
  const Json& metadata = at(explaining.facts.job, "metadata");
  const std::int64_t seen = int_at(at(explaining.facts.job, "status"), "observedGeneration");
  const auto change = changed(explaining.facts.job);
  if (seen < int_at(metadata, "generation") && is_late(change)) {
    return Late{"it should have read the last change of the spec", *change};
  }
  return std::nullopt;
}

}  // namespace

OperatorText judge_operator(const Explaining& explaining) {
  const Replicas replicas = read_replicas(explaining);
  const std::optional<Late> what = late(explaining);
  if (replicas.known && replicas.alive == 0) {
    Text text = "no replica of the operator is alive";
    if (replicas.last_renewal) {
      text += "; the last one was " + Text::moment(*replicas.last_renewal);
    }
    return {.text = text + ". So this status is old, and nobody acts on the job."};
  }
  if (!replicas.known && !explaining.facts.operator_absent.empty()) {
    return {.text = "no replica of the operator is alive: none has a Lease " +
                    explaining.facts.operator_absent +
                    ". So this status is old, and nobody acts on the job."};
  }
  if (!what) return {};
  Text text = "late: " + what->what + " " + Text::moment(what->since) + ". ";
  if (replicas.responsible_lives) {
    text += "Replica " + replicas.responsible + " has the job: its log says why.";
  } else if (explaining.now - what->since <= kTakeOver) {
    text += "If its replica has died, another one acts within " + span_text(kTakeOver) + ".";
  } else {
    text += replicas.known ? "No living replica has the job."
                           : "It seems that no replica runs, or that none watches this namespace.";
    text += " This status is old.";
    const std::string& unseen = explaining.facts.operator_unseen;
    if (!unseen.empty()) text += " Its replicas are " + unseen;
  }
  OperatorText judged{.text = text};
  if (replicas.responsible_lives) {
    // A member is called <pod>-<random>.
    judged.replica = replicas.responsible.substr(0, replicas.responsible.rfind('-'));
    judged.replica_namespace = replicas.namespace_;
  }
  return judged;
}

}  // namespace holdfast::plugin
