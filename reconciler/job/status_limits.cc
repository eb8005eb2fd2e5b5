#include "reconciler/job/status_limits.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/utf8.h"

namespace holdfast::reconciler {
namespace {

// Field names, numbers and times of one run.
constexpr std::size_t kRunFrame = 180;
// Enough to see that the attempt's pod was refused, and mostly why.
constexpr std::size_t kShortRefusal = 32;

// Field names of an attempt's place on a worker, with the seconds, and of a checkpoint.
constexpr std::size_t kWorkerFrame = 68;
constexpr std::size_t kCheckpointFrame = 16;
// Run::alone.
constexpr std::size_t kAloneFrame = 13;

// The most bytes that this text takes as JSON. The API server stores it by Go's encoder, which also
// escapes <, > and &, and U+2028 and U+2029: those two have three bytes, and the first is 0xe2.
std::size_t encoded_size(const std::string& text) {
  std::size_t bytes = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_short = c == '"' || c == '\\' || c == '\n' || c == '\r' || c == '\t';
    if (is_short) {
      bytes += 2;
    } else if (byte < 0x20 || c == '<' || c == '>' || c == '&') {
      bytes += 6;
    } else {
      bytes += byte == 0xe2 ? 4 : 1;
    }
  }
  return bytes;
}

std::size_t checkpoint_size(const Run& run) {
  return run.checkpoint.empty() ? 0 : kCheckpointFrame + encoded_size(run.checkpoint);
}

// The fields that the operator encodes: an attempt on a worker has no pod of its own on record.
std::size_t size_of(const Run& run) {
  const std::size_t place = run.at_worker()
                                ? kWorkerFrame + run.worker_name.size() + run.worker_uid.size()
                                : run.pod_name.size() + run.pod_uid.size() + run.node_name.size();
  return kRunFrame + (run.alone ? kAloneFrame : 0) + place + encoded_size(run.refused) +
         encoded_size(run.progress) + checkpoint_size(run);
}

std::size_t size_of(const std::vector<Run>& runs) {
  std::size_t bytes = 0;
  for (const Run& run : runs) bytes += size_of(run);
  return bytes;
}

bool are_large(const std::vector<Run>& runs) { return size_of(runs) > kRunsBytes; }

std::string cut(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  return utf8_prefix(std::move(text), limit - 3) + "...";
}

// The attempts that end with a write, and the runs before it. Only their runs have a new
// checkpoint.
struct News {
  const std::vector<Ended>& ended;
  const std::vector<Run>& before;
};

// Leaves out checkpoints until the runs are small. First come new ones of first attempts, then
// other new ones: the run's last one, if it is shorter, stays instead. Then come the rest. Among
// equals the one of the latest attempt comes first.
void drop_newest_checkpoints(std::vector<Run>& runs, const News& news) {
  std::unordered_set<std::int64_t> just_ended;
  for (const Ended& one : news.ended) just_ended.insert(one.index);
  std::unordered_map<std::int64_t, const Run*> before;
  for (const Run& run : news.before) {
    if (just_ended.count(run.index) > 0) before[run.index] = &run;
  }
  std::vector<Run*> newest_first;
  for (Run& run : runs) {
    if (!run.checkpoint.empty()) newest_first.push_back(&run);
  }
  const auto age = [&](const Run& run) {
    const bool is_new = just_ended.count(run.index) > 0;
    // The run's next attempt may start with this write.
    const std::int64_t had = run.attempts - (run.open() ? 1 : 0);
    return std::make_tuple(is_new && had <= 1, is_new, run.attempt);
  };
  std::stable_sort(newest_first.begin(), newest_first.end(),
                   [&](const Run* a, const Run* b) { return age(*a) > age(*b); });
  std::size_t bytes = size_of(runs);
  const auto shorten = [&](Run& run, const std::string& checkpoint) {
    bytes -= checkpoint_size(run);
    run.checkpoint = checkpoint;
    bytes += checkpoint_size(run);
  };
  for (Run* const run : newest_first) {
    if (bytes <= kRunsBytes) return;
    if (just_ended.count(run->index) == 0) break;
    const auto was = before.find(run->index);
    const bool had_one = was != before.end() && !was->second->checkpoint.empty();
    if (!had_one) {
      shorten(*run, "");
    } else if (checkpoint_size(*was->second) < checkpoint_size(*run)) {
      shorten(*run, was->second->checkpoint);
    }
  }
  for (Run* const run : newest_first) {
    if (bytes <= kRunsBytes) return;
    shorten(*run, "");
  }
}

void keep_small(std::vector<Run>& runs, const News& news) {
  if (!are_large(runs)) return;
  for (Run& run : runs) run.progress.clear();
  if (!are_large(runs)) return;
  for (Run& run : runs) run.refused = utf8_prefix(std::move(run.refused), kShortRefusal);
  if (!are_large(runs)) return;
  // The UID shows as well that the attempt had its pod.
  for (Run& run : runs) {
    if (!run.pod_uid.empty()) run.node_name.clear();
  }
  drop_newest_checkpoints(runs, news);
}

void keep_waiting_small(Status& status) {
  if (!status.waiting) return;
  Waiting& waiting = *status.waiting;
  if (waiting.deadline) waiting.deadline = std::min(*waiting.deadline, kLatestTime);
  waiting.reason = bounded(waiting.reason);
  waiting.message = bounded(std::move(waiting.message));
}

bool is_foreign(const Condition& condition) {
  constexpr const char* kOurs[] = {"Cancelled",          "Complete",           "Failed",
                                   "FailureTarget",      "NotificationFailed", "Partial",
                                   "Reconciling",        "ResultReady",        "Stalled",
                                   "SuccessCriteriaMet", "Suspended"};
  return std::none_of(std::begin(kOurs), std::end(kOurs),
                      [&](const char* type) { return condition.type == type; });
}

}  // namespace

