// Checks every write that the API server of the random world accepts, and names the broken rule of
// INVARIANTS. It sees the stored data, not a replica's view.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "reconciler/types.h"

namespace holdfast::reconciler::testing {

class Ledger {
 public:
  explicit Ledger(const Job& job) : job_(job) {}

  // The world's facts about a status write that passed the compare-and-swap.
  struct StatusWrite {
    const Status& old;
    const Status& next;
    const Spec& spec;
    const std::vector<PodView>& pods;  // as they are now
    bool fresh = false;                // no change since the decision looked
    Duration node_silent{0};           // since the last renewal of the node of old's attempt
    bool overlap_allowed = true;       // podReplacementPolicy was not Failed all along
  };
  void status_written(const StatusWrite& write);
  void pod_created(const Status& status, std::int64_t attempt, const PodView& pod);
  // `what`: "deletes", "releases".
  void pod_touched(const char* what, const Job& job, const PodView& pod);
  void pod_ended(const PodView& pod);
  // A user removed a pod with its finalizer: its attempt may be created again.
  void excuse_creation(const std::string& name) { excused_.insert(name); }

  void complain(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }
  const std::string& violation() const { return violation_; }

 private:
  void check_end(const StatusWrite& write);
  void check_start(const StatusWrite& write);

  const Job job_;  // for its name and UID
  std::string violation_;
  std::set<std::int64_t> ended_;
  std::int64_t failures_ = 0;
  std::int64_t disruptions_ = 0;
  std::map<std::int64_t, int> created_;
  std::set<std::string> made_;            // UIDs of the pods that the operator made
  std::map<std::string, PodPhase> ends_;  // of pods by UID, as their kubelet reported
  std::set<std::string> excused_;
};

}  // namespace holdfast::reconciler::testing
