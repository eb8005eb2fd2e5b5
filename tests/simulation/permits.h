// S19 Permits, on the stored data: checks each write of a queue, of its jobs and of their pods.
//
// The write of the queue's status that admits a job gives it a permit. Before the job starts, it
// has the permit until the admission is void. After that it has it while its recorded phase says
// so, and with podReplacementPolicy Failed also while its pod runs. A deleted job has none, even if
// a finalizer holds it. The rules:
// - A write that admits jobs leaves at most `concurrency` permits given, and at most
//   `concurrencyPerKey` of each key. The write is a compare-and-swap, so its spec is the spec that
//   the decision read. A lower limit takes no permit away. A queue that is held admits nobody, and
//   a rate is kept in every window of time.
// - No job without a permit starts an attempt, unless it was admitted for just this attempt.
// - An admission leaves the list only when its job has moved. A claim of the queue admits nobody.
// - While caches are up to date, nobody is admitted before a job of higher rank.
// So there are never more permits than the limit was when the last one was given.
//
// Permits that were not given are not counted. A user may cancel a job in back-off while its pod
// still runs. Then it is Cancelling. A user may set podReplacementPolicy to Failed. Then a pod
// counts. Neither starts anything. And there is one gap. A queue is deleted, and another tenure
// claims a new queue of that name before an admitted job has started. Nothing notifies it of the
// admission. The job's start is excused.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/gateway.h"
#include "tests/simulation/scheduler.h"

namespace holdfast::simulation {

class Permits {
 public:
  using Admission = std::pair<std::string, std::int64_t>;  // UID, and the attempt before
  struct Job {
    std::string uid, name, namespace_, queue, key;  // `queue`: "<namespace>/<name>"
    std::int64_t priority = 0;
    std::string created;
    std::string phase, waits_for;
    std::int64_t attempt = 0;
    bool over = false;      // it has ended, or is being deleted
    bool stands = false;    // suspended, cancelled or paused: it starts nothing
    bool outlasts = false;  // podReplacementPolicy Failed: its pods keep its permit
    std::map<std::string, std::string> pods;  // that have not ended: names by UID
    bool may_have_slots = false;              // an attempt that is over may still run on its worker
    bool given = false;
    Duration changed{0};  // it, or one of its pods
    bool may_outlast() const { return outlasts && (!pods.empty() || may_have_slots); }
  };
  struct Queue {
    std::string uid;  // empty: it does not exist
    Json spec = Json::object();
    Json status = Json::object();
    Duration changed{0};  // its spec, or its existence
    std::vector<Admission> admitting;
    std::set<Admission> left_over;    // of an earlier queue of this name, whose jobs have not moved
    std::string left_by;              // its last holder
    std::deque<Duration> admissions;  // since the rate is as it is: when each was decided
  };

  using Complain = std::function<void(const std::string&)>;
  Permits(Scheduler& scheduler, Gateway& gateway, const Cluster& cluster, Complain complain)
      : scheduler_(scheduler),
        gateway_(gateway),
        cluster_(cluster),
        complain_(std::move(complain)) {}

  // `by`: null if no replica wrote it.
  void queue_written(const Applied& applied, const Delivery* by);
  void job_written(const Applied& applied);
  void pod_written(const Applied& applied, bool by_replica);
  void data_restored();
  // Caches are up to date from now on, or may not be.
  void check_order(bool on) { checks_order_ = on; }

  bool was_admitted(const std::string& job_uid, std::int64_t attempt) const;
  // What decides the job's shard. Once it is gone nobody can read from its pods that it had a
  // queue: then its UID may decide, too.
  std::vector<std::string> shard_keys(const std::string& job_uid) const;

  // ---- For Liveness.
  const std::map<std::string, Queue>& queues() const { return queues_; }
  // By queue, in their order.
  std::map<std::string, std::vector<const Job*>> lines() const;
  const Job* job(const std::string& uid) const;
  static bool runs(const Job& job);  // a phase that holds a permit
  bool holds(const Job& job) const;
  // It is on record as admitted, and has not moved.
  bool is_admitted(const Job& job) const;
  // How many permits are held at the most, of this key or of all. Pods of a lost node count too.
  std::int64_t used_at_most(const std::string& queue, const std::string* key = nullptr) const;

 private:
  static void read(const Json& json, Job& job);
  bool lives(const Job& job, const std::string& pod_uid, const std::string& pod_name) const;
  bool is_open(const Admission& admission) const;
  std::int64_t given(const Queue& queue, const std::string& name, const std::string* key) const;
  void status_written(const std::string& name, const Json& before, const Json& after,
                      const Delivery* by);
  void left_over(const std::string& name, Queue& queue, const std::string& holder,
                 const std::vector<Admission>& now);
  void admitted(const std::string& name, Queue& queue, const std::vector<Admission>& fresh,
                const Delivery& by);
  void check_limits(const std::string& name, const Queue& queue, const Admission& admission);
  void check_rate(const std::string& name, Queue& queue, std::size_t count, Duration decided);
  void check_rank(const std::string& name, const Queue& queue, const Job& first);
  void check_intent(Job& job, std::int64_t attempt);
  void settle(Job& job);
  Job* see(const Json& json);
  Job* see_pod(const Json& pod);
  Job* owner_of(const Json& pod);
  void complain(const std::string& what) const;

  Scheduler& scheduler_;
  Gateway& gateway_;
  const Cluster& cluster_;
  const Complain complain_;
  std::map<std::string, Queue> queues_;            // by "<namespace>/<name>"
  std::map<std::string, Job> jobs_;                // by UID: those with a queue
  std::map<std::string, std::string> owners_;      // of pods, by UID
  std::map<std::string, std::string> namespaces_;  // of all jobs with a queue that ever were
  std::set<Admission> admitted_;                   // when
  std::set<Admission> excused_;
  bool checks_order_ = false;
  Duration restored_at_{-1};
};

}  // namespace holdfast::simulation
