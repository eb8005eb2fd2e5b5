// Checks every write that the API server of the random world accepts, and names the broken rule of
// INVARIANTS. It sees the stored data, not a replica's view.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/worker_protocol.h"
#include "reconciler/types.h"
#include "reconciler/write.h"

namespace holdfast::reconciler::testing {

struct WorldNode {
  std::string name;
  bool exists = true;
  bool alive = true;
  std::uint64_t lease_version = 1;
  Time renewed{};
  Time missing{};  // when it last did not exist
};

class Ledger {
 public:
  explicit Ledger(const Job& job) : job_(job) {}

  // The world's facts about a status write that passed the compare-and-swap.
  struct StatusWrite {
    const Status& old;
    const Status& next;
    const Spec& spec;
    const std::vector<PodView>& pods;  // as they are now
    const std::vector<WorldNode>& nodes;
    Time now;
    bool fresh = false;         // no change since the decision looked
    bool always_failed = true;  // podReplacementPolicy was Failed all along
    // The attempt after which the job's queue has admitted the next one.
    std::optional<std::int64_t> admitted;
    bool no_pool = false;  // its pool does not exist, or once did not
  };
  void status_written(const StatusWrite& write);
  void pod_created(const Job& job, const CreatePod& write, const PodView& pod);
  // `what`: "deletes", "releases".
  void pod_touched(const char* what, const Job& job, const PodView& pod);
  void pod_ended(const PodView& pod) { ends_[pod.uid] = pod; }
  // A worker begins the command of an attempt; the command ends by itself.
  void slot_begun(std::int64_t attempt) { made_.insert(slot_key(attempt)); }
  void slot_ended(const holdfast::Answer& answer);
  // A user removed a pod with its finalizer: its attempt may be created again.
  void excuse_creation(const std::string& name) { excused_.insert(name); }

  void complain(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  const std::string& violation() const { return violation_; }

 private:
  // An open attempt that a write ends.
  struct End {
    const Run& was;
    const Run* now = nullptr;                    // null: the run is over
    const HistoryEntry* entry = nullptr;         // null: history does not record it
    PolicyAction action = PolicyAction::kCount;  // what the job's failure policy says of it
  };
  struct Spent {
    std::int64_t failures = 0;
    std::int64_t disruptions = 0;
  };

  // ledger_ends.cc: what a write says about attempts that end, and runs that are over.
  std::vector<End> ends_of(const StatusWrite& write);
  void check_end(const StatusWrite& write, End& end);
  void check_history_entry(const StatusWrite& write, const HistoryEntry& entry,
                           const std::string& place);
  // Of an attempt on a worker, as the UID is of one with a pod.
  static std::string slot_key(std::int64_t attempt) { return "slot-" + std::to_string(attempt); }
  void check_run_after(const StatusWrite& write, const End& end);
  void check_budgets(const Status& next);
  void check_indexes(const StatusWrite& write, const std::vector<End>& ends);
  void check_outcome(const StatusWrite& write, const std::vector<End>& ends);
  bool has_cause(const StatusWrite& write, bool by_policy) const;
  void check_stopped(const StatusWrite& write, const std::vector<End>& ends);
  bool is_out_of_time(const StatusWrite& write) const;
  void check_left(const StatusWrite& write);
  // ledger.cc
  void check_starts(const StatusWrite& write);
  void check_permit(const StatusWrite& write, std::int64_t opened);
  void check_start(const StatusWrite& write, const Run& run);
  void check_old_pod(const StatusWrite& write, const Run& old);
  const PodView* find_end(const std::string& place) const;

  const Job job_;  // for its name and UID
  std::string violation_;
  std::map<std::int64_t, std::int64_t> runs_;  // of the attempts on record
  std::set<std::int64_t> ended_;               // attempts
  std::map<std::int64_t, Spent> spent_;        // by each run
  std::map<std::int64_t, bool> over_;          // runs that have succeeded (true) or failed
  std::map<std::int64_t, int> created_;        // pods, by attempt
  std::set<std::string> made_;                 // UIDs of the pods that the operator made, slots
  std::map<std::string, PodView> ends_;        // of pods by UID, as their kubelet reported, slots
  std::set<std::string> excused_;
};

}  // namespace holdfast::reconciler::testing
