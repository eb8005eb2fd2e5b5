// The edges of the job's state machine. decide() plans no others: active.cc, idle.cc and edges.cc
// make them. tests/unit/reconciler/edge_table_test.cc has a case for each. The script
// hack/edges.py reads this table too. The CRD's rules on the phase, their messages and docs/api.md
// come from it. So do docs/pictures/state-machine.svg and the invariants of the integration tests.
// Only tests/model has edges of its own, as a second opinion.
#pragma once

#include "reconciler/types.h"

namespace holdfast::reconciler {

struct Edge {
  Phase from;
  Phase to;
  const char* when;
  bool needs_stages = false;  // only a job with stages takes it
};

inline constexpr Edge kEdges[] = {
    {Phase::kNone, Phase::kPending, "its first attempt has to wait"},
    {Phase::kNone, Phase::kRunning, "its first attempt starts"},
    {Phase::kNone, Phase::kSuspended, "it was created suspended"},
    {Phase::kNone, Phase::kCancelled, "it was created cancelled"},
    {Phase::kNone, Phase::kFailed, "activeDeadlineSeconds, or a spec that can never work"},
    {Phase::kPending, Phase::kRunning, "its next attempt starts"},
    {Phase::kPending, Phase::kSuspended, "suspend"},
    {Phase::kPending, Phase::kCancelling, "cancel, while an old pod runs"},
    {Phase::kPending, Phase::kSucceeded, "enough runs have succeeded, and the others are stopped"},
    {Phase::kPending, Phase::kCancelled, "cancel"},
    {Phase::kPending, Phase::kFailed, "activeDeadlineSeconds"},
    {Phase::kRunning, Phase::kPending, "parallelism is 0, or no run that has begun is left"},
    {Phase::kRunning, Phase::kBackoff, "the attempt ended badly, and budgets allow another"},
    {Phase::kRunning, Phase::kSuspended, "suspend"},
    {Phase::kRunning, Phase::kCancelling, "cancel"},
    {Phase::kRunning, Phase::kSucceeded, "the attempt's pod succeeded"},
    {Phase::kRunning, Phase::kCancelled, "the last Always stage of a cancelled job has ended",
     true},
    {Phase::kRunning, Phase::kFailed, "a budget is spent, or activeDeadlineSeconds"},
    {Phase::kBackoff, Phase::kPending, "parallelism is 0, or no run that has begun is left"},
    {Phase::kBackoff, Phase::kRunning, "the next attempt starts"},
    {Phase::kBackoff, Phase::kSuspended, "suspend"},
    {Phase::kBackoff, Phase::kCancelling, "cancel, while an old pod runs"},
    {Phase::kBackoff, Phase::kSucceeded, "enough runs have succeeded, and the others are stopped"},
    {Phase::kBackoff, Phase::kCancelled, "cancel"},
    {Phase::kBackoff, Phase::kFailed, "activeDeadlineSeconds"},
    {Phase::kSuspended, Phase::kPending, "resume"},
    {Phase::kSuspended, Phase::kCancelling, "cancel, while an old pod runs"},
    {Phase::kSuspended, Phase::kCancelled, "cancel"},
    {Phase::kSuspended, Phase::kFailed, "activeDeadlineSeconds"},
    {Phase::kCancelling, Phase::kPending, "its pods have ended, and an Always stage has to wait",
     true},
    {Phase::kCancelling, Phase::kRunning, "its pods have ended, and an Always stage starts", true},
    {Phase::kCancelling, Phase::kSucceeded, "its pods have ended, and its result was ready", true},
    {Phase::kCancelling, Phase::kCancelled, "its pods have ended"},
};

// True if a status write may go from `from` to `to`. Any phase but (none) may stay, and Running may
// stay with a new attempt. The first write leaves (none).
constexpr bool is_edge(Phase from, Phase to, bool has_stages) {
  if (from == to) return from != Phase::kNone;
  for (const Edge& edge : kEdges) {
    if (edge.from == from && edge.to == to) return has_stages || !edge.needs_stages;
  }
  return false;
}

}  // namespace holdfast::reconciler
