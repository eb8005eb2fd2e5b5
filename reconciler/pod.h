// A pod as decisions read it, and when this replica saw its steps. Plain values; units in the
// types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/time.h"
#include "reconciler/api.h"

namespace holdfast::reconciler {

enum class PodPhase { kPending, kRunning, kSucceeded, kFailed, kUnknown };
const char* to_string(PodPhase phase);

// What a cached pod keeps of a failed container's termination message: its last lines.
inline constexpr std::size_t kOutputLimit = 2048;

struct Terminated {
  int exit_code = 0;
  std::string reason;
  // Of a failed container: the last lines. The kubelet takes them from its log if it left none.
  std::string message;
  std::optional<Time> started;
  std::optional<Time> finished;

  // False: the kubelet lost track of the container (e.g. the node restarted) and made this entry
  // up. It is neither the workload's exit code nor a proof of its end.
  bool was_seen = true;
  bool out_of_memory = false;  // the kernel killed it for its memory
  bool operator==(const Terminated&) const = default;
};

struct ContainerView {
  std::string name;
  bool init = false;
  bool worker = false;   // the container with the agent; without an agent the first regular one
  bool sidecar = false;  // an init container with restartPolicy Always
  // A restart policy or rule allows the kubelet to start it again in place.
  bool may_restart = false;
  bool started = false;  // runs or has run
  std::optional<Time> started_at;
  std::optional<Terminated> terminated;
  std::string waiting_reason;
  std::string waiting_message;
  bool being_created = false;  // waiting_reason is a usual step of every start
  bool operator==(const ContainerView&) const = default;
};

// How far the schedulers are with a pod.
enum class Placement {
  kUnseen,         // no scheduler has reported anything on it
  kGated,          // schedulers ignore it until its scheduling gates are removed
  kUnschedulable,  // a scheduler cannot bind it
  kBound,          // it has a node
};

struct PodView {
  std::string name;
  std::string uid;
  std::uint64_t version = 0;
  std::string owner_uid;  // the controlling owner's
  std::string job_uid_label;
  std::string shard_label;   // empty: none
  std::int64_t attempt = 0;  // from its label; 0: none
  // The mark of its intent: Run::start_time when it was created.
  std::optional<Time> intent;
  std::string node_name;  // empty: not bound
  PodPhase phase = PodPhase::kPending;
  std::string reason;
  std::string message;
  bool out_of_time = false;  // its kubelet stopped it at the template's own activeDeadlineSeconds
  Time created{};
  seconds grace{30};             // of its template, in which a deleted pod stops
  std::optional<Time> deletion;  // deletionTimestamp: when its grace ends
  seconds deletion_grace{0};
  // How long it has been deleted but present, as seen by this process or earlier observers.
  Duration going_for{0};
  bool has_finalizer = false;  // ours
  bool ready = false;          // its condition Ready holds
  bool disruption_target = false;
  std::string disruption_reason;
  std::string gates;          // the names of its scheduling gates; empty: none
  std::string unschedulable;  // its scheduler's message; empty: none
  std::string scheduler;      // the schedulerName of an unbound pod
  // The last transition of its condition PodScheduled. Usually by the API server's clock, but a
  // kubelet sets it for a pod that was created with a node.
  std::optional<Time> placed;
  std::vector<ContainerView> containers;
  // Of a pod whose phase is Failed, for Spec::pod_failure_policy; else empty.
  std::vector<PolicyRule::PodCondition> conditions;
  // No pod, but a slot of a warm worker, shown as one: nothing is written to it.
  bool slot = false;
  bool operator==(const PodView&) const = default;

  Placement placement() const;
  bool ended() const { return phase == PodPhase::kSucceeded || phase == PodPhase::kFailed; }
  bool started() const;  // any container runs or has run
  // True if some container has never run and none runs now: the next container has not started yet,
  // or cannot. Running sidecars do not count, because they always run to the end.
  bool stands_still() const;
  int steps() const;  // the number of starts and ends of containers
  // The earliest start of a container, by its kubelet's clock. See attempt_start().
  std::optional<Time> start() const;
};

// True if the container has terminated and cannot be started again in place. The phase Failed of a
// disrupted pod proves nothing about its containers, because the pod collector may have set it.
bool ended_for_good(const PodView& pod, const ContainerView& container);

// For a failed and deleted pod: which of the two this process saw first.
enum class EndOrder { kUnknown, kDeletedFirst, kFailedFirst };

// When this process has seen the steps of one pod. The clocks of schedulers and kubelets may be
// wrong by any amount.
struct PodSightings {
  std::optional<Time> placed;     // first seen with its current Placement
  std::optional<Time> elsewhere;  // last seen with another Placement
  std::optional<Time> unstarted;  // last seen before any container ran
  std::optional<Time> started;    // first seen with a container that runs or has run
  EndOrder order = EndOrder::kUnknown;
};

}  // namespace holdfast::reconciler
