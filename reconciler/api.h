// The spec and the status of a DurableJob (api/) under the names that the rules use.
#pragma once

#include "api/index_set.h"
#include "api/limits.h"
#include "api/outbox.h"
#include "api/phase.h"
#include "api/reason.h"
#include "api/spec.h"
#include "api/status.h"

namespace holdfast::reconciler {

using std::chrono::seconds;

using api::AnyReason;
using api::Budget;
using api::budget_of;
using api::Condition;
using api::ExitCodesMatch;
using api::has_ended;
using api::Heartbeat;
using api::HistoryEntry;
using api::holds_permit;
using api::IndexSet;
using api::is_terminal;
using api::kAlwaysDeadline;
using api::kCompletionsLimit;
using api::kConditionLimit;
using api::kCountLimit;
using api::kFirstStage;
using api::kHistoryLimit;
using api::kLastNotifyEvent;
using api::kMaxLeaseSeconds;
using api::kNotifyLimit;
using api::kNotifyTextLimit;
using api::kOutboxLimit;
using api::kParallelismLimit;
using api::kRefusedLimit;
using api::kResultLimit;
using api::kRunLimit;
using api::kStageLimit;
using api::kSuspendedLimit;
using api::NotifyEvent;
using api::OutboxEntry;
using api::Outcome;
using api::parse_notify_event;
using api::parse_outcome;
using api::parse_phase;
using api::parse_reason;
using api::parse_stage_phase;
using api::Phase;
using api::PodConditionMatch;
using api::PodReplacementPolicy;
using api::PolicyAction;
using api::PolicyRule;
using api::PoolRef;
using api::QueueRef;
using api::Reason;
using api::RetryBackoff;
using api::Run;
using api::Spec;
using api::Stage;
using api::StagePhase;
using api::StageStatus;
using api::Status;
using api::SuccessRule;
using api::to_string;
using api::Waiting;

}  // namespace holdfast::reconciler
