// What a scenario's steps see and do, and how a trial must end.
#include <algorithm>
#include <set>
#include <utility>

#include "reconciler/names.h"
#include "tests/simulation/crash_trial.h"
#include "tests/support/run_of.h"

namespace holdfast::simulation {
namespace {

using std::chrono::seconds;

// What was silent is taken off the record within 10 s and a retry period.
constexpr seconds kSettles{15};
constexpr seconds kRest{6};

std::string job_name(int job) { return "job-" + std::to_string(job); }

std::string text_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return "[" + text + "]";
}

}  // namespace

// ---- What scenarios see.

Json Trial::status(int job) const {
  const auto found = jobs_.find(job_name(job));
  return found == jobs_.end() ? Json() : at(found->second, "status");
}

int Trial::ended_with(const std::string& outcome, int job) const {
  const Json status = this->status(job);
  int count = 0;
  for (const Json& entry : at(status, "history")) {
    if (string_at(entry, "outcome") == outcome) ++count;
  }
  return count;
}

bool Trial::pod_runs(int job) const {
  const Json status = this->status(job);
  if (string_at(status, "phase") != "Running") return false;
  const Json* const pod =
      server_.find("pods", kNamespaces[0], string_at(run_of(status), "podName"));
  return pod && string_at(at(*pod, "status"), "phase") == "Running";
}

bool Trial::worker_runs() const {
  const Json* const pod =
      server_.find("pods", kNamespaces[0], string_at(run_of(this->status()), "podName"));
  const auto truth = pod ? cluster_.truth(uid_of(*pod)) : std::nullopt;
  return pod_runs() && truth && !truth->renewals.empty();
}

bool Trial::is_admitted(int job) const {
  const auto found = jobs_.find(job_name(job));
  if (found == jobs_.end()) return false;
  const Permits& permits = ledger_.permits();
  const Permits::Job* const known = permits.job(uid_of(found->second));
  return known && permits.is_admitted(*known);
}

