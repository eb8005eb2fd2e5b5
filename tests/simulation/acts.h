// What happens to the world, by name: the work that users bring, what they do to it, and every
// fault. A run is a script of acts, drawn from a seed before it begins; each has randomness of its
// own, so that leaving one out changes nothing of the others. That is what a failing run is shrunk
// by.
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
  // As from a server that starts and has not read its roles yet.
  kRefuse403,
  // One namespace's.
  kHangingWebhook,
  kLongRetryAfter,
  kNamespaceFails,
  // Users who forge pods, and a webhook that breaks those of the operator.
  kForgePod,
  kStripOwner,
  kBrokenPods,
};
inline constexpr int kActs = static_cast<int>(Act::kBrokenPods) + 1;

const char* to_string(Act act);
std::optional<Act> parse_act(const std::string& name);

struct ScriptEvent {
  int id = 0;  // its place in the whole script: how a shorter one names it
  Act act = Act::kCreateJob;
  Duration at{0};
  Duration lasts{0};       // of what has an end
  int target = 0;          // which replica or node, modulo how many there are
  int permille = 0;        // of what strikes some requests only
  std::uint64_t seed = 0;  // of everything drawn for it
};

// Which part of a script is run: "all", or events by id, each with all of its strikes or with some
// ("3,7:0:4,12" is event 3, strikes 0 and 4 of event 7, and event 12).
struct Selection {
  bool everything = true;
  std::map<int, std::optional<std::set<std::uint64_t>>> events;

  bool has(int event) const { return everything || events.count(event) > 0; }
  bool has(int event, std::uint64_t strike) const;
  std::string text() const;
  static std::optional<Selection> parse(const std::string& text);
};

// A hash that spreads: the randomness of decisions that must not hang on each other.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

// Counts what really happened, and decides which requests an act strikes.
class Strikes {
 public:
  explicit Strikes(Selection selection) : selection_(std::move(selection)) {}

  // While it is open, it strikes requests of `target`'s (or of all: -1).
  void open(const ScriptEvent& event, int target);
  void close(int event);
  void close_all() { open_.clear(); }

  // Does an open act of this kind strike now? The value is random, for its details. `weight`:
  // how much likelier than the act's own share, for requests that matter more.
  std::optional<std::uint64_t> strike(Act act, int target, int weight = 1);

  void fired(Act act) { ++counts_[static_cast<std::size_t>(act)]; }
  std::uint64_t count(Act act) const { return counts_[static_cast<std::size_t>(act)]; }
  // Those of request strikes, by event.
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
