// S14 and S15: who may send a write.
#include <algorithm>

#include "operator/jobs/stray_pods.h"
#include "operator/membership/lease_codec.h"
#include "reconciler/names.h"
#include "reconciler/shards.h"
#include "tests/simulation/ledger.h"
#include "tests/simulation/objects.h"
#include "tests/simulation/requests.h"

namespace holdfast::simulation {
namespace {

using std::chrono::seconds;

// As the replicas are configured.
constexpr seconds kRenewDeadline{10};
// A replica that still acts on what a restore has undone finds out within this.
constexpr seconds kRestoreTolerance{60};

// The change gives a pod that no watch shows the names of this job again, and nothing else.
bool only_names(const Json& change, const Json& pod, const std::string& job_uid) {
  const Json& meta = at(change, "metadata");
  const Json& labels = at(meta, "labels");
  // A first copy of the request may have named it already.
  const std::string shown = string_at(at(at(pod, "metadata"), "labels"), reconciler::kJobUidLabel);
  const bool is_shown = !shown.empty() && shown != job_uid;
  if (is_shown || change.size() != 1 || string_at(labels, reconciler::kJobUidLabel) != job_uid) {
    return false;
  }
  return labels.size() == 2 && labels.contains(reconciler::kJobNameLabel) &&
         meta.size() == 2 + meta.count("resourceVersion") && meta.contains("uid");
}

// The shard whose label the change gives to a pod; empty: it changes something else.
std::string given_shard(const Json& change) {
  const Json& meta = at(change, "metadata");
  const Json& labels = at(meta, "labels");
  const bool is_precise = meta.contains("uid") && meta.contains("resourceVersion");
  const bool is_all = change.size() == 1 && meta.size() == 3 && labels.size() == 1;
  return is_precise && is_all ? string_at(labels, reconciler::kShardLabel) : "";
}

}  // namespace

std::vector<std::string> Ledger::shard_keys_of(const ApiRequest& request, const Json& body) const {
  std::vector<std::string> keys;
  const std::string object = string_at(at(body, "metadata"), "uid");
  const std::string deleted = string_at(at(body, "preconditions"), "uid");
  if (is_pod(request) && (rescue_.knows(object) || rescue_.knows(deleted))) {
    return {object.empty() ? deleted : object};
  }
  const auto pod = pods_.find(string_at(at(body, "preconditions"), "uid"));
  const bool is_worker = is_of_pool(body) || (pod != pods_.end() && pod->second.of_pool);
  if (is_queue(request)) {
    keys = {string_at(at(body, "metadata"), "namespace")};
  } else if (is_pool(request) || is_worker) {
    keys = {namespace_in(request.target)};
  } else {
    const std::string uid = job_uid_of(request, body);
    keys = shard_keys_of_job(uid);
    if (const std::string shard = recorded_shard(request); !shard.empty()) {
      keys.push_back(reconciler::fixed_shard_key(shard, keys.front()));
    }
    // A Job's controller deletes a DurableJob of it.
    if (request.method == "DELETE") {
      const std::vector<std::string> others = lane_.shard_keys_of_job(uid);
      keys.insert(keys.end(), others.begin(), others.end());
    }
  }
  return keys.front().empty() ? std::vector<std::string>() : keys;
}

std::vector<std::string> Ledger::shard_keys_of_job(const std::string& uid) const {
  if (const auto pooled = pooled_jobs_.find(uid); pooled != pooled_jobs_.end()) {
    // Nobody can read from its pods that it had a pool.
    return pooled->second.second ? std::vector{pooled->second.first, uid}
                                 : std::vector{pooled->second.first};
  }
  std::vector<std::string> keys = permits_.shard_keys(uid);
  if (keys.front() == uid) keys.front() = lane_.shard_key(uid);
  return keys;
}

// A replica that recorded another one would make the job invisible to the one that has it.
void Ledger::check_shard(const StatusWrite& write, const std::string& job) {
  if (!write.by_replica || write.next.shard == write.old.shard) return;
  for (const std::string& key : shard_keys_of_job(write.uid)) {
    const int shard = reconciler::shard_of(key, shards_);
    if (write.next.shard == reconciler::shard_label(shard, shards_)) return;
  }
  complain("S15 Exclusion: the status says shard '" + write.next.shard + "' of " + job);
}

// A shard in a job's status that is not the job's is corrected by the holder of that shard.
std::string Ledger::recorded_shard(const ApiRequest& request) const {
  static const std::string kMark = "/durablejobs/";
  const std::size_t begin = request.target.find(kMark);
  if (begin == std::string::npos || !is_status_write(request)) return "";
  const std::size_t name = begin + kMark.size();
  const Json* const job =
      gateway_.server().find("durablejobs", namespace_in(request.target),
                             request.target.substr(name, request.target.find('/', name) - name));
  return job ? string_at(at(*job, "status"), "shard") : "";
}

std::string Ledger::job_uid_of(const ApiRequest& request, const Json& body) const {
  if (request.method == "POST") return controller_uid(body);
  if (!is_pod(request)) {
    const std::string uid = string_at(at(body, "metadata"), "uid");
    return uid.empty() ? string_at(at(body, "preconditions"), "uid") : uid;
  }
  const std::string pod = request.method == "DELETE" ? string_at(at(body, "preconditions"), "uid")
                                                     : string_at(at(body, "metadata"), "uid");
  const auto found = pods_.find(pod);
  return found == pods_.end() ? "" : found->second.owner_uid;
}

std::optional<Ledger::Life> Ledger::life_of(const std::string& member) const {
  const auto found = members_.find(member);
  return found == members_.end() ? std::nullopt : std::optional(found->second);
}

// S14, and S15 in truth: whoever sends a write for a job or a queue is the one whom its shard's
// Lease names.
void Ledger::owner_acts(const Delivery& delivery, const std::vector<std::string>& keys) {
  const Life life{delivery.replica, delivery.life};
  const std::string who = "replica " + std::to_string(delivery.replica) + " sends " +
                          delivery.request.method + " " + delivery.request.target;
  const auto renewal = renewals_.find(life);
  const auto rate = rates_.find(delivery.replica);
  const std::int64_t ppm = rate == rates_.end() ? 1'000'000 : rate->second;
  const Duration age = renewal == renewals_.end()
                           ? Duration::max()
                           : (scheduler_.now() - renewal->second) / 1'000'000 * ppm;
  if (age > kRenewDeadline) complain("S14 SelfFence: " + who + " after its renew deadline");
  if (keys.empty()) return;
  if (restored_at_ >= Duration::zero() && scheduler_.now() - restored_at_ < kRestoreTolerance) {
    return;
  }
  std::string held;
  for (const std::string& key : keys) {
    const std::string shard = membership::shard_lease_name(reconciler::shard_of(key, shards_));
    const std::string holder = lease_holder(shard);
    if (const auto owner = life_of(holder); owner && *owner == life) return;
    held += (held.empty() ? "" : ", ") + shard + " is held by '" + holder + "'";
  }
  for (const std::string& shard : releasers_of(delivery.request)) {
    if (const auto owner = life_of(lease_holder(shard)); owner && *owner == life) return;
  }
  if (const auto owner = life_of(lease_holder(said_shard(keys.front()))); owner && *owner == life) {
    return;
  }
  complain("S15 Exclusion: " + who + " while " + held);
}

// Without a queue or a pool a job is the shard's that its status says. Only the key of such a job is
// its UID.
std::string Ledger::said_shard(const std::string& job_uid) const {
  std::string shard;
  gateway_.server().for_each("durablejobs", [&](const Json& job) {
    if (uid_of(job) != job_uid) return;
    const auto said = reconciler::labelled_shard(string_at(at(job, "status"), "shard"), shards_);
    if (said) shard = membership::shard_lease_name(*said);
  });
  return shard;
}

std::string Ledger::lease_holder(const std::string& shard_lease) const {
  const Json* const lease = gateway_.server().find("leases", "holdfast-system", shard_lease);
  return lease ? string_at(at(*lease, "spec"), "holderIdentity") : "";
}

// Whoever watches a pod as one of its shard gives it to the shard of its job.
bool Ledger::is_jobs_shard(const std::string& label, const std::string& job_uid) const {
  const auto shard = reconciler::labelled_shard(label, shards_);
  if (!shard) return false;
  const std::vector<std::string> keys = shard_keys_of_job(job_uid);
  return membership::shard_lease_name(*shard) == said_shard(job_uid) ||
         std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
           return reconciler::shard_of(key, shards_) == *shard;
         });
}

