// The acts that happen to the world: the users' jobs, what users do to them, and every fault. A run
// is a script of acts, drawn from a seed before it begins. Each act has its own randomness, so
// leaving one out changes no other. That is how a failing run is shrunk.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/time.h"

namespace holdfast::simulation {

enum class Act {
  // Work, and what users do.
  kCreateJob,
  kEditSpec,
  kSuspend,
  kCancel,
  kDeleteJob,
  kRecreateJob,
  kDeletePod,
  kForceDeletePod,
  kStripLabels,
  kDeleteNamespace,
  kQuota,
  // Pods and nodes.
  kWorkerFails,
  kImageError,
  kUnschedulable,
  kEviction,
  kNodeSilent,
  kNodePowerLoss,
  kNodeDeleted,
  // Requests between one replica and the API server.
  kLoseRequest,
  kLoseAnswer,
  kDelayRequest,
  kDelayAnswer,
  kDuplicate,
  kRefuse429,
  kRefuse500,
  kRefuse503,
  kCutSilently,
  kCutRefused,
  // Watches.
  kSlowWatch,
  kHalfOpenWatch,
  kBreakWatch,
  kWatchCacheLag,
  kCompaction,
  // The API server and its etcd.
  kOutage,
  kRestart,
  kEtcdStall,
  kRestore,
  // The operator's processes, and clocks.
  kCrash,
  kCleanRestart,
  kPause,
  kClockDrift,
  kServerClockStep,
  // As from a starting server that has not read its roles yet.
  kRefuse403,
  // One namespace's.
  kHangingWebhook,
  kLongRetryAfter,
  kNamespaceFails,
  // Users who forge pods, and a webhook that breaks the operator's pods.
  kForgePod,
  kStripOwner,
  kBrokenPods,
  // A job with a heartbeat: its Lease, its worker, its agent, its pod's second container.
  kDeleteLease,
  kWorkerHangs,
  kAgentSilent,
  kNextImageError,
  // Queues, and the places of jobs in them.
  kEditQueue,
  kHoldQueue,
  kReprioritize,
  kRecreateQueue,
  // Pools of warm workers, the workers themselves, and their Leases.
  kEditPool,
  kRecreatePool,
  kKillWorker,
  kCutWorker,
  kFreezeWorker,
  kLossyWorkers,
  kDeleteWorkerLease,
  kTouchLeases,
  kSendMessage,
  // A worker's container begins again in the same pod. Administrators edit its Leases.
  kRestartWorker,
  kEditHolder,
  kEditWork,
  // batch/v1 Jobs that Holdfast runs.
  kEditBatchJob,
  kSuspendBatchJob,
  kDeleteBatchJob,
  // A kubelet says for a moment that no container of a pod that runs has started.
  kTakeBackStart,
  // A newer version of the operator, before a roll-back. It writes fields into a status that this
  // version does not know, or a user gives it such a spec.
  kNewerStatus,
  kNewerSpec,
  // Of one namespace's pods: a webhook without an endpoint, flow control, or a rule that forbids
  // them.
  kDeletionsFail,
  // Somebody deletes or changes a policy of the guard.
  kSpoilGuard,
};
inline constexpr int kActs = static_cast<int>(Act::kSpoilGuard) + 1;

const char* to_string(Act act);
std::optional<Act> parse_act(const std::string& name);

struct ScriptEvent {
  int id = 0;  // its place in the whole script; shortened scripts keep it
  Act act = Act::kCreateJob;
  Duration at{0};
  Duration lasts{0};       // acts with an end only
  int target = 0;          // which replica or node, modulo how many there are
  int permille = 0;        // the share of requests that it strikes
  std::uint64_t seed = 0;  // for everything drawn for it
};

// Which part of a script runs: "all", or events by id. An event may have all its strikes or some:
// "3,7:0:4,12" is event 3, strikes 0 and 4 of event 7, and event 12.
struct Selection {
  bool everything = true;
  std::map<int, std::optional<std::set<std::uint64_t>>> events;

  bool has(int event) const { return everything || events.count(event) > 0; }
  bool has(int event, std::uint64_t strike) const;
  std::string text() const;
  static std::optional<Selection> parse(const std::string& text);
};

// A mixing hash: the randomness of decisions that must not depend on each other.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

// Counts what really happened, and decides which requests an act strikes.
class Strikes {
 public:
  explicit Strikes(Selection selection) : selection_(std::move(selection)) {}

  // While it is open, it strikes requests of replica `target` (-1: of all).
  void open(const ScriptEvent& event, int target);
  void close(int event);
  void close_all() { open_.clear(); }

  // Does an open act of this kind strike now? The value is random, for its details. `weight`
  // multiplies the act's own share, for requests that matter more.
  std::optional<std::uint64_t> strike(Act act, int target, int weight = 1);

  void fired(Act act) { ++counts_[static_cast<std::size_t>(act)]; }
  std::uint64_t count(Act act) const { return counts_[static_cast<std::size_t>(act)]; }
  // The strikes on requests, by event.
  const std::map<int, std::vector<std::uint64_t>>& struck() const { return struck_; }

 private:
  struct Open {
    ScriptEvent event;
    int target;
    std::uint64_t asked = 0;
  };
  Selection selection_;
  std::map<int, Open> open_;
  std::map<int, std::vector<std::uint64_t>> struck_;
  std::uint64_t counts_[kActs] = {};
};

}  // namespace holdfast::simulation