void drop_foreign_conditions(std::vector<Condition>& conditions) {
  for (std::size_t i = conditions.size(); i-- > 0 && conditions.size() > kConditionLimit;) {
    if (is_foreign(conditions[i])) {
      conditions.erase(conditions.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

std::string bounded(std::string text) { return cut(std::move(text), kStatusMessageLimit); }

AnyReason bounded(const AnyReason& reason) {
  return reason.text().size() <= kStatusReasonLimit
             ? reason
             : AnyReason(cut(reason.text(), kStatusReasonLimit));
}

std::string history_message(const std::string& why, const std::string& output) {
  constexpr std::size_t kWhy = kHistoryMessageLimit - kOutputLimit - 1;
  constexpr std::size_t kBreak = 2;  // as JSON
  std::string head = output.empty() ? bounded(why) : cut(why, kWhy);
  while (encoded_size(head) > kHistoryMessageEncoded) head = cut(head, head.size() * 3 / 4);
  if (output.empty()) return head;
  const std::size_t room = kHistoryMessageEncoded - encoded_size(head) - kBreak;
  std::string lines = last_lines(output, kOutputLimit);
  while (encoded_size(lines) > room) lines = last_lines(lines, lines.size() * 3 / 4);
  return lines.empty() ? head : head + "\n" + lines;
}

void keep_within_limits(Status& status) {
  keep_small(status.runs, {{}, {}});
  keep_waiting_small(status);
}

void keep_within_limits(WriteStatus& write, const Status& before) {
  static const std::vector<Run> kNone;
  // Runs of another stage have nothing to do with them.
  const bool moves = write.status.stage != before.stage;
  keep_small(write.status.runs, {write.ended, moves ? kNone : before.runs});
  keep_waiting_small(write.status);
  drop_foreign_conditions(write.status.conditions);
  for (Event& event : write.events) event.note = bounded(std::move(event.note));
}

}  // namespace holdfast::reconciler
