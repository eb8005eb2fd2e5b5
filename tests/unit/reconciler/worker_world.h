// The warm workers of the random world (docs/internals/workers.md). It has both Leases of each as
// the API server has them, and the agents with their commands. An agent reads and writes late, is
// cut off from the API server, freezes, dies, drains. It checks that no two commands of a run run
// at once (S22).
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "reconciler/pool/work.h"
#include "reconciler/types.h"
#include "tests/unit/reconciler/ledger.h"
#include "tests/unit/reconciler/rng.h"

namespace holdfast::reconciler::testing {

inline constexpr seconds kWorkerLease{15};

// The two Leases of one worker.
struct WorkerLeases {
  std::string name;  // the worker's pod
  std::string uid;   // of the worker Lease
  WorkerIs is = WorkerIs::kLive;
  WorkerReport report;
  Time changed{};              // the worker Lease
  bool out_of_memory = false;  // as the cut-off has it
  std::optional<Work> work;
  std::string work_uid;
  std::uint64_t work_version = 0;
};

// An open attempt of another job in the same pool, as that job's record has it.
struct OtherPlace {
  AttemptId id;
  std::string worker_uid;
};

struct LeasesEvent {
  std::uint64_t version = 0;
  std::vector<WorkerLeases> leases;
  std::vector<OtherPlace> others;
};

// Of a job that shares the pool.
bool is_other(const AttemptId& id);

class Workers {
 public:
  static constexpr std::size_t kSlots = 3;  // of each worker

  // `version`: the API server's. No workers: no job has a pool.
  Workers(Rng& rng, std::uint64_t& version, Ledger& ledger, std::size_t count);

  // All versions of the Leases for watchers, oldest first.
  const std::vector<std::shared_ptr<const LeasesEvent>>& log() const { return log_; }
  // A replica writes a work Lease. False: it has changed, or is gone.
  bool put_work(const std::string& uid, std::uint64_t version, const Work& next);

  // Time passes: agents renew, and kill their commands at their deadlines. Steps of at most 5 s.
  void pass(Time now, bool outage);
  // The agents act, each with this chance in percent. `job`: as it is now; null: it is gone.
  void agents_act(const Job* job, int chance);
  // The operator's part that decide() has no say in: cut-off, new workers, Leases that go.
  void pool_acts(const Job* job, int chance);
  void trouble();
  // Other jobs come to the pool and leave it.
  void others_act(int chance);
  // Ends all faults. Commands end with 0 from now on, and no other job comes.
  void calm_down();
  bool has_others() const { return !others_.empty(); }

  // The job's status becomes `next`. Checks what it promises of places.
  void status_written(const Job& job, const Status& next);

  void trace_to(std::vector<std::string>* trace) { trace_ = trace; }
  bool exists() const { return count_ > 0; }
  bool pool_exists() const { return pool_exists_; }
  bool pool_was_missing() const { return pool_was_missing_; }

 private:
  struct Agent {
    WorkerLeases leases;
    bool has_lease = true;       // the worker Lease exists
    bool alive = true;           // its pod has not ended
    bool out_of_memory = false;  // the kernel killed it for that
    bool reachable = true;       // it can read and write the API
    bool frozen = false;         // no process of its pod gets to run
    bool draining = false;       // SIGTERM
    bool refused = false;        // its Leases are not its own any more: it never renews again
    Time acked{};                // when it sent the last acknowledged renewal
    Work work;                   // as it has read
    std::vector<holdfast::Answer> answers;
    std::vector<AttemptId> looked;  // the job was read: it may begin
    bool is_heard(bool outage) const { return alive && reachable && !frozen && !outage; }
    bool is_steady(Time now) const { return now - acked < kWorkerLease * 2 / 3; }
  };

  void note(const Agent& agent, const char* what, const AttemptId* id = nullptr) const;
  void add_worker();
  void changed();
  void renew(Agent& agent);
  bool read_work(Agent& agent);
  void kill_all(Agent& agent);
  void follow(Agent& agent, const Job* job, int chance);
  void begin_or_return(Agent& agent, const WorkEntry& entry, const Job* job);
  void begin(Agent& agent, const AttemptId& id);
  void end_some(Agent& agent, int chance);
  Agent* with_lease(const std::string& uid);
  bool is_open(const Job* job, const AttemptId& id, const std::string& place) const;
  bool other_is_over(const OtherPlace& other) const;
  void open_other();
  // A command of this attempt, or of any of the job's if it is null, runs where an agent gets to
  // run.
  bool runs(const AttemptId* id) const;

  Rng& rng_;
  std::uint64_t& version_;
  Ledger& ledger_;
  const std::size_t count_;
  bool calm_ = false;
  bool pool_exists_ = true;
  bool pool_was_missing_ = false;  // at any time
  bool outage_ = false;
  Time now_{};
  Time outage_end_{};
  int made_ = 0;
  bool is_shared_ = false;
  int others_made_ = 0;
  std::vector<OtherPlace> others_;
  std::vector<Agent> agents_;
  std::set<std::int64_t> begun_;                // attempts
  std::set<std::int64_t> handed_back_;          // attempts
  std::map<std::int64_t, std::string> places_;  // of attempts: the worker Lease's UID
  std::vector<std::shared_ptr<const LeasesEvent>> log_;
  std::vector<std::string>* trace_ = nullptr;
};

}  // namespace holdfast::reconciler::testing
