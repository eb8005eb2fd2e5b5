#include "reconciler/types.h"

#include <algorithm>
#include <array>
#include <utility>

namespace holdfast::reconciler {
namespace {

constexpr std::array<const char*, 9> kPhases = {"",          "Pending",   "Running",
                                                "Backoff",   "Suspended", "Cancelling",
                                                "Succeeded", "Failed",    "Cancelled"};
constexpr std::array<const char*, 10> kOutcomes = {
    "Succeeded",        "Failed",    "Lost",      "Hung",     "StartTimeout",
    "DeadlineExceeded", "Suspended", "Cancelled", "Deferred", "HandedBack"};

constexpr std::array<const char*, 5> kStagePhases = {"Pending", "Running", "Succeeded", "Failed",
                                                     "Skipped"};

template <class Enum, std::size_t N>
std::optional<Enum> parse(const std::array<const char*, N>& names, const std::string& text) {
  for (std::size_t i = 0; i < N; ++i) {
    if (text == names[i]) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

}  // namespace

const char* to_string(Phase phase) { return kPhases[static_cast<std::size_t>(phase)]; }
std::optional<Phase> parse_phase(const std::string& text) { return parse<Phase>(kPhases, text); }
const char* to_string(Outcome outcome) { return kOutcomes[static_cast<std::size_t>(outcome)]; }
std::optional<Outcome> parse_outcome(const std::string& text) {
  return parse<Outcome>(kOutcomes, text);
}
const char* to_string(StagePhase phase) { return kStagePhases[static_cast<std::size_t>(phase)]; }
std::optional<StagePhase> parse_stage_phase(const std::string& text) {
  return parse<StagePhase>(kStagePhases, text);
}

const char* to_string(PodPhase phase) {
  switch (phase) {
    case PodPhase::kPending:
      return "Pending";
    case PodPhase::kRunning:
      return "Running";
    case PodPhase::kSucceeded:
      return "Succeeded";
    case PodPhase::kFailed:
      return "Failed";
    case PodPhase::kUnknown:
      return "Unknown";
  }
  return "Unknown";
}

Budget budget_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kFailed:
    case Outcome::kHung:
    case Outcome::kDeadlineExceeded:
      return Budget::kFailures;
    case Outcome::kLost:
    case Outcome::kStartTimeout:
      return Budget::kDisruptions;
    case Outcome::kSucceeded:
    case Outcome::kSuspended:
    case Outcome::kCancelled:
    case Outcome::kDeferred:
    case Outcome::kHandedBack:
      return Budget::kNone;
  }
  return Budget::kNone;
}

bool is_empty(AtPlace place) { return place != AtPlace::kUnknown && place != AtPlace::kRunning; }

bool ExitCodesMatch::matches(const std::string& name, int code) const {
  if (code == 0 || (!container.empty() && container != name)) return false;
  return in == (std::find(values.begin(), values.end(), code) != values.end());
}

const RunView& JobView::seen(std::size_t place) const {
  static const RunView kNothing;
  return place < runs.size() ? runs[place] : kNothing;
}

RunView& JobView::begun() {
  if (runs.empty()) runs.emplace_back();
  return runs.front();
}

const Run& Status::run() const {
  static const Run kNone;
  return runs.empty() ? kNone : runs.front();
}

Run& Status::begun() {
  if (runs.empty()) runs.emplace_back();
  return runs.front();
}

bool Status::says_queued() const {
  return waiting &&
         (waiting->reason == Reason::kQueued || waiting->reason == Reason::kQueueMissing);
}

const Run* Status::run_of_pod(const std::string& pod_name) const {
  const auto found = std::find_if(runs.begin(), runs.end(),
                                  [&](const Run& one) { return one.pod_name == pod_name; });
  return found == runs.end() ? nullptr : &*found;
}

bool Status::holds(const std::string& type) const {
  const Condition* const found = condition(type);
  return found && found->status;
}

std::int64_t Status::stage_failures() const {
  return stages.empty() ? failures : stages[stage].failures;
}

std::int64_t Status::stage_disruptions() const {
  return stages.empty() ? disruptions : stages[stage].disruptions;
}

const Condition* Status::condition(const std::string& type) const {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const Condition& c) { return c.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

Placement PodView::placement() const {
  if (!node_name.empty()) return Placement::kBound;
  if (!gates.empty()) return Placement::kGated;
  return unschedulable.empty() ? Placement::kUnseen : Placement::kUnschedulable;
}

bool ended_for_good(const PodView& pod, const ContainerView& container) {
  if (!container.terminated) return false;
  return !container.may_restart || (pod.ended() && !pod.disruption_target);
}

bool PodView::started() const {
  if (phase == PodPhase::kRunning || phase == PodPhase::kSucceeded) return true;
  return std::any_of(containers.begin(), containers.end(),
                     [](const ContainerView& c) { return c.started; });
}

bool PodView::stands_still() const {
  const auto waits = [](const ContainerView& c) { return !c.started; };
  const auto runs = [](const ContainerView& c) { return c.started && !c.terminated && !c.sidecar; };
  return !ended() && std::any_of(containers.begin(), containers.end(), waits) &&
         std::none_of(containers.begin(), containers.end(), runs);
}

int PodView::steps() const {
  int steps = 0;
  for (const ContainerView& container : containers) {
    steps += container.started ? 1 : 0;
    // A sidecar may end and start again without limit.
    steps += ended_for_good(*this, container) && !container.sidecar ? 1 : 0;
  }
  return steps;
}

std::optional<Time> PodView::start() const {
  std::optional<Time> first;
  for (const ContainerView& container : containers) {
    if (container.started_at && (!first || *container.started_at < *first)) {
      first = container.started_at;
    }
  }
  return first;
}

}  // namespace holdfast::reconciler
