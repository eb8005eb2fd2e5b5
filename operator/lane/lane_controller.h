// The controller of batch/v1 Jobs that Holdfast runs (docs/lane.md). It makes a DurableJob for
// each, and mirrors its status. lane::decide() decides. The controller of DurableJobs runs it and
// knows nothing of the Job.
//
// A Job and its DurableJob have the same shard, so one replica works on both, and knows the pods.
// It is fixed when the DurableJob is made. LaneFacts reads the caches, and LaneRequests sends what
// was decided.
//
// Loop only. Destroy it when the client is idle.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>

#include "client/cache/view.h"
#include "client/controller/controller.h"
#include "client/controller/reconcile_pool.h"
#include "operator/codecs/pod_codec.h"
#include "operator/jobs/job_neighbours.h"
#include "operator/lane/lane_facts.h"
#include "operator/lane/lane_requests.h"

namespace holdfast::lane_controller {

class LaneController : public controller::Controller {
 public:
  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    events::EventSink& events;
    // Of job_kind() and batch_job_kind().
    cache::View<codecs::CachedJob> jobs;
    cache::View<CachedBatchJob> batch_jobs;
    // Of pod_kind(), and which of them are read.
    cache::View<codecs::CachedPod> pods;
    const jobs::WatchedShards& watched_shards;
    // Of selected_namespace_kind(); null: all namespaces.
    cache::Informer* namespaces;
    membership::Membership& membership;
    // False: its rights in a namespace go with the namespace.
    bool keeps_rights;
    std::function<reconciler::GuardView()> guard;
    // Of DurableJobs: it is mirrored, so the cache may lose it; it is there, and the cache lacks
    // it.
    std::function<void(const std::string& key)> mirrored;
    std::function<void(const std::string& key)> look_for;
  };
  explicit LaneController(Dependencies deps);

  void begin() override { pool_.start(); }
  void stop(std::function<void()> idle) override { pool_.stop(std::move(idle)); }

  // The shards were gained or kept, or their pods are in the cache now.
  void look_at_all(int shard) override { look_at_all_of({shard}); }
  void look_at_all_of(const std::set<int>& shards);
  // Done: no Job has to report the end of this DurableJob any more.
  jobs::Mirror mirror_of(const codecs::CachedJob& durable) const;
  void time_travelled() override { memory_.clear(); }

 private:
  void on_batch_job(const cache::View<CachedBatchJob>::Change& change);
  void on_job(const cache::View<codecs::CachedJob>::Change& change);
  void on_pod(const cache::View<codecs::CachedPod>::Change& change);
  void on_namespace(const cache::Change& change);

  Task<controller::ReconcileResult> reconcile(std::string key);
  // None: act. Otherwise look again after that time.
  std::optional<Duration> awaits_caches(const CachedBatchJob& job, LaneMemory& memory);
  // `keep` keeps the DurableJob that the view points to.
  lane::View view(const CachedBatchJob& cached, const lane::BatchJob& job, const LaneMemory& memory,
                  codecs::JobPtr& keep) const;
  Task<controller::ReconcileResult> delete_strays_of_finished(BatchJobPtr found,
                                                              membership::Ownership::Claim claim);
  Time now() const { return client_.server_clock().now(loop_.now()); }

  Loop& loop_;
  kube::Client& client_;
  Log log_;
  cache::View<codecs::CachedJob> jobs_;
  cache::View<CachedBatchJob> batch_jobs_;
  const bool keeps_rights_;
  const std::function<reconciler::GuardView()> guard_;
  const std::function<void(const std::string&)> mirrored_;
  membership::Membership& membership_;
  LaneFacts facts_;
  LaneRequests requests_;
  controller::ReconcilePool pool_;
  std::unordered_map<std::string, LaneMemoryPtr> memory_;  // by the Job's UID
};

}  // namespace holdfast::lane_controller
