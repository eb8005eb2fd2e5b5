#include "reconciler/job/status_size.h"

#include <utility>
#include <vector>

#include "core/utf8.h"

namespace holdfast::reconciler {
namespace {

// Field names, numbers and times of one run.
constexpr std::size_t kRunFrame = 180;
// Enough to see that the attempt's pod was refused, and mostly why.
constexpr std::size_t kShortRefusal = 32;

// A text as JSON may have an escape for each character.
bool are_large(const std::vector<Run>& runs) {
  std::size_t bytes = 0;
  for (const Run& run : runs) {
    bytes += kRunFrame + run.pod_name.size() + run.pod_uid.size() + run.node_name.size() +
             2 * (run.refused.size() + run.progress.size());
  }
  return bytes > kRunsBytes;
}

}  // namespace

void keep_within_bytes(Status& status) {
  std::vector<Run>& runs = status.runs;
  if (!are_large(runs)) return;
  for (Run& run : runs) run.progress.clear();
  if (!are_large(runs)) return;
  for (Run& run : runs) run.refused = utf8_prefix(std::move(run.refused), kShortRefusal);
  if (!are_large(runs)) return;
  // The UID shows as well that the attempt had its pod.
  for (Run& run : runs) {
    if (!run.pod_uid.empty()) run.node_name.clear();
  }
}

}  // namespace holdfast::reconciler