int Trial::node_of_pod() const {
  const Json status = this->status();
  const Json* const pod =
      server_.find("pods", kNamespaces[0], string_at(run_of(status), "podName"));
  const std::string name = pod ? string_at(at(*pod, "spec"), "nodeName") : "";
  for (std::size_t i = 0; i < cluster_.nodes().size(); ++i) {
    if (cluster_.nodes()[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

bool Trial::others_hang() const {
  bool hang = false;
  server_.for_each("pods", [&](const Json& pod) {
    if (!is_of_others(pod) || !may_be_rescued(pod)) return;
    const Cluster::Node* const node = cluster_.node(string_at(at(pod, "spec"), "nodeName"));
    hang = hang || (node && !node->usable());
  });
  return hang;
}

// ---- What they do.

void Trial::power_off_others() {
  server_.for_each("pods", [&](const Json& pod) {
    if (dead_node_ >= 0 || !is_of_others(pod) || !may_be_rescued(pod)) return;
    for (std::size_t i = 0; i < cluster_.nodes().size(); ++i) {
      if (cluster_.nodes()[i].name != string_at(at(pod, "spec"), "nodeName")) continue;
      dead_node_ = static_cast<int>(i);
    }
  });
  cluster_.silence(dead_node_, /*power_off=*/true);
}

void Trial::patch(const Json& spec) {
  for (int i = 0; i < scenario_.jobs; ++i) users_.patch(kNamespaces[0], job_name(i), spec);
}

void Trial::patch(int job, const Json& spec) { users_.patch(kNamespaces[0], job_name(job), spec); }

void Trial::delete_jobs(const std::string& policy) {
  for (int i = 0; i < scenario_.jobs; ++i) {
    gateway_.ask("user", "DELETE", job_target(kNamespaces[0], job_name(i)),
                 {{"propagationPolicy", policy}});
  }
}

void Trial::delete_pod(bool force) {
  const Json status = this->status();
  users_.delete_pod(std::string(kNamespaces[0]) + "/" + string_at(run_of(status), "podName"),
                    force);
}

void Trial::strip_owner() { users_.strip_owner(std::string(kNamespaces[0]) + "/" + job_name(0)); }

void Trial::delete_lease() {
  lease_deleted_at_ = scheduler_.now();
  const Json* const job = server_.find("durablejobs", kNamespaces[0], job_name(0));
  gateway_.ask("user", "DELETE",
               "/apis/coordination.k8s.io/v1/namespaces/" + std::string(kNamespaces[0]) +
                   "/leases/" + reconciler::heartbeat_lease_name(uid_of(*job)));
}

void Trial::check_waited(Duration least) {
  // A late copy of the Lease's creation says who held it, and that one has stopped.
  if (options_.point && options_.point->mishap == Mishap::kDuplicateLate) return;
  const Duration waited = scheduler_.now() - lease_deleted_at_;
  if (waited < least) complain("S22 OnePlace: granted after " + human_duration(waited));
}

void Trial::power_off() {
  dead_node_ = node_of_pod();
  if (dead_node_ < 0) return;
  // The next pod goes elsewhere, however late the scheduler is to find out.
  cluster_.cordon(dead_node_);
  cluster_.silence(dead_node_, /*power_off=*/true);
}

void Trial::remove_node() {
  dead_node_ = node_of_pod();
  if (dead_node_ < 0) return;
  cluster_.cordon(dead_node_);
  cluster_.remove_node(dead_node_);
}

void Trial::bring_back() {
  if (dead_node_ >= 0) cluster_.bring_back(std::exchange(dead_node_, -1));
}

// ---- How it ends.

bool Trial::job_is_over(int job) const {
  const Json* const there = server_.find("durablejobs", kNamespaces[0], job_name(job));
  if (scenario_.phase.empty()) return jobs_.count(job_name(job)) > 0 && !there;
  // One that ended otherwise is reported as such, not waited for.
  return there && !string_at(at(*there, "status"), "completionTime").empty();
}

std::string Trial::unfinished() const {
  if (next_step_ < scenario_.steps.size()) {
    return "step " + std::to_string(next_step_) + " is not taken; job-0 is " + phase();
  }
  for (int i = 0; i < scenario_.jobs; ++i) {
    if (!job_is_over(i)) return job_name(i) + " is " + phase(i);
    if (!at(status(i), "outbox").empty() && !scenario_.phase.empty()) {
      return job_name(i) + "'s targets were not told";
    }
  }
  if (options_.point && !struck_) return "its point is not reached";
  if (options_.point && !mishap_over_) return "its mishap is not over";
  std::string found = liveness_.untidy();
  server_.for_each("pods", [&](const Json& pod) {
    if (!at(at(pod, "metadata"), "finalizers").empty()) found = key_of(pod) + " is not released";
    const Json& owners = at(at(pod, "metadata"), "ownerReferences");
    if (scenario_.phase.empty() && !owners.empty()) found = key_of(pod) + " is still there";
  });
  return found.empty() ? unheld() : found;
}

// Each shard is held by a replica that lives, and each of them holds some.
std::string Trial::unheld() const {
  std::set<std::string> holders;
  std::string found;
  server_.for_each("leases", [&](const Json& lease) {
    const std::string name = string_at(at(lease, "metadata"), "name");
    if (!name.starts_with("holdfast-shard-")) return;
    const std::string holder = string_at(at(lease, "spec"), "holderIdentity");
    const auto life = ledger_.life_of(holder);
    const bool lives = life && seats_[static_cast<std::size_t>(life->first)].replica &&
                       seats_[static_cast<std::size_t>(life->first)].lives == life->second;
    if (!lives) found = name + " is held by '" + holder + "'";
    holders.insert(holder);
  });
  const auto alive = std::count_if(seats_.begin(), seats_.end(),
                                   [](const Seat& seat) { return seat.replica != nullptr; });
  if (found.empty() && holders.size() != static_cast<std::size_t>(alive)) {
    found =
        std::to_string(holders.size()) + " of " + std::to_string(alive) + " replicas hold shards";
  }
  return found;
}

void Trial::check_end() {
  for (int i = 0; i < scenario_.jobs && ledger_.violation().empty(); ++i) check_job(i);
}

void Trial::check_job(int job) {
  const Json status = this->status(job);
  const std::string end = phase(job);
  if (!scenario_.phase.empty() && end != scenario_.phase) {
    return complain(job_name(job) + " ends as " + end + ", not as " + scenario_.phase);
  }
  // A replica that died between the record of an attempt and its pod costs that attempt.
  const bool crashes = options_.point && is_crash(options_.point->mishap);
  const bool cut_off = scenario_.cuts_off && options_.point && is_silent(options_.point->mishap);
  const int excused =
      ((crashes ? 1 : 0) + (scenario_.moves ? 1 : 0) + (cut_off ? 1 : 0)) * scenario_.runs_at_once;
  int intents_lost = 0;
  std::vector<std::string> outcomes;
  for (const Json& entry : at(status, "history")) {
    const std::string pod = string_at(entry, "podName");
    const bool had_pod = std::any_of(ledger_.pods().begin(), ledger_.pods().end(),
                                     [&](const auto& book) { return book.second.name == pod; });
    if (string_at(entry, "reason") == "PodNeverCreated" && !had_pod) {
      ++intents_lost;
    } else {
      outcomes.push_back(string_at(entry, "outcome"));
    }
  }
  if (intents_lost > excused) {
    return complain("S8 Budget: " + std::to_string(intents_lost) +
                    " attempts without a pod, and no crash that explains it: " + job_name(job));
  }
  if (scenario_.runs_at_once > 1) std::sort(outcomes.begin(), outcomes.end());
  const auto& expected = scenario_.outcomes;
  if (std::find(expected.begin(), expected.end(), outcomes) == expected.end()) {
    return complain("S8 Budget: " + job_name(job) + "'s attempts ended as " + text_of(outcomes) +
                    ", not as " + text_of(expected.front()));
  }
}

// L6, and what is over stays over.
void Trial::check_rest() {
  if (!run_part(kSettles)) return;
  const std::uint64_t before = restless_writes_;
  if (!run_part(kRest)) return;
  if (restless_writes_ != before) {
    return complain("L6: at rest replicas write: " + last_restless_);
  }
  if (const std::string left = unfinished(); !left.empty()) {
    return complain("L5: at rest again: " + left);
  }
  for (const Seat& seat : seats_) {
    if (seat.replica && !seat.replica->synced()) complain("a replica is not synced at rest");
    if (seat.replica && seat.replica->queued() > 0) complain("a replica has work left at rest");
  }
}

}  // namespace holdfast::simulation
