// A small world for random runs. Its API server has one job and its pods (versions,
// compare-and-swap, finalizers, the CRD's rules). Around it are nodes, kubelets, a scheduler and a
// user who meddles. Replicas read the server's log, with any delay.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reconciler/job/decide.h"
#include "tests/unit/reconciler/ledger.h"
#include "tests/unit/reconciler/rng.h"
#include "tests/unit/reconciler/worker_world.h"

namespace holdfast::reconciler::testing {

enum class Answer { kOk, kConflict, kGone, kExists, kExistsForeign, kRefused, kInvalid, kNoAnswer };

class World {
 public:
  explicit World(Rng& rng);

  // The API server. `fresh`: no change since the writer looked.
  Answer put_status(std::uint64_t version, const Status& status, bool fresh);
  Answer create_pod(const CreatePod& write);
  Answer delete_pod(const DeletePod& write);
  Answer release_pod(const ReleasePod& write);
  Answer relabel_pod(const RelabelPod& write);
  Answer delete_job(std::uint64_t version);

  // All events for watchers, oldest first. A null job: it is gone.
  const std::vector<std::shared_ptr<const Job>>& job_log() const { return job_log_; }
  const std::vector<std::shared_ptr<const std::vector<PodView>>>& pods_log() const {
    return pods_log_;
  }
  const PodView* find_pod(const std::string& name) const;
  const std::vector<WorldNode>& nodes() const { return nodes_; }
  const Job& job() const { return job_; }
  bool job_exists() const { return job_exists_; }
  const std::vector<PodView>& pods() const { return pods_; }
  std::uint64_t version() const { return version_; }
  Time now() const { return now_; }
  bool outage() const { return outage_; }

  // Lets time pass, in steps of at most 5 s: kubelets renew, graces end.
  void pass(Duration bit);
  // A random event: of kubelets, the scheduler, the user, or the nodes.
  void kubelets_act(int chance);
  void user_acts_on_pods();
  void user_edits_spec();
  void nodes_change();
  // The job's queue comes or goes, or admits the job, if a replica has asked for that.
  void queue_acts();
  // The warm workers of the job's pool.
  void workers_act(int chance);
  Workers& workers() { return workers_; }
  // Ends all faults: nodes come back or their objects are deleted, the user stops, every pod
  // succeeds.
  void calm_down();
  // Calm: the queue exists or not, and admits all jobs or none.
  void set_queue(bool exists, bool admits) {
    queue_exists_ = exists;
    queue_admits_ = admits;
  }

  // A replica asks for a permit for the attempt after this one, or needs none.
  void ask_permit(std::optional<std::int64_t> attempt) { asked_ = attempt; }
  // It stays until the job has a higher attempt.
  const std::optional<std::int64_t>& admitted() const { return admitted_; }
  bool queue_exists() const { return queue_exists_; }

  Ledger& ledger() { return ledger_; }
  void trace_to(std::vector<std::string>* trace) {
    trace_ = trace;
    workers_.trace_to(trace);
  }
  void note(const std::string& line) {
    if (trace_) trace_->push_back(std::to_string(seconds_since_start()) + " s: " + line);
  }
  bool tracing() const { return trace_ != nullptr; }

 private:
  long seconds_since_start() const;
  std::uint64_t job_changed();
  // Watchers hear of the pods if a version has changed, or a pod is gone.
  void pods_changed();
  std::size_t any_place(std::size_t count) {
    return static_cast<std::size_t>(rng_.below(static_cast<int>(count)));
  }
  PodView* pod_named(const std::string& name);
  void ask_to_go(PodView& pod);
  // Removes deleted objects without finalizers, and a deleted job without pods.
  void collect();
  void user_forges_a_pod();
  void end_pod(PodView& pod, int exit_code);
  bool node_alive(const std::string& name) const;
  bool node_exists(const std::string& name) const;
  void schedule(PodView& pod);
  void run_pod(PodView& pod, int chance);

  Rng& rng_;
  Time now_;
  Time start_;
  std::uint64_t version_ = 100;
  Job job_;
  bool job_exists_ = true;
  bool policy_always_failed_ = false;
  bool template_invalid_ = false;
  int refuse_percent_ = 0;
  bool outage_ = false;
  bool calm_ = false;
  bool queue_exists_ = true;
  bool queue_admits_ = true;
  std::optional<std::int64_t> asked_;     // the attempt of the job that asks
  std::optional<std::int64_t> admitted_;  // the attempt that the job had when it was admitted
  std::vector<PodView> pods_;
  std::uint64_t pods_at_ = 0;  // the version that the last event of the pods has
  std::vector<WorldNode> nodes_;
  std::vector<std::shared_ptr<const Job>> job_log_;
  std::vector<std::shared_ptr<const std::vector<PodView>>> pods_log_;
  Ledger ledger_;
  Workers workers_;
  std::vector<std::string>* trace_ = nullptr;
};

}  // namespace holdfast::reconciler::testing
