// Keeps a status within the limits of the schema and of etcd (1.5 MiB for an object). So no text of
// a scheduler, webhook, kubelet or worker can make a status write fail. Internal to reconciler/.
#pragma once

#include <cstddef>
#include <string>

#include "reconciler/types.h"
#include "reconciler/write.h"

namespace holdfast::reconciler {

// The most bytes of status.runs as JSON. The lists of ended indexes take 600 KB at most. They are
// longest if every second one of 100,000 indexes has failed.
inline constexpr std::size_t kRunsBytes = std::size_t{400} * 1024;
// A stored job of this size begins a new index only while status.runs is empty.
inline constexpr std::size_t kLargeJob = std::size_t{1024} * 1024;

inline constexpr std::size_t kStatusMessageLimit = 1024;
inline constexpr std::size_t kStatusReasonLimit = 128;
// Cuts a message, or a reason, to these limits.
std::string bounded(std::string text);
AnyReason bounded(const AnyReason& reason);

// What history keeps of an attempt's end: why it ended, and then the last lines of its container.
// At most kHistoryMessageLimit bytes, and kHistoryMessageEncoded as JSON, so that ten of them add
// 30 KiB to a status.
inline constexpr std::size_t kHistoryMessageLimit = 2304;
inline constexpr std::size_t kHistoryMessageEncoded = std::size_t{3} * 1024;
std::string history_message(const std::string& why, const std::string& output);

// Cuts what the job waits for. If status.runs would take more than kRunsBytes, it first leaves out
// all progress messages. Then it cuts all refusals short. Then it leaves out the nodes of runs
// whose pods are known, and then as many checkpoints as needed. A run without its checkpoint starts
// from the beginning. A refusal stays: otherwise the next holder of the shard would think that no
// process has asked for the pod.
void keep_within_limits(Status& status);
// `before`: the status on record. The checkpoints of the attempts that this write ends are left out
// before those of other runs, and the one on record stays instead. Also cuts Events, and drops
// conditions of other programs that leave ours no room.
void keep_within_limits(WriteStatus& write, const Status& before);
// Drops conditions of other programs, the last ones first, until there are 16.
void drop_foreign_conditions(std::vector<Condition>& conditions);

}  // namespace holdfast::reconciler
