// All warm workers of the world, and what really became of each attempt on one of them. Checks S22:
// the commands of two attempts of a run never live at once, and a promise that nothing runs is
// true. A worker whose agent stands still, or did a moment ago, is excused: its agent does not get
// to run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/simulation/cluster.h"
#include "tests/simulation/warm_worker.h"

namespace holdfast::simulation {

class WarmWorkers : public Cluster::Agents {
 public:
  WarmWorkers(Scheduler& scheduler, Gateway& gateway, Cluster& cluster, Strikes& strikes,
              std::uint64_t seed);

  // Of Cluster.
  bool serves(const Json& pod) const override;
  void begin(const Json& pod) override;
  void sigterm(const std::string& pod_uid) override;
  void kill(const std::string& pod_uid) override;
  void out_of_memory(const std::string& pod_uid) override;
  void grace_is_over(const std::string& pod_uid) override;
  void vanished(const std::string& pod_uid) override;

  // Faults.
  void failing(int permille) { failing_permille_ = permille; }
  void hanging(int permille) { hanging_permille_ = permille; }
  void losing(int permille) { losing_permille_ = permille; }
  // The UID of a pod with a worker; empty: no pod has one.
  std::string pick(std::uint64_t seed) const;
  void freeze(const std::string& pod_uid);
  void thaw_all();
  void cut_off(const std::string& pod_uid) { cut_.insert(pod_uid); }
  void reconnect_all() { cut_.clear(); }
  // From now on commands end soon and succeed.
  void calm();
  // Of a command; if not set, it is drawn.
  std::function<std::optional<WarmWorker::Plan>(const AttemptId& id)> plan_of;

  // What became of an attempt.
  struct Truth {
    std::string worker_uid;  // the Lease's
    std::string pod_uid;
    Duration began{0};
    bool alive = true;
    std::optional<int> exit_code;  // it ended by itself
    std::optional<Duration> ended;
    Duration progressed{0};
  };
  const Truth* truth(const AttemptId& id) const;
  // How many attempts were alive on its worker when the kernel killed that for its memory. Zero:
  // the kernel did not, or the attempt was not there.
  std::size_t killed_with(const AttemptId& id) const;
  const WarmWorker* worker(const std::string& pod_uid) const;

  // After each write.
  void job_written(const Json& before, const Json& after);
  // The worker with this Lease is cut off.
  void is_cut_off(const std::string& lease_uid, const std::string& pod_uid);
  // This attempt was handed back: it must never begin.
  void handed_back(const AttemptId& id);
  // An administrator took this pod's worker Lease away: nobody waits for its commands.
  void excuse(const std::string& pod_uid) { excused_.insert(pod_uid); }
  // The data were set back: what is known of attempts is of another history.
  void data_restored();

  std::function<void(const std::string& what)> complain;

 private:
  using Key = std::tuple<std::string, std::int64_t, std::int64_t>;
  static Key key_of(const AttemptId& id) { return {id.job_uid, id.run, id.attempt}; }
  static std::string text(const Key& key);

  // Null: the attempt began once more elsewhere, after a restore.
  Truth* truth_at(const AttemptId& id, const std::string& pod_uid);
  WarmWorker::World world_of(const std::string& pod_uid, const std::string& node);
  WarmWorker::Plan plan(const AttemptId& id, const std::string& payload);
  void began(const WarmWorker& worker, const AttemptId& id);
  bool is_excused(const std::string& pod_uid) const;
  void remove_later(const std::string& pod_uid, Duration delay);

  Scheduler& scheduler_;
  Gateway& gateway_;
  Cluster& cluster_;
  Strikes& strikes_;
  const std::uint64_t seed_;
  std::set<std::string> cut_;
  std::map<Key, Truth> attempts_;
  std::set<Key> alive_;
  std::set<Key> handed_back_;
  std::set<std::string> without_lease_;  // cut off, by the Lease's UID
  std::set<std::string> excused_;        // pods by UID
  std::map<std::string, int> lives_;     // how often each pod's container has begun
  std::set<Key> undone_;                 // began before a restore
  std::map<Key, std::size_t> killed_;    // by the kernel, with so many
  int failing_permille_ = 0;
  int hanging_permille_ = 0;
  int losing_permille_ = 0;
  std::uint64_t lost_ = 0;
  bool calm_ = false;
  // By pod UID. A worker reports its end to the members above.
  std::map<std::string, std::unique_ptr<WarmWorker>> workers_;
};

}  // namespace holdfast::simulation
