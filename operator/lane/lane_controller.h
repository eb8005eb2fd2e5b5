// The controller of batch/v1 Jobs that Holdfast runs (docs/lane.md): it makes a DurableJob for
// each, and mirrors its status. lane::decide() decides. The controller of DurableJobs runs it and
// knows nothing of the Job.
//
// A Job and its DurableJob have the same shard, so one replica works on both, and knows the pods.
// It is fixed when the DurableJob is made. All writes are by compare-and-swap, so nothing breaks if
// two replicas work on them.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/cache/view.h"
#include "client/controller/controller.h"
#include "client/controller/reconcile_pool.h"
#include "lane/decide.h"
#include "operator/codecs/job_codec.h"
#include "operator/events/events.h"
#include "operator/jobs/pod_shards.h"
#include "operator/lane/batch_job_codec.h"
#include "operator/membership/membership.h"

namespace holdfast::controller {

class LaneController : public Controller {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    EventSink& events;
    // Of job_kind() and batch_job_kind().
    cache::View<CachedJob> jobs;
    cache::View<CachedBatchJob> batch_jobs;
    // Of pod_kind(), and which of them are read.
    cache::View<CachedPod> pods;
    const PodShards& pod_shards;
    // Of selected_namespace_kind(); null: all namespaces.
    cache::Informer* namespaces;
    Membership& membership;
    // False: its rights in a namespace go with the namespace.
    bool keeps_rights;
  };
  explicit LaneController(Dependencies dependencies);

  void begin() override { pool_.start(); }
  void stop(std::function<void()> idle) override { pool_.stop(std::move(idle)); }

  // The shards were gained or kept, or their pods are in the cache now.
  void look_at_all(int shard) override { look_at_all_of({shard}); }
  void look_at_all_of(const std::set<int>& shards);
  void time_travelled() override { memory_.clear(); }

 private:
  // What this process knows of one Job beside the caches.
  struct Memory {
    std::uint64_t job_version = 0;          // of its own last write of the Job
    std::uint64_t durable_version = 0;      // of the DurableJob
    std::optional<SteadyTime> waits_since;  // for the caches to show these
    std::string created;                    // UID of the DurableJob that this process created
    std::string taken;                      // a name that a foreign object has
    SteadyTime taken_until{};               // then look again
    std::optional<std::string> refusal;
    std::optional<lane::View::Refused> refused;
    std::optional<SteadyTime> last_write;  // of the Job's status
    std::string gone;  // UID of the recorded DurableJob, if a live read has shown that it is gone
  };

  void on_batch_job(const cache::View<CachedBatchJob>::Change& change);
  void on_job(const cache::View<CachedJob>::Change& change);
  void on_pod(const cache::View<CachedPod>::Change& change);
  void on_namespace(const cache::Change& change);
  bool is_selected(const std::string& ns) const;
  // reconciler::shard_key() of its DurableJob, also before that is made.
  std::string shard_key(const CachedBatchJob& job) const;
  // Pods of this DurableJob; none: they are not all in the cache.
  std::optional<std::int64_t> ready_pods(const CachedJob& durable) const;
  // The DurableJobs that this Job owns.
  std::vector<JobPtr> owned(const std::string& namespace_, const std::string& uid) const;
  // False: it has finished, and no DurableJob of it runs.
  bool has_work(const CachedBatchJob& job) const;
  BatchJobPtr cached(const std::string& key) const;
  // The DurableJob that bears this name.
  std::optional<lane::DurableView> durable(const std::string& ns, const std::string& name,
                                           JobPtr& keep) const;

  Task<ReconcileResult> reconcile(std::string key);
  Task<Result<lane::BatchJob>> whole(BatchJobPtr cached);
  // None: act. Otherwise look again after that time.
  std::optional<Duration> awaits_caches(const CachedBatchJob& job, Memory& memory);
  lane::View view(const CachedBatchJob& cached, const lane::BatchJob& job, const Memory& memory,
                  JobPtr& keep) const;
  // Pods of the recorded DurableJob have not ended. The cache may have none of them, because they
  // are of another shard than the Job.
  Task<Result<bool>> pods_left(std::string ns, std::string durable_uid);
  Task<Status> perform(const lane::BatchJob& job, const lane::Decision& decision,
                       std::shared_ptr<Memory> memory, Ownership::Claim claim);
  Task<Status> write_status(const lane::BatchJob& job, const lane::StatusWrite& write,
                            std::shared_ptr<Memory> memory, Ownership::Claim claim);
  Task<Status> patch(const lane::BatchJob& job, const lane::Patch& patch,
                     std::shared_ptr<Memory> memory, Ownership::Claim claim);
  // Sends these fields, and raises `version` to that of the answer.
  Task<Status> send(const lane::BatchJob& job, std::string name, std::uint64_t& version,
                    lane::Source source, Json fields, Memory& memory, Ownership::Claim claim);
  Task<Status> create(const lane::BatchJob& job, const lane::Creation& creation,
                      std::shared_ptr<Memory> memory, Ownership::Claim claim);
  Task<Status> is_current(const lane::BatchJob& job);
  Status await_watch(const lane::BatchJob& job, const JsonView& live, Memory& memory);
  Task<Status> look(const lane::BatchJob& job, std::shared_ptr<Memory> memory);
  Task<Status> delete_strays(const lane::BatchJob& job, Ownership::Claim claim);
  Task<ReconcileResult> delete_strays_of_finished(BatchJobPtr found, Ownership::Claim claim);
  // The definition of DurableJobs, a policy or a webhook says no.
  static bool is_refusal(const Error& error) {
    return error.code == ErrorCode::kInvalid || error.code == ErrorCode::kForbidden;
  }
  void tell(const lane::BatchJob& job, const lane::Event& event);
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  kube::Client& client_;
  Log log_;
  EventSink& events_;
  cache::View<CachedJob> jobs_;
  cache::View<CachedBatchJob> batch_jobs_;
  cache::View<CachedPod> pods_;
  const PodShards& pod_shards_;
  cache::Informer* const namespaces_;
  const bool keeps_rights_;
  Membership& membership_;
  ReconcilePool pool_;
  std::unordered_map<std::string, std::shared_ptr<Memory>> memory_;  // by the Job's UID
};

}  // namespace holdfast::controller