// A pod whose job is gone is released by the replica that its label shows it to, or by the one that
// looks at all pods. That one also names the job of a pod that lost its labels.
std::vector<std::string> Ledger::releasers_of(const ApiRequest& request) const {
  if (request.method != "PATCH" || !is_pod(request)) return {};
  const std::string name = request.target.substr(request.target.rfind('/') + 1);
  const Json* const pod = gateway_.server().find("pods", namespace_in(request.target), name);
  if (!pod) return {};
  bool has_job = false;
  gateway_.server().for_each("durablejobs", [&](const Json& job) {
    has_job = has_job || uid_of(job) == controller_uid(*pod);
  });
  const auto shard = reconciler::labelled_shard(
      string_at(at(at(*pod, "metadata"), "labels"), reconciler::kShardLabel), shards_);
  const Json change = Json::parse(request.body, nullptr, false);
  if (has_job && is_jobs_shard(given_shard(change), controller_uid(*pod))) {
    std::vector<std::string> shards;
    // The job's replica may have mended the label first: then the server refuses this one.
    const bool is_late = string_at(at(change, "metadata"), "resourceVersion") !=
                         string_at(at(*pod, "metadata"), "resourceVersion");
    const int shown = shard.value_or(reconciler::shard_of(controller_uid(*pod), shards_));
    for (int one = 0; one < shards_; ++one) {
      if (is_late || one == shown) shards.push_back(membership::shard_lease_name(one));
    }
    return shards;
  }
  if (has_job && !only_names(change, *pod, controller_uid(*pod))) return {};
  std::vector<std::string> shards = {membership::shard_lease_name(jobs::StrayPods::kWalkersShard)};
  if (has_job) return shards;
  if (shard) shards.push_back(membership::shard_lease_name(*shard));
  return shards;
}

}  // namespace holdfast::simulation
