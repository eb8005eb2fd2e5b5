// Pods with our finalizer that no watch of ours shows, because somebody removed their labels.
// Without the finalizer's end such a pod, and its namespace, would stay Terminating for ever. If
// their job exists, they get the job's labels again: then it sees them, and does with them what is
// right. Once it is gone, this class releases them.
//
// - A deleted job's attempts name their pods: look_for() reads each of them.
// - A walk over all pods, in pages and metadata alone, finds the others. Some are of an end that a
//   process did not finish. The jobs of others were deleted while no operator ran. The holder of
//   shard 0 walks for all replicas.
//
// A pod's job is known by its owner, else by the pod's own name. It counts as gone only if a live
// read says so. Loop only. Destroy it when the client is idle.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/kube/client.h"
#include "core/task.h"
#include "operator/membership/ownership.h"

namespace holdfast::jobs {

class StrayPods {
 public:
  // The shard whose holder walks.
  static constexpr int kWalkersShard = 0;
  static constexpr std::chrono::seconds kFirstWalk{10};
  static constexpr std::chrono::minutes kBetweenWalks{10};

  struct Dependencies {
    Loop& loop;
    kube::Client& client;
    Log log;
    // None: this replica does not hold the shard.
    std::function<std::optional<membership::Ownership::Claim>(int shard)> claim;
    // Our watch shows the pod.
    std::function<bool(const std::string& namespace_, const std::string& name)> shows;
    std::function<Task<Result<>>(std::string namespace_, std::string name, std::string uid,
                                 membership::Ownership::Claim claim)>
        release;
    // So that the replica that has its job sees the pod in its watch.
    std::function<Task<Result<>>(std::string namespace_, std::string name, std::string uid,
                                 std::string job_name, std::string job_uid,
                                 membership::Ownership::Claim claim)>
        relabel;
  };
  // `namespaces`: empty means all.
  StrayPods(Dependencies dependencies, std::vector<std::string> namespaces);
  ~StrayPods() { stop(); }

  // This replica has got the walker's shard, or lost it.
  void walk_soon();
  void stop();
  // The job of these pods, of this shard, is gone.
  void look_for(int shard, const std::string& namespace_, std::vector<std::string> pods);

 private:
  struct Pod;
  struct Sought {
    int shard;
    std::string namespace_;
    std::string name;
  };
  using Key = std::pair<std::string, std::string>;
  // The UIDs of jobs, as live reads found them. Empty: no job has that name.
  using Jobs = std::map<Key, std::string>;

  static kube::ObjectPtr decode(const JsonView& json);
  void walk_after(Duration delay);
  Task<void> walk();
  Task<Result<>> walk_in(std::string namespace_);
  Task<void> seek();
  Task<Result<>> settle(const Pod& pod, int shard, Jobs& jobs);

  Dependencies deps_;
  std::vector<std::string> namespaces_;
  std::deque<Sought> sought_;
  bool seeking_ = false;
  bool walking_ = false;
  bool stopped_ = false;
  TimerId timer_ = 0;
  TimerId seek_timer_ = 0;
};

}  // namespace holdfast::jobs
