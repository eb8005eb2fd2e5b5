#include "operator/jobs/job_facts.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "operator/jobs/pod_index.h"
#include "reconciler/names.h"
#include "reconciler/run/authorship.h"
#include "reconciler/run/heartbeat.h"

namespace holdfast::jobs {
namespace {

// After this time the watch lags that does not show a pod that we have created.
constexpr std::chrono::seconds kOwnPodTimeout{5};

}  // namespace

std::vector<reconciler::PodView> pods_to_judge(
    const codecs::CachedJob& job, const std::vector<codecs::PodPtr>& indexed,
    const std::function<codecs::PodPtr(const std::string& name)>& find, const LiveRuns& live) {
  std::unordered_set<std::string_view> looked;
  for (const auto& [index, run] : live) looked.insert(run.pod_name);
  std::vector<reconciler::PodView> pods;
  std::unordered_set<std::string> taken;
  const auto add = [&](const codecs::CachedPod& pod) {
    if (!pod.names(job.uid) || looked.count(pod.name) != 0) return;
    if (taken.insert(pod.name).second) pods.push_back(pod.pod);
  };
  for (const codecs::PodPtr& pod : indexed) add(*pod);
  for (const reconciler::Run& run : job.job.status.runs) {
    if (!run.open() || taken.count(run.pod_name) != 0) continue;
    const codecs::PodPtr pod = find(run.pod_name);
    if (pod && job_key(*pod) == job.key()) add(*pod);
  }
  for (const auto& [index, run] : live) {
    if (run.pod) pods.push_back(run.pod->pod);
  }
  // An index has no fixed order, and decisions must not depend on it.
  std::sort(pods.begin(), pods.end(), [](const auto& a, const auto& b) {
    return a.attempt != b.attempt ? a.attempt < b.attempt : a.name < b.name;
  });
  return pods;
}

void learn_highest_attempt(const codecs::CachedJob& job, const std::vector<codecs::PodPtr>& pods,
                           JobMemory& memory) {
  for (const codecs::PodPtr& pod : pods) {
    if (pod->owner_uid != job.uid) continue;
    memory.remember_highest(job.job.status,
                            reconciler::attempt_in_name(job.name, job.uid, pod->name));
  }
}

Duration may_come_for(const reconciler::PodlessAttempt& attempt, const Moment& moment) {
  Duration left = reconciler::kCreationLimit - moment.held;
  if (attempt.closed) {
    left = std::min(left, *attempt.closed + reconciler::kCreationLimit - moment.now);
  }
  return left;
}

namespace {

// Of this process's own requests. A pod that was created is expected until the watch shows it: it
// is not gone.
std::optional<reconciler::OpenCreation> own_creation(const codecs::CachedJob& job,
                                                     std::int64_t number, AttemptMemory& attempt,
                                                     bool is_there, const Moment& moment,
                                                     int& overdue) {
  const SteadyTime steady = moment.steady;
  const bool is_unseen = attempt.requests.created_version > moment.shown;
  // While the pod is there, no other of its name can be made.
  const bool is_others = attempt.others_may_create(steady);
  const bool is_own =
      attempt.requests.unanswered_until > steady && !attempt.pod_was_the_unanswered();
  const bool is_unanswered = !is_there && (is_own || is_others);
  const bool may_come = (is_unseen || is_unanswered) && !attempt.requests.comes_no_more;
  if (!attempt.creating() && !may_come) return std::nullopt;
  if (is_unseen && steady - attempt.requests.lag_reported >= kOwnPodTimeout &&
      steady - attempt.requests.created_at >= kOwnPodTimeout) {
    attempt.requests.lag_reported = steady;
    ++overdue;
  }
  reconciler::OpenCreation one;
  one.attempt = number;
  one.pod_name = reconciler::pod_name(job.name, job.uid, number);
  one.expected = attempt.creating() || is_unseen;
  const bool waits = attempt.creation && attempt.creation->ticket;
  // Of two requests, nobody knows which one made the pod that was seen.
  const bool is_only_one = attempt.requests.unanswered_until <= steady;
  const bool is_seen = attempt.pod_existed && !is_unseen && is_only_one;
  one.asked = is_unanswered || (!waits && !is_seen);
  SteadyTime until = attempt.requests.unanswered_until;
  if (is_others) until = std::max(until, attempt.requests.others_until);
  if (is_unseen) until = attempt.requests.created_at + kOwnPodTimeout;
  if (attempt.creating()) {
    until =
        std::max(until, attempt.requests.asked_at.value_or(steady) + reconciler::kCreationLimit);
  }
  one.left = until - steady;
  return one;
}

}  // namespace

// Of an attempt that this process did not record alone, another one may have sent requests, until
// this one took the shard over.
OpenCreations open_creations(const codecs::CachedJob& job, JobMemory& memory,
                             const std::vector<reconciler::PodView>& pods, const Moment& moment) {
  // One that is being deleted is soon gone, and leaves its name free.
  std::unordered_set<std::string_view> there;
  for (const reconciler::PodView& pod : pods) {
    if (pod.owner_uid == job.uid && !pod.deletion) there.insert(pod.name);
  }
  OpenCreations result;
  std::map<std::int64_t, reconciler::OpenCreation> open;
  for (auto& [number, attempt] : memory.attempts) {
    const bool is_there = there.count(reconciler::pod_name(job.name, job.uid, number)) != 0;
    if (auto one = own_creation(job, number, attempt, is_there, moment, result.overdue)) {
      open.emplace(number, std::move(*one));
    }
  }
  for (const auto& one : reconciler::podless_attempts(job.job.status, moment.now)) {
    const AttemptMemory* const known = memory.find_attempt(one.attempt);
    const bool is_known =
        known && (known->is_all_ours() || known->pod_existed || known->requests.comes_no_more);
    if (is_known || there.count(one.pod_name) != 0 || open.count(one.attempt) != 0) continue;
    open[one.attempt] = {one.attempt, one.pod_name, false, true, may_come_for(one, moment)};
  }
  result.all.reserve(open.size());
  for (auto& [number, one] : open) result.all.push_back(std::move(one));
  return result;
}

void observe_memory(const codecs::CachedJob& job, const reconciler::Run& run, bool is_read,
                    JobMemory& memory, reconciler::RunObserved& observed) {
  // The Leases of its worker say what is known of it.
  observed.confirmed = run.at_worker() || is_read;
  if (!run.open() || job.job.deleting) {
    const auto known = memory.runs.find(run.index);
    const bool is_over = known != memory.runs.end() && known->second.over == run.attempt;
    observed.confirmed = observed.confirmed || is_over;
  }
  if (!run.open()) return;
  AttemptMemory& attempt = memory.attempts[run.attempt];
  observed.own_intent = attempt.has_intent(run.start_time);
  observed.took_over = attempt.inherited;
  observed.lease_asked = attempt.lease_asked;
  observed.pod_existed = attempt.pod_existed;
  observed.pod_uid = attempt.pod_uid;
  observed.strangers = attempt.strangers;
}

void observe_no_pod(const reconciler::Run& run, AttemptMemory& attempt, const Moment& moment,
                    reconciler::RunObserved& observed) {
  if (!attempt.bare_since) attempt.bare_since = moment.steady;
  observed.no_pod_for = moment.steady - *attempt.bare_since;
  // The replica that recorded an inherited attempt had its time while others held the shard.
  if (observed.took_over && run.start_time) {
    observed.no_pod_for = std::max(observed.no_pod_for, moment.now - *run.start_time);
  }
  observed.refusal = attempt.refusals.last(moment.steady);
}

std::optional<reconciler::LeaseRefusal> lease_refusal(const JobMemory& memory, std::int64_t run,
                                                      const Moment& moment) {
  const auto known = memory.runs.find(run);
  if (known == memory.runs.end() || known->second.lease_refusal.empty()) return std::nullopt;
  return reconciler::LeaseRefusal{
      known->second.lease_refusal,
      std::max(Duration::zero(), known->second.lease_retry_at - moment.steady)};
}

codecs::PodPtr granted_pod(const std::string& granted, codecs::PodPtr pod) {
  return pod && reconciler::holder_identity(pod->pod) == granted ? pod : nullptr;
}

bool leads_back(const codecs::CachedHeartbeat& lease) {
  return codecs::run_in_lease_name(lease.owner_uid, lease.name).has_value();
}

std::optional<std::int64_t> run_of_lease_over(const codecs::CachedJob& job,
                                              const codecs::CachedHeartbeat& lease) {
  if (lease.owner_uid != job.uid) return std::nullopt;
  auto run = codecs::run_in_lease_name(job.uid, lease.name);
  const reconciler::Spec& spec = job.job.spec;
  if (!run && lease.name == reconciler::heartbeat_lease_name(job.uid)) {
    const bool is_used = spec.heartbeat && !spec.many_runs();
    // The last stage's stays, as that of a job without stages.
    if (is_used || is_terminal(job.job.status.phase)) return std::nullopt;
    run = reconciler::kSingleLease;
  }
  if (!run) return std::nullopt;
  const auto& runs = job.job.status.runs;
  const bool begun = spec.has_run_leases() &&
                     std::any_of(runs.begin(), runs.end(),
                                 [&](const reconciler::Run& one) { return one.index == *run; });
  return begun ? std::nullopt : run;
}

}  // namespace holdfast::jobs
